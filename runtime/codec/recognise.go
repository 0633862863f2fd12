package codec

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec/internal/canonical"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recogniser recognises the canonical documents of a kind.
type recogniser struct {
	kind    *runtime.Kind
	name    string          // the name of the kind
	version string          // apiVersion
	form    *canonical.Form // nil: nothing is recognised
}

// recognise returns the document of stored bytes without decoding them, if it is certain that Entry would make the same document
// and not report it as stale. ok is false otherwise.
func (t *Typed) recognise(value []byte) (d Document, ok bool) {
	kind := t.scheme.Lookup(t.storage)
	if kind == nil {
		return Document{}, false
	}
	r := t.recogniser.Load()
	if r == nil || r.kind != kind { // the kind may have been registered again
		r = newRecogniser(kind)
		t.recogniser.Store(r)
	}
	return r.document(value)
}

func newRecogniser(kind *runtime.Kind) *recogniser {
	r := &recogniser{kind: kind, name: kind.GVK.Kind, version: kind.GVK.GroupVersion().String()}
	if !kind.Untyped() && kind.TagDefaults() && plain(kind) {
		r.form = canonical.Of(kind.Type, canonical.Options{Defaults: kind.HasDefaults()})
	}
	return r
}

func (r *recogniser) document(value []byte) (d Document, ok bool) {
	value = bytes.TrimSuffix(value, []byte("\n"))
	if !r.form.Has(value) {
		return Document{}, false
	}
	d, err := ParseDocument(value)
	return d, err == nil && string(value[d.kind.from:d.kind.to]) == r.name && d.InVersion(r.version)
}

// plain reports whether the metadata methods of a kind's objects only return the standard metadata. Then setting kind and
// apiVersion to their present values, and clearing an empty resourceVersion, changes nothing else.
func plain(kind *runtime.Kind) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a method of the type panicked
		}
	}()
	obj := kind.New()
	want := reflect.New(kind.Type)
	types, isTypes := want.Elem().FieldByName("TypeMeta").Addr().Interface().(*metav1.TypeMeta)
	meta, isMeta := want.Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
	m, isObject := obj.(metav1.Object)
	if !isTypes || !isMeta || !isObject {
		return false
	}
	types.SetGroupVersionKind(kind.GVK)
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK)
	for _, revision := range []string{"", "7", ""} {
		meta.ResourceVersion = revision
		m.SetResourceVersion(revision)
		if !reflect.DeepEqual(obj, want.Interface()) {
			return false
		}
	}
	return obj.GetObjectKind().GroupVersionKind() == kind.GVK
}

// complete fills the empty parts of gvk from want.
func complete(gvk, want schema.GroupVersionKind) schema.GroupVersionKind {
	if gvk.Kind == "" {
		gvk.Kind = want.Kind
	}
	if gvk.Version == "" && (gvk.Group == "" || gvk.Group == want.Group) {
		gvk.Group, gvk.Version = want.Group, want.Version
	}
	return gvk
}
