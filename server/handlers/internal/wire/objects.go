package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects is what is known of the objects of one endpoint. It is made by NewObjects and does not change afterwards.
type Objects struct {
	Scheme *runtime.Scheme
	// Path names the endpoint in errors: "widgets", "widgets/status".
	Path string
	// Kind is that of the URL.
	Kind schema.GroupVersionKind
	// Records decodes records; nil for a storage that has none.
	Records registry.Records
	// Columns makes the rows of tables; nil: they are the name and the age.
	Columns registry.Tabler
	// Kept keeps what records are written as in other forms than the stored one; nil: nothing but what an Item keeps itself.
	Kept *storage.FormCache
	// Seed seeds the hashes of records that are part of the keys of Kept. The keys hold a reference to Seed, and to nothing
	// else of Objects.
	Seed *maphash.Seed

	// Version is the apiVersion of Kind, and Known is Kind in Scheme; nil if it is not there. NewObjects sets both.
	Version string
	Known   *runtime.Kind

	jsonKey, goneKey any // formKeys of an item alone in JSON, of which other encodings are made
}

// NewObjects returns o with what follows from its fields.
func NewObjects(o Objects) *Objects {
	o.Version = o.Kind.GroupVersion().String()
	o.Known = o.Scheme.Lookup(o.Kind)
	o.jsonKey = formKey{kind: o.Kind, mediaType: codec.JSON().MediaType()}
	o.goneKey = formKey{kind: o.Kind, mediaType: codec.JSON().MediaType(), gone: true}
	return &o
}

// Untyped reports whether the kind is known and has no Go type.
func (o *Objects) Untyped() bool { return o.Known != nil && o.Known.Untyped() }

// IsConverted reports whether a function of the program's makes objects of the kind's versions: those of one may have what
// those of another have not.
func (o *Objects) IsConverted() bool { return o.Known != nil && o.Known.HasConvert() }

// Empty returns an object of the kind with nothing in it; of a kind that is not in the scheme it has metadata only.
func (o *Objects) Empty() runtime.Object {
	if o.Known != nil {
		return o.Known.New()
	}
	return &metav1.PartialObjectMetadata{}
}

// Direct reports whether an item's bytes are what the URL's version shows.
func (o *Objects) Direct(it Item) bool {
	return it.Object == nil && it.Record.Body.InVersion(o.Version)
}

// Object returns the item's object, of any version of its kind. One that a storage returned must not be changed.
func (o *Objects) Object(it Item) (runtime.Object, error) {
	switch {
	case it.Object != nil:
		return it.Object, nil
	case it.Made != nil:
		return it.Made()
	case o.Records == nil:
		return nil, fmt.Errorf("the storage of %s returned neither an object nor an error", o.Path)
	}
	return o.Records.Decode(it.Record)
}

// InVersion returns obj in the version of the URL. obj is of any version of a known kind, or of an unknown one, which is left
// as it is.
func (o *Objects) InVersion(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if !o.Differs(obj) {
		return obj, nil
	}
	return o.Scheme.ToVersionContext(ctx, obj, o.Kind.GroupVersion())
}

// Differs reports whether obj is of another version of the kind than the URL's.
func (o *Objects) Differs(obj runtime.Object) bool {
	k := o.Scheme.KindOf(obj)
	return k != nil && k.GVK != o.Kind && o.Scheme.OneKind(k.GVK.GroupKind(), o.Kind.GroupKind())
}

// shown returns the item's object in the version of the URL.
func (o *Objects) shown(ctx context.Context, it Item) (runtime.Object, error) {
	obj, err := o.Object(it)
	if err != nil {
		return nil, err
	}
	return o.InVersion(ctx, obj)
}

// withMetadata returns an item of which the record, or else the object, has the metadata that the URL's version shows: a
// conversion may change labels and annotations.
func (o *Objects) withMetadata(it Item) (Item, error) {
	if it.Object != nil || !o.IsConverted() || o.Direct(it) {
		return it, nil
	}
	obj, err := o.shown(context.Background(), it)
	return Item{Object: obj}, err
}

// appendWhole appends an item as an object of its own, in the URL's version. Bytes that are not the record's own are kept.
func (o *Objects) appendWhole(dst []byte, it Item) ([]byte, error) {
	if o.Direct(it) {
		return it.Record.Body.AppendObject(dst, it.Record.Revision), nil
	}
	key := o.jsonKey
	if it.Gone {
		key = o.goneKey
	}
	text, err := o.kept(it, key, func() ([]byte, error) { return o.encode(it) })
	return append(dst, text...), err
}

// encode makes an item's JSON from its object.
func (o *Objects) encode(it Item) ([]byte, error) {
	obj, err := o.Object(it)
	if err != nil {
		return nil, err
	}
	return o.Encode(context.Background(), obj)
}

// Encode returns obj as JSON in the version of the URL, kind and apiVersion included, without the newline that ends a body.
func (o *Objects) Encode(ctx context.Context, obj runtime.Object) ([]byte, error) {
	if _, is := obj.(*metav1.Status); is {
		obj = withKind(obj, metav1.Unversioned.WithKind("Status"))
	} else {
		var err error
		if obj, err = o.InVersion(ctx, obj); err != nil {
			return nil, err
		}
		gvk := o.Kind
		if k := o.Scheme.KindOf(obj); k != nil {
			gvk = k.GVK
		} else if o.Known != nil && !ofAnyKind(obj) {
			return nil, fmt.Errorf("the storage of %s returned a %T, which is no kind of the scheme", o.Path, obj)
		}
		obj = withKind(obj, gvk)
	}
	text, err := codec.Encode(obj)
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// appendListed appends an item as one of a list of the kind: a typed one without kind and apiVersion, an untyped one with both.
func (o *Objects) appendListed(dst []byte, it Item) ([]byte, error) {
	if o.Direct(it) {
		return it.Record.Body.AppendItem(dst, it.Record.Revision), nil
	}
	obj, err := o.shown(context.Background(), it)
	if err != nil {
		return dst, err
	}
	if _, untyped := obj.(apiruntime.Unstructured); !untyped {
		obj = withKind(obj, schema.GroupVersionKind{})
	} else if o.Untyped() {
		obj = withKind(obj, o.Kind)
	}
	text, err := json.Marshal(obj)
	return append(dst, text...), err
}

// kept returns what make makes of a record, or what was made of it before. Others may wait for make, which must not call kept
// but for a fresh item.
func (o *Objects) kept(it Item, form any, make func() ([]byte, error)) ([]byte, error) {
	switch {
	case it.fresh:
	case it.Forms != nil:
		return it.Forms.Get(form, make)
	case o.Kept != nil && it.Object == nil && !it.Gone && it.Record.Revision > 0 && it.Record.Key != "":
		content := maphash.Bytes(*o.Seed, it.Record.Body.Bytes())
		return o.Kept.Get(recordForm{o.Seed, it.Record.Key, it.Record.Revision, content, form}, make)
	}
	return make()
}

// formKey stands, in a storage.Forms, for all that the bytes of a record depend on besides the record.
type formKey struct {
	kind      schema.GroupVersionKind
	mediaType string
	as        schema.GroupVersionKind
	extent    extent
	gone      bool   // it is what was deleted: an event has that and what took its place
	event     string // the type of the event that is kept; "": the object is
}

// extent says what is kept under a formKey.
type extent uint8

const (
	one        extent = iota // an item alone
	joined                   // the items of a block of a list, with what comes between them
	compressed               // the same, as a gzipparts.Part
)

// recordForm stands for the bytes of a record in a form. Its key and revision alone do not: a dry run shows another record
// at the revision of what is stored, and a store that is set back to an older state gives its revisions once more.
type recordForm struct {
	of       *maphash.Seed // not the Objects, which would be held after its resource is withdrawn
	key      string
	revision int64
	content  uint64 // a hash of the record's body, by that seed
	form     any    // a formKey
}

// ofAnyKind reports whether obj may stand for an object of any kind.
func ofAnyKind(obj runtime.Object) bool {
	switch obj.(type) {
	case apiruntime.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// withKind returns obj if it is of gvk, else a shallow copy that is. obj is not changed.
func withKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj
	}
	v := reflect.ValueOf(obj)
	if _, untyped := obj.(apiruntime.Unstructured); untyped || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		obj = obj.DeepCopyObject()
	} else {
		c := reflect.New(v.Elem().Type())
		c.Elem().Set(v.Elem())
		obj = c.Interface().(runtime.Object)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}
