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

// Decode decodes a body into an object and sets defaults. If the body lacks kind or apiVersion, want supplies them. A body of
// another registered version of want's kind is decoded as that version, so compare Decoded.GVK. A body of another kind is an
// error, and so is a body that is not an object of its type.
//
// If want has no Go type, the body must have kind and apiVersion, and a body of any kind is decoded: compare Decoded.GVK. All
// fields are kept, except in metadata: fields that a metav1.ObjectMeta does not have are dropped and reported, and values of
// another type are an error.
//
// A list is decoded like an object, and its items like objects of their kinds, except that items get no defaults.
//
// Protobuf bodies have no field names, so unknown fields are never reported. The Go type of such a body must have protobuf
// methods or tags.
//
// On an error, Decoded.GVK is what could be read from the body, and zero if the body could not be read at all. Callers use it to
// choose the response.
func Decode(s *runtime.Scheme, f Format, body []byte, want schema.GroupVersionKind, v Validation) (Decoded, error) {
	return DecodeWithin(s, f, body, want, v, BodyLimits{})
}

// DecodeWithin is Decode with limits. It returns a *LimitError, before anything is decoded, if the values of the body would
// exceed them. Decoded.GVK is then want, or zero if the body was not converted to JSON.
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

// decodeAny is DecodeWithin for every body.
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
	if f != JSON() || into != wanted { // otherwise it has been done
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
	d.Problems = append(d.Problems, more...)
	if list, ok := obj.(*unstructured.UnstructuredList); ok {
		if more, err = conformList(s, list, v); err != nil {
			return d, err
		}
		d.Problems = append(d.Problems, more...)
	}
	s.Default(obj)
	obj.GetObjectKind().SetGroupVersionKind(d.GVK)
	d.Object = obj
	return d, nil
}

// decodeUsual is Decode for JSON without anything unusual, as most bodies are: the object is of the kind want, and there are no
// problems. The body is then read once, and not once more to find its kind. ok is false for all other bodies.
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
	typeMeta, ok := obj.GetObjectKind().(*metav1.TypeMeta)
	if !ok {
		return Decoded{}, false
	}
	canonical := says(typeMeta, want)
	if !canonical {
		gv, err := schema.ParseGroupVersion(typeMeta.APIVersion)
		if err != nil || complete(gv.WithKind(typeMeta.Kind), want) != want {
			return Decoded{}, false
		}
	}
	kind.SetDefaults(obj)
	if !canonical {
		obj.GetObjectKind().SetGroupVersionKind(want)
	}
	return Decoded{Object: obj, GVK: want}, true
}

// says reports whether m names the kind gvk, in the canonical form.
func says(m *metav1.TypeMeta, gvk schema.GroupVersionKind) bool {
	version, ok := m.APIVersion, true
	if gvk.Group != "" {
		if version, ok = strings.CutPrefix(version, gvk.Group); ok {
			version, ok = strings.CutPrefix(version, "/")
		}
	}
	return ok && version == gvk.Version && m.Kind == gvk.Kind
}

// read is a body whose kind is known but which is not decoded yet.
type read struct {
	gvk        schema.GroupVersionKind
	problems   []error // those that were found already
	fill       func(obj runtime.Object) (problems []error, err error)
	text       []byte // the body as JSON; nil for protobuf
	quoted     []byte // the body as errors quote it: that of a text format as it was sent
	validation Validation
	message    []byte // the protobuf message of the body
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
	quoted := text
	if f == YAML() {
		quoted = body
	}
	return read{gvk: gvk, problems: problems, fill: fill, text: text, quoted: quoted, validation: v}, err
}

// sameType reports whether obj has the Go type of want: the options of a request have the same type in every group.
func sameType(s *runtime.Scheme, obj runtime.Object, want schema.GroupVersionKind) bool {
	other, err := s.New(want)
	return err == nil && reflect.TypeOf(other) == reflect.TypeOf(obj)
}

// StrictError returns the error for a body that is refused under Strict: `strict decoding error: ` followed by the problems.
func StrictError(problems []error) error { return apiruntime.NewStrictDecodingError(problems) }

// kindOf reads kind and apiVersion from a body in JSON.
func kindOf(text []byte) (schema.GroupVersionKind, error) {
	typeMeta := struct { // the type and its tags show in the text of errors, which is that of kube-apiserver
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}{}
	if err := json.Unmarshal(text, &typeMeta); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
	}
	gv, err := schema.ParseGroupVersion(typeMeta.APIVersion)
	return gv.WithKind(typeMeta.Kind), err
}

// untyped decodes a body for a kind without a Go type. The object is of the kind that the body names.
func (r read) untyped(s *runtime.Scheme, l BodyLimits) (Decoded, error) {
	d := Decoded{GVK: r.gvk, Problems: r.problems}
	if r.text == nil {
		return d, errors.New("a kind without a Go type has no protobuf form")
	}
	if d.GVK.Kind == "" {
		return d, apiruntime.NewMissingKindErr(string(r.quoted))
	}
	u := &unstructured.Unstructured{}
	problems, err := r.fill(u)
	if err != nil {
		return d, err
	}
	d.Problems = append(d.Problems, problems...)
	unknown, err := conform(s.KindOf(u), u, "", r.validation)
	if err != nil {
		return d, err
	}
	// Members such as "Kind" are ordinary members of the object. Of duplicate members the last one counts, also if it is null.
	if d.GVK = u.GroupVersionKind(); d.GVK.Kind == "" {
		return d, apiruntime.NewMissingKindErr(string(r.quoted))
	}
	if k := s.KindOf(u); k != nil {
		if err := k.SetDefaultsWithin(u, l.defaults); err != nil {
			return d, err
		}
	}
	d.Object, d.Problems = u, append(d.Problems, unknown...)
	return d, nil
}
