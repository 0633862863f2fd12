package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/weight"
)

// BodyLimits bound what a body may ask for that is decoded: three megabytes of text can say that there are a million structs.
// The zero BodyLimits are none.
type BodyLimits struct {
	// Bytes is how much memory the values may take, as far as can be told from the body and the Go type before anything is
	// decoded: the slots of structs, lists, maps and interfaces, and what they point to, but not the bytes of strings, which
	// are not more than those of the body. Bodies that cannot have as much are not looked at. What decoding allocates in all is
	// some times that. The defaults of an object without a Go type may take half as much, their texts included.
	Bytes int
	// Items is how many items each list and map in an object's metadata may have: owner references, finalizers, managed
	// fields, labels and annotations. Each of them costs a server more than its memory.
	Items int
	// Weighed is called with what the values of a body of more than a kilobyte take, counted as for Bytes, once that is known to be
	// within the limits: before anything is decoded, and again for JSON that is made of another format; and, for many defaults, with
	// what they take. Its error is returned. nil is nobody.
	Weighed func(bytes int) error

	most    int                   // Bytes, also for a body that cannot be beyond it
	weighed func(bytes int) error // Weighed, also for a body that is not weighed
}

// LimitError is returned for a body that is beyond one of BodyLimits.
type LimitError struct {
	Field string // such as "metadata.finalizers", of which there are too many; "": the values take too much memory
	Most  int    // of items, or of bytes
}

func (e *LimitError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: must have at most %d items", e.Field, e.Most)
	}
	return fmt.Sprintf("the values in the body take too much memory: limit is %d bytes", e.Most)
}

// A body of up to tinyBody bytes is not weighed. One of up to smallBody is not beyond limits: no values take so much more than their
// text. Of smaller limits than the usual they could be mostGrowth times as large.
const (
	tinyBody   = 1 << 10
	smallBody  = 8 << 10
	mostGrowth = 512
)

// leastItem is how few bytes an item takes.
const leastItem = 2

// of are the limits that a body could be beyond.
func (l BodyLimits) of(body []byte) BodyLimits {
	l.most, l.weighed = l.Bytes, l.Weighed
	if len(body) <= min(smallBody, l.Bytes/mostGrowth) {
		l.Bytes = 0
	}
	if len(body) < leastItem*l.Items {
		l.Items = 0
	}
	if len(body) <= tinyBody {
		l.Weighed = nil
	}
	return l
}

func (l BodyLimits) none() bool { return l.Bytes == 0 && l.Items == 0 && l.Weighed == nil }

// defaults enforces the limits of what defaults add to an object, which no text has.
func (l BodyLimits) defaults(bytes int) error {
	const weight = 2 // they count about as much as JSON takes
	if l.most > 0 && bytes > l.most/weight {
		return &LimitError{Most: l.most}
	}
	if l.weighed != nil {
		return l.weighed(weight * bytes)
	}
	return nil
}

func (l BodyLimits) limit() weight.Limit {
	return weight.Limit{Bytes: l.Bytes, Items: l.Items, Weighed: l.Weighed}
}

// check enforces the limits of what is read into a kind: JSON, or else a protobuf message. kind may be nil.
func (l BodyLimits) check(kind *runtime.Kind, text, message []byte) error {
	switch {
	case l.none() || kind == nil:
		return nil
	case message != nil:
		return limitError(kind.WeighMessage(message, l.Bytes, l.Items, l.Weighed))
	}
	return limitError(kind.Weigh(text, l.Bytes, l.Items, l.Weighed))
}

// into enforces the limits of what is about to be read into obj.
func (l BodyLimits) into(obj runtime.Object, text, message []byte) error {
	if l.none() {
		return nil
	}
	var types weight.Types
	t, limit := reflect.TypeOf(obj).Elem(), l.limit()
	if message != nil {
		return limitError(types.Protobuf(message, t, limit))
	}
	return limitError(types.JSON(text, t, limit))
}

// CheckObject reports whether JSON, read into values without a Go type, goes beyond the limits: then it returns a *LimitError.
func CheckObject(text []byte, l BodyLimits) error {
	if l = l.of(text); l.none() {
		return nil
	}
	var types weight.Types
	return limitError(types.Object(text, l.limit()))
}

// UnmarshalWithin is Unmarshal into a value without a Go type, of a text for which CheckObject returns no error.
func UnmarshalWithin(text []byte, into any, v Validation, l BodyLimits) (problems []error, err error) {
	if err := CheckObject(text, l); err != nil {
		return nil, err
	}
	return Unmarshal(text, into, v)
}

// ToJSONWithin is f.ToJSON of a body that is refused, as DecodeWithin does, when its values would take more than l.Bytes.
// Those of the JSON are not counted.
func ToJSONWithin(f Format, body []byte, v Validation, l BodyLimits) (text []byte, problems []error, err error) {
	if l = l.of(body); l.none() {
		return f.ToJSON(body, v)
	}
	limit := weight.Limit{Bytes: l.Bytes, Weighed: l.Weighed}
	switch f.(type) {
	case cborFormat:
		err = weight.CBOR(body, limit)
	case yamlFormat:
		err = weight.YAML(body, limit)
	}
	if err != nil {
		return nil, nil, limitError(err)
	}
	return f.ToJSON(body, v)
}

// limitError makes the error of package weight one of this package.
func limitError(err error) error {
	var over *weight.LimitError
	switch {
	case !errors.As(err, &over):
		return err
	case over.Field != "":
		return &LimitError{"metadata." + over.Field, over.Most}
	}
	return &LimitError{Most: over.Most}
}
