package registry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry/internal/equal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape accesses the content of an object beyond its metadata. Both objects of a call are of the kind.
type shape interface {
	// hasStatus reports whether the kind has a status that users do not write.
	hasStatus() bool
	// dropStatus clears the status.
	dropStatus(obj runtime.Object)
	// takeStatus sets the status of obj to a copy of the status of from.
	takeStatus(obj, from runtime.Object)
	// sameContent reports whether two objects are equal in all but kind, apiVersion, metadata and status.
	sameContent(a, b runtime.Object) bool
	// contentNames returns the JSON names of the fields that sameContent compares. For untyped objects, whose fields are not
	// known, it returns spec only, as kube-apiserver does for custom resources.
	contentNames() []string
}

// structShape is the shape of a Go struct. It uses the JSON names of the fields.
type structShape struct {
	status  []int    // index of the field "status"; nil if there is none
	content [][]int  // indexes of the fields that are neither metadata nor status
	names   []string // the JSON names of those fields
}

// shapeOf returns the shape of the struct type t. If withStatus is false, the status is part of the content. A status without
// fields is no status: a Resource without a status has a struct{} there.
func shapeOf(t reflect.Type, withStatus bool) shape {
	if isUntyped(t) {
		return untypedShape{withStatus}
	}
	s := &structShape{}
	s.scan(t, nil)
	if !withStatus && s.status != nil {
		s.content, s.names = append(s.content, s.status), append(s.names, "status")
		s.status = nil
	}
	return s
}

// HasStatus reports whether objects of the Go struct type t have a status: a field "status" in JSON, of a type that is not an
// empty struct. Untyped objects have a status.
func HasStatus(t reflect.Type) bool { return shapeOf(t, true).hasStatus() }

// scan collects the fields of t. The fields of embedded structs without a JSON name are included.
func (s *structShape) scan(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(at[:len(at):len(at)], i)
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Type == reflect.TypeFor[metav1.TypeMeta]() || f.Type == reflect.TypeFor[metav1.ObjectMeta]():
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.scan(f.Type, index)
		case !f.IsExported():
		case name == "status" || name == "" && f.Name == "status":
			if !isEmptyStruct(f.Type) {
				s.status = index
			}
		case isEmptyStruct(f.Type):
		default:
			if name == "" {
				name = f.Name
			}
			s.content, s.names = append(s.content, index), append(s.names, name)
		}
	}
}

func isEmptyStruct(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.NumField() == 0 }

func (s *structShape) hasStatus() bool { return s.status != nil }

func (s *structShape) contentNames() []string { return s.names }

func (s *structShape) dropStatus(obj runtime.Object) {
	if s.status != nil {
		reflect.ValueOf(obj).Elem().FieldByIndex(s.status).SetZero()
	}
}

func (s *structShape) takeStatus(obj, from runtime.Object) {
	if s.status == nil {
		return
	}
	to := reflect.ValueOf(obj).Elem().FieldByIndex(s.status)
	if v := reflect.ValueOf(runtime.DeepCopy(reflect.ValueOf(from).Elem().FieldByIndex(s.status).Interface())); v.IsValid() {
		to.Set(v)
	} else {
		to.SetZero()
	}
}

func (s *structShape) sameContent(a, b runtime.Object) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, index := range s.content {
		if !sameValue(x.FieldByIndex(index), y.FieldByIndex(index)) {
			return false
		}
	}
	return true
}

// sameValue compares two values of one type by their JSON. API times in different zones are equal, and so are an empty and a nil
// slice or map.
func sameValue(x, y reflect.Value) bool {
	switch x.Kind() {
	case reflect.Map, reflect.Slice:
		if x.Len() == 0 && y.Len() == 0 {
			return true
		}
	}
	return sameText(x.Interface(), y.Interface())
}

// sameText reports whether two values of one type are the same in JSON.
func sameText(x, y any) bool {
	if equal.Values(x, y) {
		return true
	}
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// isUntyped reports whether t is the type of objects without a Go type.
func isUntyped(t reflect.Type) bool { return t == reflect.TypeFor[unstructured.Unstructured]() }

// converts reports whether a conversion function converts between the registry's version and the hub.
func (r *Registry) converts() bool {
	return r.kind.HasConvert() && !r.version.Empty() && r.version != r.kind.GVK.GroupVersion()
}
