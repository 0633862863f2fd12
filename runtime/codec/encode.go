package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Encode returns obj as JSON in the form of a response body: fields in struct order, characters HTML-escaped, a newline at the
// end. kind and apiVersion are those that are set in obj. A list without items has []. The status of an object is left out if its type
// is struct{}.
func Encode(obj runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(encodable(withItems(obj))); err != nil {
		return nil, err
	}
	text := out.Bytes()
	if short := withoutVoid(text[:len(text)-1], obj); len(short) < len(text)-1 {
		return append(short, '\n'), nil
	}
	return text, nil
}

// withoutVoid returns the JSON of obj without its last member if that is the member of a struct{}: see [jsonfield.Void]. It may change
// text.
func withoutVoid(text []byte, obj runtime.Object) []byte {
	const void = `:{}}`
	if !bytes.HasSuffix(text, []byte(void)) {
		return text
	}
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer {
		return text
	}
	if name := jsonfield.Void(t.Elem()); name != "" {
		if short, ok := bytes.CutSuffix(text, []byte(`,"`+name+`"`+void)); ok {
			return append(short, '}')
		}
	}
	return text
}

// encodable returns the value to encode for obj. For an untyped object it is the map of its members: the object's own method
// would encode twice, and returns an error without a kind.
func encodable(obj runtime.Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
		return u.UnstructuredContent()
	}
	return obj
}

// withItems returns obj, or a shallow copy with empty instead of nil Items.
func withItems(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return obj
	}
	items := v.Elem().FieldByName("Items")
	if _, isList := obj.(metav1.ListMetaAccessor); !isList || !items.IsValid() || items.Kind() != reflect.Slice || !items.IsNil() {
		return obj
	}
	list := shallow(obj)
	items = reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	return list
}

// shallow returns a copy of the struct that obj points to.
func shallow(obj runtime.Object) runtime.Object {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem())
	return c.Interface().(runtime.Object)
}

// EncodeDocument returns obj in canonical form, with kind and apiVersion of gvk and without resourceVersion. obj is not changed,
// and other goroutines may read it meanwhile.
func EncodeDocument(obj runtime.Object, gvk schema.GroupVersionKind) (Document, error) {
	if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.IsNil() {
		return Document{}, fmt.Errorf("encode %s: the object is nil or no pointer", gvk)
	}
	var c runtime.Object
	if u, ok := obj.(apiruntime.Unstructured); ok {
		c = shallowUnstructured(u)
	} else {
		c = shallow(obj)
	}
	c.GetObjectKind().SetGroupVersionKind(gvk)
	if m, ok := c.(metav1.Object); ok {
		m.SetResourceVersion("")
	}
	text, err := json.Marshal(encodable(c))
	if err != nil {
		return Document{}, err
	}
	return ParseDocument(withoutVoid(text, c))
}

// shallowUnstructured copies the two maps that EncodeDocument changes. The copy always has metadata, because all documents have
// it.
func shallowUnstructured(u apiruntime.Unstructured) runtime.Object {
	c := u.NewEmptyInstance()
	content := maps.Clone(u.UnstructuredContent())
	switch m := content["metadata"].(type) {
	case map[string]any:
		content["metadata"] = maps.Clone(m)
	case nil:
		content["metadata"] = map[string]any{}
	}
	c.SetUnstructuredContent(content)
	return c
}
