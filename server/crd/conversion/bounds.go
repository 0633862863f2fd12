package conversion

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime/codec"
)

const (
	defaultMaxDecodedBytes = 8 << 20
	defaultMaxObjectBytes  = 3 << 20

	// textGrowth is how many times the length of what was sent an answer may have, besides the bound of one object. valueGrowth is
	// how many bytes the values of an answer may take for each byte that was sent, besides the bound of one object and the memory
	// of the values that were sent. The values of usual objects take about 10 times the length of their JSON; those of many small
	// maps take 40 times that.
	textGrowth, valueGrowth = 4, 8
	// freeValues is the memory of values up to which they are not counted.
	freeValues = 32 << 10
	// heldWeight is how many bytes are counted for one byte of the values of converted objects: for the values and their encoding.
	heldWeight = 2
	// smallObject is the length up to which a codec does not measure an object, and smallWeight is how many bytes are counted for
	// each byte of it.
	smallObject, smallWeight = 1 << 10, 8
)

// bounds are the bounds of answers. 0 is no bound.
type bounds struct {
	decoded int // of the values of one object
	object  int // of the JSON of one object
}

// boundsOf returns the bounds of options: 0 is the default, and a negative number is no bound.
func boundsOf(o Options) bounds {
	return bounds{
		decoded: max(cmp.Or(o.MaxDecodedBytes, defaultMaxDecodedBytes), 0),
		object:  max(cmp.Or(o.MaxObjectBytes, defaultMaxObjectBytes), 0),
	}
}

// whole returns the length in bytes of what is sent in a call, and the bounds of the answer. 0 is no bound.
func (b bounds) whole(items []*item) (sent, text, values int) {
	weight := 0
	for _, i := range items {
		sent += len(i.sent)
		if n, err := weigh(i.sent, 0); err == nil && b.decoded > 0 {
			weight += n
		}
	}
	if b.object > 0 {
		text = b.object + textGrowth*sent
	}
	if b.decoded > 0 {
		values = b.decoded + valueGrowth*sent + weight
	}
	return sent, text, values
}

// errObject returns the error for one object that exceeds the bounds, or nil.
func (b bounds) errObject(text []byte) error {
	if b.object > 0 && len(text) > b.object {
		return fmt.Errorf("the object is longer than %d bytes", b.object)
	}
	if err := new(codec.LimitError); errors.As(codec.CheckObject(text, codec.BodyLimits{Bytes: b.decoded}), &err) {
		return fmt.Errorf("the values of the object take too much memory: the limit is %d bytes", err.Most)
	}
	return nil
}

// weigh returns about how many bytes the values of a JSON text take. If there is a limit that they exceed, it returns a
// *codec.LimitError.
func weigh(text []byte, limit int) (int, error) {
	values := 0
	if len(text) <= smallObject {
		values = smallWeight * len(text)
	}
	err := codec.CheckObject(text, codec.BodyLimits{Bytes: limit, Weighed: func(n int) error {
		values = n
		return nil
	}})
	return values, err
}
