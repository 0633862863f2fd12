package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects describes the objects of one endpoint. NewObjects makes it; it does not change afterwards.
type Objects struct {
	Scheme *runtime.Scheme // has Kind, if the kind is known
	// Path names the endpoint in errors: "widgets", "widgets/status".
	Path string
	// Kind is the kind of the objects in the version of the URL.
	Kind schema.GroupVersionKind
	// Records decodes records; nil for a storage without records.
	Records registry.Records
	// Shown are the selectable fields that are compared as the version of the URL shows them; see Objects.Fields.
	Shown []string
	// Columns makes the rows of tables; nil means the name and the age.
	Columns registry.Tabler
	// NoTable says that there are no tables.
	NoTable bool
	// Kept caches the encodings of records in other forms than the stored one. If it is nil, only the Forms of an Item cache
	// them.
	Kept *storage.FormCache
	// Seed is the seed of the hashes of records in the keys of Kept. The keys hold a reference to Seed, and to nothing else of
	// Objects.
	Seed *maphash.Seed

	// Version is the apiVersion of Kind. Known is Kind in Scheme, or nil if it is not there. NewObjects sets both.
	Version string
	Known   *runtime.Kind

	jsonKey, goneKey any        // formKeys of an item alone in JSON, from which other encodings are made
	fieldKeys        [2]any     // formKeys of the shown fields of an item, and of a deleted item
	paths            [][]string // the paths of the shown fields
}

// NewObjects returns a copy of o in which the fields that depend on other fields are set.
func NewObjects(o Objects) *Objects {
	o.Version = o.Kind.GroupVersion().String()
	o.Known = o.Scheme.Lookup(o.Kind)
	o.jsonKey = formKey{kind: o.Kind, mediaType: codec.JSON().MediaType()}
	o.goneKey = formKey{kind: o.Kind, mediaType: codec.JSON().MediaType(), gone: true}
	o.paths = make([][]string, len(o.Shown))
	for i, path := range o.Shown {
		o.paths[i] = strings.Split(path, ".")
	}
	for i := range o.fieldKeys {
		o.fieldKeys[i] = formKey{kind: o.Kind, extent: shownFields, gone: i == 1}
	}
	return &o
}

// Untyped reports whether the kind is known and has no Go type.
func (o *Objects) Untyped() bool { return o.Known != nil && o.Known.Untyped() }

// IsConverted reports whether a conversion function of the program converts between the kind's versions. Then the objects of one
// version may have other fields than those of another.
func (o *Objects) IsConverted() bool { return o.Known != nil && o.Known.HasConvert() }

// Empty returns an empty object of the kind. If the kind is not in Scheme, the object has metadata only.
func (o *Objects) Empty() runtime.Object {
	if o.Known != nil {
		return o.Known.New()
	}
	return &metav1.PartialObjectMetadata{}
}

// Direct reports whether an item is a record in the version of the URL, whose bytes can be written as they are.
func (o *Objects) Direct(it Item) bool {
	return it.Object == nil && it.Record.Body.InVersion(o.Version)
}

// Object returns the object of an item, in any version of its kind. It must not be changed: the storage may have returned it.
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

// InVersion returns obj in the version of the URL. obj may be of any version of the kind. An object of an unknown kind is
// returned as it is.
func (o *Objects) InVersion(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if !o.Differs(obj) {
		return obj, nil
	}
	return o.Scheme.ToVersionContext(ctx, obj, o.Kind.GroupVersion())
}

// Differs reports whether obj is of the kind, but of another version than the URL's.
func (o *Objects) Differs(obj runtime.Object) bool {
	k := o.Scheme.KindOf(obj)
	return k != nil && k.GVK != o.Kind && o.Scheme.OneKind(k.GVK.GroupKind(), o.Kind.GroupKind())
}

// shown returns the object of an item in the version of the URL.
func (o *Objects) shown(ctx context.Context, it Item) (runtime.Object, error) {
	obj, err := o.Object(it)
	if err != nil {
		return nil, err
	}
	return o.InVersion(ctx, obj)
}

// withMetadata returns an item whose record or object has the metadata of the URL's version. A conversion may change labels and
// annotations.
func (o *Objects) withMetadata(ctx context.Context, it Item) (Item, error) {
	if it.Object != nil || !o.IsConverted() || o.Direct(it) {
		return it, nil
	}
	obj, err := o.shown(ctx, it)
	return Item{Object: obj}, err
}

// appendWhole appends an item that is not in a list, in the version of the URL. If it has to be encoded, the result is cached.
func (o *Objects) appendWhole(ctx context.Context, dst []byte, it Item) ([]byte, error) {
	if o.Direct(it) {
		return it.Record.Body.AppendObject(dst, it.Record.Revision), nil
	}
	key := o.jsonKey
	if it.Gone {
		key = o.goneKey
	}
	text, err := o.kept(ctx, it, key, func() ([]byte, error) { return o.encode(ctx, it) })
	return append(dst, text...), err
}

// encode encodes the object of an item as JSON.
func (o *Objects) encode(ctx context.Context, it Item) ([]byte, error) {
	obj, err := o.Object(it)
	if err != nil {
		return nil, err
	}
	return o.Encode(ctx, obj)
}

// Encode returns obj as JSON in the version of the URL, with kind and apiVersion. The newline that ends a body is not included.
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

// appendListed appends an item of a list: a typed object without kind and apiVersion, an untyped object with both.
func (o *Objects) appendListed(ctx context.Context, dst []byte, it Item) ([]byte, error) {
	if o.Direct(it) {
		return it.Record.Body.AppendItem(dst, it.Record.Revision), nil
	}
	obj, err := o.shown(ctx, it)
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

// kept returns the cached encoding of an item in a form. If there is none, kept calls make and caches the result. Other
// goroutines may wait for make. Therefore make must call kept only for a fresh item.
func (o *Objects) kept(ctx context.Context, it Item, form any, make func() ([]byte, error)) ([]byte, error) {
	switch {
	case it.fresh:
	case it.Forms != nil:
		return it.Forms.Get(ctx, form, make)
	case o.keeps(it) && !it.Gone:
		return o.Kept.Get(ctx, o.idOf(it, form), make)
	}
	return make()
}

// keeps reports whether Kept can have encodings of an item.
func (o *Objects) keeps(it Item) bool {
	return o.Kept != nil && it.Object == nil && it.Record.Revision > 0 && it.Record.Key != ""
}

// idOf returns the cache key for an item in a form in Kept.
func (o *Objects) idOf(it Item, form any) recordForm {
	return recordForm{o.Seed, it.Record.Key, it.Record.Revision, maphash.Bytes(*o.Seed, it.Record.Body.Bytes()), form}
}

// formKey is the part of a cache key for everything, except the record, that an encoding depends on.
type formKey struct {
	kind      schema.GroupVersionKind
	mediaType string
	as        schema.GroupVersionKind
	extent    extent
	gone      bool   // the object is a deleted one: an event may have the deleted object and the object that replaced it
	event     string // the type of an event, if the cached bytes are the whole event; else ""
}

// extent says what is cached under a formKey.
type extent uint8

const (
	one         extent = iota // an item alone
	joined                    // the items of a block of a list, with separators
	compressed                // the joined items, as a gzipparts.Part
	shownFields               // the values of the shown fields of an item
)

// recordForm is a cache key for a record in a form. The record's key and revision are not sufficient: a dry run returns another
// record at the revision of the stored one, and a store that was restored to an older state uses its revisions again.
type recordForm struct {
	of       *maphash.Seed // not the Objects, which would stay in memory after the resource is withdrawn
	key      string
	revision int64
	content  uint64 // a hash of the record's body, with the seed of
	form     any    // a formKey
}

// ofAnyKind reports whether obj is of a Go type that can hold an object of any kind.
func ofAnyKind(obj runtime.Object) bool {
	switch obj.(type) {
	case apiruntime.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// withKind returns obj if its kind is gvk, or else a shallow copy of obj whose kind is gvk. It does not change obj.
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
