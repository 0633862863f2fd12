package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decode makes a defaulted object of a body. kind and apiVersion come from want where the body is silent. A body
// of another registered version of want's kind is decoded as that version: compare Decoded.GVK. A body of another
// kind is an error, as is one that is no object of its type.
//
// For a want without a Go type the body must say of which kind and apiVersion it is, and one of any kind is decoded: compare
// Decoded.GVK. All fields of it are kept. Its metadata is made what it is in objects of a Go type: fields that objects do
// not have there are left out and reported, and values of another type are an error.
//
// Protobuf has no names of fields: there are never problems with those that are unknown. The type of a body in it must
// have protobuf methods.
//
// On an error Decoded.GVK is what could be learned of the body; it is zero when the body could not be read at
// all. The caller words the answer accordingly.
func Decode(s *runtime.Scheme, f Format, body []byte, want schema.GroupVersionKind, v Validation) (Decoded, error) {
	return DecodeWithin(s, f, body, want, v, BodyLimits{})
}

// DecodeWithin is Decode of a body that is refused, before anything is made of it, when its values would go beyond the limits.
// Then the error is a *LimitError, and Decoded.GVK is zero or want.
func DecodeWithin(s *runtime.Scheme, f Format, body []byte, want schema.GroupVersionKind, v Validation, l BodyLimits) (Decoded, error) {
	if l = l.of(body); f == JSON() {
		if err := l.check(s.Lookup(want), body, nil); err != nil {
			return Decoded{GVK: want}, err
		}
	}
	if d, ok := decodeUsual(s, f, body, want); ok {
		return d, nil
	}
	return decodeAny(s, f, body, want, v, l)
}

// decodeAny is DecodeWithin of everything.
func decodeAny(s *runtime.Scheme, f Format, body []byte, want schema.GroupVersionKind, v Validation, l BodyLimits) (Decoded, error) {
	from, err := readBody(f, body, v, l)
	if err != nil {
		return Decoded{GVK: kindOfBad(err, want)}, err
	}
	d := Decoded{GVK: complete(from.gvk, want), Problems: from.problems}
	wanted := s.Lookup(want)
	untyped := wanted != nil && wanted.Untyped()
	into := wanted
	if !untyped {
		into = s.Lookup(d.GVK)
	}
	if f != JSON() || into != wanted { // else it has been done
		if err := l.check(into, from.text, from.message); err != nil {
			return Decoded{GVK: want}, err
		}
	}
	if untyped {
		return from.untyped(s, l)
	}
	obj, err := s.New(d.GVK)
	if err != nil {
		return d, err
	}
	if d.GVK.GroupKind() != want.GroupKind() && !sameType(s, obj, want) {
		return d, fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", d.GVK.Version, d.GVK.Kind, want.Version, want.Kind)
	}
	more, err := from.fill(obj)
	if err != nil {
		return d, err
	}
	s.Default(obj)
	obj.GetObjectKind().SetGroupVersionKind(d.GVK)
	d.Object, d.Problems = obj, append(d.Problems, more...)
	return d, nil
}

// decodeUsual is Decode of JSON that has nothing unusual about it, of which most bodies are: the object is of the kind that
// is wanted, and there are no problems. Then it is not read twice, once to find out what it is. ok is false for all others.
func decodeUsual(s *runtime.Scheme, f Format, body []byte, want schema.GroupVersionKind) (d Decoded, ok bool) {
	if f != JSON() {
		return Decoded{}, false
	}
	kind := s.Lookup(want)
	if kind == nil {
		return Decoded{}, false
	}
	obj, ok := kind.Read(body)
	if !ok {
		return Decoded{}, false
	}
	said, ok := obj.GetObjectKind().(*metav1.TypeMeta)
	if !ok {
		return Decoded{}, false
	}
	canonical := says(said, want)
	if !canonical {
		gv, err := schema.ParseGroupVersion(said.APIVersion)
		if err != nil || complete(gv.WithKind(said.Kind), want) != want {
			return Decoded{}, false
		}
	}
	kind.SetDefaults(obj)
	if !canonical {
		obj.GetObjectKind().SetGroupVersionKind(want)
	}
	return Decoded{Object: obj, GVK: want}, true
}

// says tells whether an object says that it is of gvk, in the canonical words.
func says(m *metav1.TypeMeta, gvk schema.GroupVersionKind) bool {
	version, ok := m.APIVersion, true
	if gvk.Group != "" {
		if version, ok = strings.CutPrefix(version, gvk.Group); ok {
			version, ok = strings.CutPrefix(version, "/")
		}
	}
	return ok && version == gvk.Version && m.Kind == gvk.Kind
}

// read is a body: what it says of itself, and how it gets into an object of that kind.
type read struct {
	gvk        schema.GroupVersionKind
	problems   []error // found already
	fill       func(obj runtime.Object) (problems []error, err error)
	text       []byte // of it as JSON; nil in protobuf
	validation Validation
	message    []byte // of it in protobuf
}

func readBody(f Format, body []byte, v Validation, l BodyLimits) (read, error) {
	if f, is := f.(*ProtobufFormat); is {
		gvk, message, err := openBody(body)
		fill := func(obj runtime.Object) ([]error, error) { return nil, f.fillMessage(obj, message) }
		return read{gvk: gvk, fill: fill, message: message}, err
	}
	text, problems, err := ToJSONWithin(f, body, v, l)
	if err != nil {
		return read{}, err
	}
	gvk, err := kindOf(text)
	fill := func(obj runtime.Object) ([]error, error) { return unmarshal(text, obj, v) }
	return read{gvk: gvk, problems: problems, fill: fill, text: text, validation: v}, err
}

// sameType reports whether obj is what want would be: the options of a request are the same in every group.
func sameType(s *runtime.Scheme, obj runtime.Object, want schema.GroupVersionKind) bool {
	other, err := s.New(want)
	return err == nil && reflect.TypeOf(other) == reflect.TypeOf(obj)
}

// StrictError returns the error by which a body with problems is refused under Strict: `strict decoding error: `
// and the problems.
func StrictError(problems []error) error { return apiruntime.NewStrictDecodingError(problems) }

// kindOf reads what a body says of itself.
func kindOf(text []byte) (schema.GroupVersionKind, error) {
	said := struct { // type and tags show in the text of errors, and are those kube-apiserver shows
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}{}
	if err := json.Unmarshal(text, &said); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
	}
	gv, err := schema.ParseGroupVersion(said.APIVersion)
	return gv.WithKind(said.Kind), err
}

// untyped makes the object of a body that is for a kind without a Go type. It is taken as the kind that it says it is.
func (r read) untyped(s *runtime.Scheme, l BodyLimits) (Decoded, error) {
	d := Decoded{GVK: r.gvk, Problems: r.problems}
	if r.text == nil {
		return d, errors.New("a kind without a Go type has no protobuf form")
	}
	if d.GVK.Kind == "" {
		return d, apiruntime.NewMissingKindErr(string(r.text))
	}
	u := &unstructured.Unstructured{}
	problems, err := r.fill(u)
	if err != nil {
		return d, err
	}
	d.Problems = append(d.Problems, problems...)
	unknown, err := conform(s.KindOf(u), u, r.validation)
	if err != nil {
		return d, err
	}
	// Members such as "Kind" are the object's own, and of two the last one counts, also if it is null.
	if d.GVK = u.GroupVersionKind(); d.GVK.Kind == "" {
		return d, apiruntime.NewMissingKindErr(string(r.text))
	}
	if k := s.KindOf(u); k != nil {
		if err := k.SetDefaultsWithin(u, l.defaults); err != nil {
			return d, err
		}
	}
	d.Object, d.Problems = u, append(d.Problems, unknown...)
	return d, nil
}
