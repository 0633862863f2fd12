package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// item is one object of an answer: a record, or an object when obj is not nil.
type item struct {
	rec   storage.Record
	obj   runtime.Object
	forms *storage.Forms                 // keeps what rec is converted to; may be nil
	gone  bool                           // rec is shown as deleted
	made  func() (runtime.Object, error) // makes what rec is in the URL's version; nil: it is decoded, and converted alone
}

// direct reports whether the item's bytes are what the URL's version shows.
func (e *endpoint) direct(it item) bool {
	return it.obj == nil && it.rec.Body.InVersion(e.version)
}

// object makes the item's object, of any version of its kind. One that a storage returned must not be changed.
func (e *endpoint) object(it item) (runtime.Object, error) {
	switch {
	case it.obj != nil:
		return it.obj, nil
	case it.made != nil:
		return it.made()
	case e.records == nil:
		return nil, fmt.Errorf("the storage of %s returned neither an object nor an error", e.path())
	}
	return e.records.Decode(it.rec)
}

// appendWhole appends the item as an object of its own, in the URL's version.
func (e *endpoint) appendWhole(dst []byte, it item) ([]byte, error) {
	if e.direct(it) {
		return it.rec.Body.AppendObject(dst, it.rec.Revision), nil
	}
	text, err := e.whole(it)
	return append(dst, text...), err
}

// whole makes the bytes of an item that are not its record's own, or gets those that somebody has made.
func (e *endpoint) whole(it item) ([]byte, error) {
	key := e.formKey
	if it.gone {
		key = e.goneKey
	}
	return e.kept(it, key, func() ([]byte, error) { return e.convert(it) })
}

// convert makes an item's JSON from its object.
func (e *endpoint) convert(it item) ([]byte, error) {
	obj, err := e.object(it)
	if err != nil {
		return nil, err
	}
	return e.encode(context.Background(), obj)
}

// appendListed appends the item as an item of a list of the kind: a typed one without kind and apiVersion, an untyped one
// with both.
func (e *endpoint) appendListed(dst []byte, it item) ([]byte, error) {
	if e.direct(it) {
		return it.rec.Body.AppendItem(dst, it.rec.Revision), nil
	}
	obj, err := e.object(it)
	if err != nil {
		return dst, err
	}
	if obj, err = e.inVersion(context.Background(), obj); err != nil {
		return dst, err
	}
	if _, untyped := obj.(apiruntime.Unstructured); !untyped {
		obj = withKind(obj, schema.GroupVersionKind{})
	} else if e.untyped() {
		obj = withKind(obj, e.kind)
	}
	text, err := json.Marshal(obj)
	return append(dst, text...), err
}

// appendPartial appends the item as a PartialObjectMetadata of version gv.
func (e *endpoint) appendPartial(dst []byte, it item, gv schema.GroupVersion) ([]byte, error) {
	it, err := e.withMetadata(it)
	if err != nil {
		return dst, err
	}
	dst = appendHead(dst, gv.WithKind("PartialObjectMetadata"))
	if it.obj == nil {
		return append(it.rec.Body.AppendMetadata(dst, it.rec.Revision), '}'), nil
	}
	m, err := meta.Accessor(it.obj)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(&meta.AsPartialObjectMetadata(m).ObjectMeta)
	return append(append(dst, text...), '}'), err
}

// withMetadata returns an item of which the record, or else the object, has the metadata that the URL's version shows: a
// conversion may change labels and annotations.
func (e *endpoint) withMetadata(it item) (item, error) {
	if it.obj != nil || !e.isConvertedKind() || e.direct(it) {
		return it, nil
	}
	obj, err := e.object(it)
	if err == nil {
		obj, err = e.inVersion(context.Background(), obj)
	}
	return item{obj: obj}, err
}

// appendHead begins an object of the kind gvk, up to the value of its metadata.
func appendHead(dst []byte, gvk schema.GroupVersionKind) []byte {
	dst = appendString(append(dst, `{"kind":`...), gvk.Kind)
	dst = appendString(append(dst, `,"apiVersion":`...), gvk.GroupVersion().String())
	return append(dst, `,"metadata":`...)
}

// appendString appends s as a JSON string, escaped as encoding/json does.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always has a JSON form
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// kept returns what make makes of a record, or what was made of it before. Others may wait for make, which must not call
// kept.
func (e *endpoint) kept(it item, form any, make func() ([]byte, error)) ([]byte, error) {
	switch {
	case it.forms != nil:
		return it.forms.Get(form, make)
	case e.forms != nil && it.obj == nil && !it.gone && it.rec.Revision > 0 && it.rec.Key != "":
		content := maphash.Bytes(*e.seed, it.rec.Body.Bytes())
		return e.forms.Get(recordForm{e.seed, it.rec.Key, it.rec.Revision, content, form}, make)
	}
	return make()
}

// formKey stands, in a storage.Forms, for all that the bytes of a record depend on besides the record.
type formKey struct {
	kind      schema.GroupVersionKind
	mediaType string
	as        schema.GroupVersionKind
	shape     formShape
	gone      bool // it is what was deleted: an event has that and what took its place
}

// recordForm stands for the bytes of a record in a form. Its key and revision alone do not: a dry run shows another record
// at the revision of what is stored, and a store that is set back to an older state gives its revisions once more.
type recordForm struct {
	of       *maphash.Seed // the Resource's. The Resource itself would be held after it is withdrawn
	key      string
	revision int64
	content  uint64 // a hash of the record's body, by that seed
	form     any    // a formKey
}

// appendListMeta appends the metadata of a list: its fields in order, those without a value left out.
func appendListMeta(dst []byte, lm metav1.ListMeta) []byte {
	dst = append(dst, '{')
	comma := func() {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	if lm.ResourceVersion != "" {
		dst = appendString(append(dst, `"resourceVersion":`...), lm.ResourceVersion)
	}
	if lm.Continue != "" {
		comma()
		dst = appendString(append(dst, `"continue":`...), lm.Continue)
	}
	if lm.RemainingItemCount != nil {
		comma()
		dst = strconv.AppendInt(append(dst, `"remainingItemCount":`...), *lm.RemainingItemCount, 10)
	}
	return append(dst, '}')
}
