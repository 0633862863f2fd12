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

// CBOR returns the format application/cbor (RFC 8949) as kube-apiserver implements it
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4222-cbor-serializer). A body is one data item
// in the tag for self-described CBOR; the body of a request may lack the tag. Strings are written as byte strings, and read from
// byte strings and text strings. Maps are written with the shortest keys first.
//
// Integers and floating-point numbers keep their type, except where JSON also loses it: a Go float of 1 is written as 1. An
// integer that does not fit into 64 bits with a sign, which the API conventions do not allow, is written as a floating-point
// number.
//
// ToJSON returns an error where kube-apiserver does: for maps with duplicate keys, strings that are not UTF-8, NaN and
// infinities, integers that do not fit into 64 bits with a sign, simple values other than true, false and null, nesting deeper
// than 10,000, and data after the item. A byte string with one of the tags 21 to 23, which mark it as data, becomes its
// base64url, base64 or hexadecimal text. A Go field of type []byte has base64 in JSON, so only the tag 22 fits it; the other two
// tags are for fields of type string.
//
// A watch, which clients request as application/cbor, is a sequence of data items with the media type [CBORSequence]: see
// [AppendCBORTag] and the functions after it.
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

// cborToJSON returns a data item, with or without a tag, as JSON. Floating-point numbers are written with a point or an exponent.
func cborToJSON(item []byte) ([]byte, error) {
	var v any
	if err := direct.Unmarshal(item, &v); err != nil {
		return nil, refusedCBOR(item, err)
	}
	return json.Marshal(withPoints(v))
}

// refusedError is returned for an invalid data item whose kind could be read.
type refusedError struct {
	gvk schema.GroupVersionKind
	err error
}

func (b *refusedError) Error() string { return b.err.Error() }
func (b *refusedError) Unwrap() error { return b.err }

// refusedCBOR returns the error that kube-apiserver returns for an invalid data item: it first looks for kind and apiVersion.
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

// kindOfBad returns the kind that an invalid body names, completed from want. It is zero if the body could not be read at all.
func kindOfBad(err error, want schema.GroupVersionKind) schema.GroupVersionKind {
	var bad *refusedError
	if errors.As(err, &bad) {
		return complete(bad.gvk, want)
	}
	return schema.GroupVersionKind{}
}

// withPoints replaces the floating-point numbers in v, which it changes, by their texts: they would lose the point otherwise.
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

// AppendCBOR appends the JSON text of one value as one data item, without the tag for self-described CBOR (see [AppendCBORTag]).
// json is not changed.
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

// AppendCBORTag appends the head of the tag for self-described CBOR; one data item must follow. Each body has the tag, and so
// have each event of a watch and the object in it (https://www.rfc-editor.org/rfc/rfc8949#self-describe).
func AppendCBORTag(dst []byte) []byte { return append(dst, cborMark...) }

// The major types of data items: https://www.rfc-editor.org/rfc/rfc8949#section-3.1.
const (
	cborBytes = 2 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
)

// AppendCBORMap appends the head of a map with the given number of members. As many pairs of data items must follow. The keys are
// written with [AppendCBORString]: the shortest keys first, and keys of one length in the order of their bytes. A list has the
// keys kind, items, metadata and apiVersion; an event has type and object.
func AppendCBORMap(dst []byte, members int) []byte { return appendCBORHead(dst, cborMap, members) }

// AppendCBORArray appends the head of an array; as many data items must follow.
func AppendCBORArray(dst []byte, items int) []byte { return appendCBORHead(dst, cborArray, items) }

// AppendCBORString appends a string as kube-apiserver writes it, as a byte string.
func AppendCBORString(dst []byte, s string) []byte {
	return append(appendCBORHead(dst, cborBytes, len(s)), s...)
}

// appendCBORHead appends the head of a data item in the fewest bytes (https://www.rfc-editor.org/rfc/rfc8949#section-3). n must
// not be negative.
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
