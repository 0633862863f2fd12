package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/weight"
)

// BodyLimits limit the memory that decoding a body may take: three megabytes of text can contain a million structs. The zero
// BodyLimits set no limits. A field that is 0 or nil sets none.
type BodyLimits struct {
	// Bytes limits the memory of the decoded values, as far as it can be computed from the body and the Go type before decoding.
	// It counts structs, lists, maps and interfaces and the values that they point to. It does not count the bytes of strings,
	// which are at most those of the body. Decoding allocates a few times as much in all. Bodies that are too small to exceed the
	// limit are not measured. The defaults of an object without a Go type may take half of Bytes, including their strings.
	Bytes int
	// Items limits the items of each list and map in an object's metadata: owner references, finalizers, managed fields, labels
	// and annotations. Each item costs a server more than its memory.
	Items int
	// Weighed is called with the memory that the values of a body take, counted as for Bytes, if the body is larger than a
	// kilobyte and within the limits. It is called before the body is decoded, again for JSON that was converted from another
	// format, and with the size of defaults if there are many. Its error is returned.
	Weighed func(bytes int) error

	most    int                   // Bytes, also for a body that is too small to exceed it
	weighed func(bytes int) error // Weighed, also for a body that is not measured
}

// LimitError is returned for a body that exceeds one of the BodyLimits.
type LimitError struct {
	Field string // the list with too many items, such as "metadata.finalizers"; "": the values take too much memory
	Most  int    // the limit, in items or in bytes
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: must have at most %d items", e.Field, e.Most)
	}
	return fmt.Sprintf("the values in the body take too much memory: limit is %d bytes", e.Most)
}

// A body of up to tinyBody bytes is not measured. A body of up to smallBody bytes cannot exceed the usual limits: values do not
// take that much more memory than their text. A body smaller than Bytes/mostGrowth cannot exceed a smaller limit either: values
// take at most mostGrowth times the size of their text.
const (
	tinyBody   = 1 << 10
	smallBody  = 8 << 10
	mostGrowth = 512
)

// leastItem is the smallest size of an item, in bytes.
const leastItem = 2

// of returns those of the limits that a body of this size could exceed.
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

// defaults enforces the limits for the defaults of an object, which are not part of the body's text.
func (l BodyLimits) defaults(bytes int) error {
	const weight = 2 // defaults are counted as the size of their JSON
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

// check enforces the limits for JSON text or a protobuf message that is decoded into a kind. kind may be nil.
func (l BodyLimits) check(kind *runtime.Kind, text, message []byte) error {
	switch {
	case l.none() || kind == nil:
		return nil
	case message != nil:
		return limitError(kind.WeighMessage(message, l.Bytes, l.Items, l.Weighed))
	}
	return limitError(kind.Weigh(text, l.Bytes, l.Items, l.Weighed))
}

// into enforces the limits for text or a message that is decoded into obj.
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

// CheckObject returns a *LimitError if JSON text, decoded into values without a Go type, exceeds the limits.
func CheckObject(text []byte, l BodyLimits) error {
	if l = l.of(text); l.none() {
		return nil
	}
	var types weight.Types
	return limitError(types.Object(text, l.limit()))
}

// UnmarshalWithin is Unmarshal into a value without a Go type. It returns the error of CheckObject if there is one.
func UnmarshalWithin(text []byte, into any, v Validation, l BodyLimits) (problems []error, err error) {
	if err := CheckObject(text, l); err != nil {
		return nil, err
	}
	return Unmarshal(text, into, v)
}

// ToJSONWithin is f.ToJSON with limits. It returns a *LimitError if the values of the body would take more than l.Bytes. The
// values of the resulting JSON are not counted.
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

// limitError converts a LimitError of package weight to one of this package.
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
