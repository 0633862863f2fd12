package registry

import (
	"maps"
	"reflect"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxForms is the number of objects that a call keeps: the stored object, the new object as it was sent, and the changed object,
// perhaps twice.
const maxForms = 4

// forms are the objects of one call in other versions, the latest last. The same conversion returns the same object again.
type forms struct {
	mu  sync.Mutex // guards all
	all []form
}

// form is an object of the hub and its conversion to another version. Neither is changed.
type form struct {
	scheme  *runtime.Scheme
	gv      schema.GroupVersion
	of, obj runtime.Object
}

// KeepsForms makes the call keep the results of later calls of InVersion. It is for requests in a version that is not the hub.
func (c *Call) KeepsForms() {
	if c.forms == nil {
		c.forms = &forms{}
	}
}

// HasForms reports whether the call has kept a result of InVersion.
func (c *Call) HasForms() bool {
	if c.forms == nil {
		return false
	}
	c.forms.mu.Lock()
	defer c.forms.mu.Unlock()
	return len(c.forms.all) > 0
}

// InVersion returns obj, which is of the hub version of a kind in s, in version gv. The result must not be changed. After
// KeepsForms, objects that are equal are converted once. An object that was changed since its conversion is converted again.
//
// For a kind that another program converts (see runtime.KindOptions.ConvertAll), two objects are also equal if they differ only
// in metadata that the server sets and that such a conversion cannot change: uid, creationTimestamp, generation, resourceVersion
// and managedFields.
func (c *Call) InVersion(s *runtime.Scheme, obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	k := s.KindOf(obj)
	if c.forms == nil || k == nil || k.GVK.GroupVersion() == gv || k.Untyped() && !k.HasConvert() {
		return s.ToVersionContext(c.Context, obj, gv)
	}
	obj = ofKind(obj, k.GVK)
	if there := c.forms.find(s, k, obj, gv); there != nil {
		return there, nil
	}
	there, err := s.ToVersionContext(c.Context, obj, gv)
	if err != nil {
		return nil, err
	}
	c.forms.add(form{s, gv, obj.DeepCopyObject(), there})
	return there, nil
}

// ofKind returns obj if it has the kind gvk, or else a shallow copy with that kind.
func ofKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	v := reflect.ValueOf(obj)
	if obj.GetObjectKind().GroupVersionKind() == gvk || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return obj
	}
	same := reflect.New(v.Elem().Type())
	same.Elem().Set(v.Elem())
	obj = same.Interface().(runtime.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// find returns the conversion of an object of the kind k to version gv, or nil if there is none.
func (f *forms) find(s *runtime.Scheme, k *runtime.Kind, obj runtime.Object, gv schema.GroupVersion) runtime.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.all {
		if known.gv != gv || known.scheme != s {
			continue
		}
		if u, ok := obj.(*unstructured.Unstructured); ok && k.ConvertsAll() {
			if there := filledForm(u, known); there != nil {
				return there
			}
		} else if reflect.DeepEqual(known.of, obj) {
			return known.obj
		}
	}
	return nil
}

// add keeps a form. If there are too many, it replaces the oldest.
func (f *forms) add(one form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= maxForms {
		f.all = append(f.all[:0], f.all[1:]...)
	}
	f.all = append(f.all, one)
}

// filledForm returns the conversion of an object that is equal to known.of except for metadata that the server sets; else nil.
func filledForm(obj *unstructured.Unstructured, known form) runtime.Object {
	of, ok := known.of.(*unstructured.Unstructured)
	there, ok2 := known.obj.(*unstructured.Unstructured)
	if !ok || !ok2 || len(of.Object) != len(obj.Object) {
		return nil
	}
	for name, value := range obj.Object {
		if was, ok := of.Object[name]; !ok || name != "metadata" && !reflect.DeepEqual(was, value) {
			return nil
		}
	}
	metadata, was, shown := metadataMembers(obj), metadataMembers(of), metadataMembers(there)
	if metadata == nil || was == nil || shown == nil || !reflect.DeepEqual(withoutFilled(metadata), withoutFilled(was)) {
		return nil
	}
	filled := maps.Clone(metadata)
	for _, name := range []string{"labels", "annotations"} { // a conversion may change them
		delete(filled, name)
		if v, ok := shown[name]; ok {
			filled[name] = v
		}
	}
	out := maps.Clone(there.Object)
	out["metadata"] = filled
	return (&unstructured.Unstructured{Object: out}).DeepCopy() // obj may be changed after this
}

func metadataMembers(u *unstructured.Unstructured) map[string]any {
	members, _ := u.Object["metadata"].(map[string]any)
	return members
}

// withoutFilled returns metadata without the fields that the server sets.
func withoutFilled(metadata map[string]any) map[string]any {
	out := maps.Clone(metadata)
	for _, name := range []string{"uid", "creationTimestamp", "generation", "resourceVersion", "managedFields"} {
		delete(out, name)
	}
	return out
}
