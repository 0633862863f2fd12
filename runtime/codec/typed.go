package codec

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Typed encodes and decodes the objects of one kind of a Scheme for storage. It may be used concurrently.
type Typed struct {
	scheme  *runtime.Scheme
	storage schema.GroupVersionKind
	hub     schema.GroupVersionKind
	types   protobuf.Compiler // the types of values that kube-apiserver has stored

	recogniser atomic.Pointer[recogniser] // of the storage version; nil until it is needed
}

// NewTyped returns a Typed that stores objects of a registered kind in the version storage, and decodes them to the hub version.
func NewTyped(s *runtime.Scheme, storage schema.GroupVersionKind) (*Typed, error) {
	if s.Lookup(storage) == nil {
		return nil, fmt.Errorf("storage version: %w", apiruntime.NewNotRegisteredErrForKind("keelson", storage))
	}
	hub, _ := s.Hub(storage.GroupKind())
	return &Typed{scheme: s, storage: storage, hub: hub}, nil
}

// Encode returns the document of obj, which may be of any version of the kind, in the storage version and with its defaults.
// Decode of the document returns the object that readers see. Encode returns a *runtime.ConversionError if the object cannot be
// converted to the storage version, or from there to the hub, so that it could not be read. obj is not changed.
func (t *Typed) Encode(obj runtime.Object) (Document, error) {
	d, _, err := t.EncodeChecked(obj)
	return d, err
}

// EncodeChecked is Encode, and also returns the object that Decode would make of the document. That object belongs to the caller.
// It is nil if objects are stored in the hub version, because these can always be read.
func (t *Typed) EncodeChecked(obj runtime.Object) (d Document, read runtime.Object, err error) {
	if d, err = t.encode(obj); err != nil || t.storage == t.hub {
		return d, nil, err
	}
	if read, err = t.Decode(d); err != nil {
		return Document{}, nil, fmt.Errorf("what would be stored cannot be read: %w", err)
	}
	return d, read, nil
}

// encode encodes an object without checking that it can be decoded.
func (t *Typed) encode(obj runtime.Object) (Document, error) {
	kind, err := t.kind(t.storage)
	if err != nil {
		return Document{}, err
	}
	out, err := t.scheme.ToVersion(obj, t.storage.GroupVersion())
	if err != nil {
		return Document{}, err
	}
	if kind.HasDefaults() {
		if out == obj {
			out = obj.DeepCopyObject()
		}
		if u, ok := out.(*unstructured.Unstructured); ok && kind.Schema != nil { // other versions may have other fields
			if _, err := conform(kind, u, "", Ignore); err != nil {
				return Document{}, err
			}
		}
		kind.SetDefaults(out)
	}
	if u, ok := out.(*unstructured.Unstructured); ok && kind.Schema == nil {
		if out, err = settled(u); err != nil {
			return Document{}, err
		}
	}
	return EncodeDocument(out, t.storage)
}

// Decode decodes a document into an object in the hub version, with defaults. The object belongs to the caller. Entry describes
// the values of kube-apiserver that can be read.
func (t *Typed) Decode(d Document) (obj runtime.Object, err error) {
	defer caught(&err)
	var from content
	if obj, from, err = t.read(d.Bytes()); err != nil || from.gvk == t.hub {
		return obj, err
	}
	if obj, err = t.scheme.ToVersion(obj, t.hub.GroupVersion()); err != nil {
		return nil, err
	}
	return obj, t.arrive(obj)
}

// arrive completes an object that was converted from another version to the hub.
func (t *Typed) arrive(obj runtime.Object) error {
	hub, err := t.kind(t.hub)
	if err != nil {
		return err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && hub.Schema != nil { // defaults are those of the version in which it was stored
		return conformStored(hub, u)
	}
	if hub.HasDefaults() { // fields that the other version does not have need defaults
		hub.SetDefaults(obj)
	}
	return nil
}

// DecodeAll is Decode for many documents, in version gv of the kind. It returns as many objects, in the same order, or the error
// of one of them. It is for kinds whose objects are best converted at once: see runtime.KindOptions.ConvertAll, which gets ctx.
func (t *Typed) DecodeAll(ctx context.Context, docs []Document, gv schema.GroupVersion) (objs []runtime.Object, err error) {
	defer caught(&err)
	objs = make([]runtime.Object, len(docs))
	elsewhere := make([]bool, len(docs)) // stored in another version than gv
	for i, d := range docs {
		var from content
		if objs[i], from, err = t.read(d.Bytes()); err != nil {
			return nil, err
		}
		elsewhere[i] = from.gvk.GroupVersion() != gv
	}
	if objs, err = t.scheme.ToVersions(ctx, objs, gv); err != nil {
		return nil, err
	}
	for i, obj := range objs {
		if elsewhere[i] && gv == t.hub.GroupVersion() {
			if err := t.arrive(obj); err != nil {
				return nil, err
			}
		}
	}
	return objs, nil
}

// kind returns a version of the kind. It returns an error if the scheme no longer has that version, as may happen to the last
// calls before a kind is removed.
func (t *Typed) kind(gvk schema.GroupVersionKind) (*runtime.Kind, error) {
	if k := t.scheme.Lookup(gvk); k != nil {
		return k, nil
	}
	return nil, apiruntime.NewNotRegisteredErrForKind("keelson", gvk)
}

// Entry returns the canonical document of stored bytes, in the version in which they are stored: it decodes the bytes, sets
// defaults, drops fields that the type does not have, and encodes the object again. stale reports that Encode would store other
// bytes now: the document differs from value, or is in another version than the storage version. Entry returns an error for bytes
// that are not an object of a registered version of the kind.
//
// Entry also reads values that kube-apiserver has stored
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). A value in its protobuf envelope is read if
// the Go type has a protobuf form (see [ProtobufFormat]). A value in CBOR, which is a custom resource, is read with or without a
// Go type. Both are stale, because a Typed writes JSON. For a value that kube-apiserver has encrypted, the error names the
// provider and key.
func (t *Typed) Entry(value []byte) (d Document, stale bool, err error) {
	defer caught(&err)
	if d, ok := t.recognise(value); ok {
		return d, false, nil
	}
	obj, from, err := t.read(value)
	if err != nil {
		return Document{}, false, err
	}
	gvk := from.gvk
	if d, err = EncodeDocument(obj, gvk); err != nil {
		return Document{}, false, err
	}
	if from.protobuf { // a message may change in JSON: a string may not be UTF-8
		d, _, err = t.Entry(d.Bytes())
		return d, err == nil, err
	}
	return d, gvk != t.storage || !bytes.Equal(d.Bytes(), bytes.TrimSuffix(value, []byte("\n"))), nil
}

// read decodes an object in the version of its bytes.
func (t *Typed) read(value []byte) (obj runtime.Object, from content, err error) {
	if obj, ok := t.readUsual(value); ok {
		return obj, content{gvk: t.storage}, nil
	}
	return t.readAny(value)
}

// readAny is read for every value.
func (t *Typed) readAny(value []byte) (obj runtime.Object, from content, err error) {
	if from, err = contentOf(&t.types, value); err != nil {
		return nil, from, err
	}
	gvk := from.gvk
	if gvk.GroupKind() != t.storage.GroupKind() && !t.scheme.OneKind(gvk.GroupKind(), t.storage.GroupKind()) {
		return nil, from, fmt.Errorf("stored object is a %s, not a %s", gvk.GroupKind(), t.storage.GroupKind())
	}
	kind := t.scheme.Lookup(gvk)
	if kind == nil {
		return nil, from, fmt.Errorf("%w: it was stored by a program that has this version; register it again, served or not, with its conversion, and migrate the stored objects before it is removed",
			apiruntime.NewNotRegisteredErrForKind("keelson", gvk))
	}
	obj = kind.New()
	if err = from.fill(obj); err != nil {
		return nil, from, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if err = conformStored(kind, u); err != nil {
			return nil, from, err
		}
	}
	kind.SetDefaults(obj)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, from, nil
}

// readUsual is read for values as Encode writes them, without anything unusual. ok is false for all other values.
func (t *Typed) readUsual(value []byte) (obj runtime.Object, ok bool) {
	kind := t.scheme.Lookup(t.storage)
	if kind == nil {
		return nil, false
	}
	if obj, ok = kind.Read(value); !ok {
		return nil, false
	}
	if typeMeta, ok := obj.GetObjectKind().(*metav1.TypeMeta); !ok || !says(typeMeta, t.storage) {
		return nil, false
	}
	kind.SetDefaults(obj)
	return obj, true
}

func contentOf(types *protobuf.Compiler, value []byte) (content, error) {
	if rest, ok := bytes.CutPrefix(value, []byte(protobufMark)); ok {
		return envelope(types, rest)
	}
	if rest, ok := bytes.CutPrefix(value, []byte(encryptedMark)); ok {
		return content{}, encrypted(rest)
	}
	if bytes.HasPrefix(value, []byte(cborMark)) { // custom resources, under its feature gate CBORServingAndStorage
		text, err := cborToJSON(value)
		if err != nil {
			return content{}, fmt.Errorf("the value is CBOR that cannot be read: %w", err)
		}
		value = text
	}
	gvk, err := storedKind(value)
	return content{gvk: gvk, fill: func(obj runtime.Object) error {
		_, err := unmarshal(value, obj, Ignore)
		return err
	}}, err
}
