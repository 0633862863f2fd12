package codec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "sigs.k8s.io/json"
)

// CBOR returns the format application/cbor (RFC 8949) as kube-apiserver has it
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4222-cbor-serializer): a body is one
// data item in the tag for self-described CBOR, which the body of a request may lack. Texts are written as byte strings, and
// read as these and as text strings; maps are written with the shortest keys first; whole numbers and floating-point
// numbers stay what they are, but for what has no float in JSON either: a Go float of 1 is written 1. A whole number beyond
// 64 bits with a sign, which the API conventions do not have, is written as a floating-point number.
//
// ToJSON refuses what kube-apiserver refuses: maps with a key twice, texts that are no UTF-8, NaN and infinities, integers
// beyond 64 bits with a sign, simple values but true, false and null, nesting deeper than 10,000, and anything after the
// item. A byte string that a tag (21 to 23) says to be data becomes its base64url, base64 or hexadecimal text: as JSON has
// it, a []byte is base64, so the other two are for strings only.
//
// A watch, which is asked for as application/cbor, is a sequence of items of the type CBORSequence; see AppendCBORTag and
// those beside it.
func CBOR() Format { return cborFormat{} }

// CBORSequence is the media type of a sequence of data items: https://www.rfc-editor.org/rfc/rfc8742.
const CBORSequence = "application/cbor-seq"

type cborFormat struct{}

func (cborFormat) MediaType() string { return "application/cbor" }
func (cborFormat) Streams() bool     { return true }

func (cborFormat) ToJSON(body []byte, _ Validation) ([]byte, []error, error) {
	text, err := cborToJSON(body)
	return text, nil, err
}

func (cborFormat) FromJSON(text []byte, _ bool) ([]byte, error) {
	return AppendCBOR(AppendCBORTag(make([]byte, 0, len(text))), text)
}

// IsCBOR reports whether f is the format that CBOR returns.
func IsCBOR(f Format) bool {
	_, is := f.(cborFormat)
	return is
}

// cborToJSON returns a data item, tagged or not, as JSON whose numbers have a point or an exponent if they are floats.
func cborToJSON(item []byte) ([]byte, error) {
	var v any
	if err := direct.Unmarshal(item, &v); err != nil {
		return nil, refusedCBOR(item, err)
	}
	return json.Marshal(withPoints(v))
}

// refusedError is why a data item is refused that says of what kind it is.
type refusedError struct {
	gvk schema.GroupVersionKind
	err error
}

func (b *refusedError) Error() string { return b.err.Error() }
func (b *refusedError) Unwrap() error { return b.err }

// refusedCBOR words why a data item is refused as kube-apiserver does, which first looks for kind and apiVersion.
func refusedCBOR(item []byte, err error) error {
	_, gvk, why := cbor.NewSerializer(nil, nil).Decode(item, nil, &unstructured.Unstructured{})
	switch {
	case gvk != nil:
		return &refusedError{*gvk, err}
	case why != nil:
		return why
	}
	return err
}

// kindOfBad is what a refused body said of itself, completed from want; zero when it could not be read at all.
func kindOfBad(err error, want schema.GroupVersionKind) schema.GroupVersionKind {
	var bad *refusedError
	if errors.As(err, &bad) {
		return complete(bad.gvk, want)
	}
	return schema.GroupVersionKind{}
}

// withPoints makes texts of the floating-point numbers in v, which is changed: they would lose the point otherwise.
func withPoints(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			switch member.(type) {
			case map[string]any, []any, float64:
				v[key] = withPoints(member)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = withPoints(item)
		}
	case float64:
		text, err := json.Marshal(v)
		if err != nil {
			return v
		}
		if !strings.ContainsAny(string(text), ".e") {
			text = append(text, ".0"...)
		}
		return json.Number(text)
	}
	return v
}

// AppendCBOR appends JSON text, of one value, as one data item without the tag. json is not changed.
func AppendCBOR(dst, json []byte) ([]byte, error) {
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &v); err != nil {
		return nil, err
	}
	item, err := direct.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write CBOR: %w", err)
	}
	return append(dst, item...), nil
}

// AppendCBORTag appends the head of the tag for self-described CBOR, which one data item follows: each body, each event
// of a watch and the object in it have the tag (https://www.rfc-editor.org/rfc/rfc8949#self-describe).
func AppendCBORTag(dst []byte) []byte { return append(dst, cborMark...) }

// The major types of data items: https://www.rfc-editor.org/rfc/rfc8949#section-3.1.
const (
	cborBytes = 2 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
)

// AppendCBORMap appends the head of a map: as many pairs of data items follow, keys by AppendCBORString, the shortest
// first and those of one length in the order of their bytes. A list has kind, items, metadata, apiVersion; an event type,
// object.
func AppendCBORMap(dst []byte, members int) []byte { return appendCBORHead(dst, cborMap, members) }

// AppendCBORArray appends the head of an array: as many data items follow.
func AppendCBORArray(dst []byte, items int) []byte { return appendCBORHead(dst, cborArray, items) }

// AppendCBORString appends a text as kube-apiserver writes it, which is as a byte string.
func AppendCBORString(dst []byte, s string) []byte {
	return append(appendCBORHead(dst, cborBytes, len(s)), s...)
}

// appendCBORHead appends the head of a data item in the fewest bytes
// (https://www.rfc-editor.org/rfc/rfc8949#section-3). n is not negative.
func appendCBORHead(dst []byte, major byte, n int) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case uint64(n) <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), uint64(n))
}
