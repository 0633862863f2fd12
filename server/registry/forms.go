package registry

import (
	"maps"
	"reflect"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxForms bounds what a call keeps: the stored object, the new one as it was sent, and what it was made, perhaps twice.
const maxForms = 4

// forms are what objects of one call are in other versions, the latest last. Who asks for the same again gets the same.
type forms struct {
	mu  sync.Mutex // guards all
	all []form
}

// form is what an object of the hub is in another version. Nobody changes either.
type form struct {
	scheme  *runtime.Scheme
	gv      schema.GroupVersion
	of, obj runtime.Object
}

// KeepsForms has the call keep from now on what InVersion makes: for a request in another version than the hub's.
func (c *Call) KeepsForms() {
	if c.forms == nil {
		c.forms = &forms{}
	}
}

// HasForms reports whether the call has kept something that InVersion made.
func (c *Call) HasForms() bool {
	if c.forms == nil {
		return false
	}
	c.forms.mu.Lock()
	defer c.forms.mu.Unlock()
	return len(c.forms.all) > 0
}

// InVersion returns obj, of the hub version of a kind of s, in version gv. The result is not to be changed. After KeepsForms a
// conversion is made once of all objects that are equal, whoever asks: what was changed since it was converted is converted again.
//
// Of a kind that is converted by calls of somebody else (see runtime.KindOptions.ConvertAll) objects are equal if they
// differ in nothing but the metadata that the server fills in, which such a conversion cannot change: uid,
// creationTimestamp, generation, resourceVersion and managedFields.
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

// ofKind returns obj if it says that it is of gvk, else a shallow copy that does.
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

// find returns what an object of the kind k is in version gv, or nil.
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

// add keeps a form, in the place of the oldest if there are too many.
func (f *forms) add(one form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= maxForms {
		f.all = append(f.all[:0], f.all[1:]...)
	}
	f.all = append(f.all, one)
}

// filledForm returns the form of an object if it is equal to that of a known one, but for metadata that the server fills in.
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
	for _, name := range []string{"labels", "annotations"} { // which are the conversion's to change
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

// withoutFilled returns metadata without what the server fills in.
func withoutFilled(metadata map[string]any) map[string]any {
	out := maps.Clone(metadata)
	for _, name := range []string{"uid", "creationTimestamp", "generation", "resourceVersion", "managedFields"} {
		delete(out, name)
	}
	return out
}
