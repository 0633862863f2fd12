package wire

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
)

// Fields returns the fields of an item for a field selector: those in Shown as the version of the URL shows the object, and the
// others from the record. The values of an item that is in another version are cached: with the event, so that all watchers share
// them, and in Kept, so that lists and later events share them.
func (o *Objects) Fields(ctx context.Context, it Item) (fields.Fields, error) {
	f := &itemFields{of: o, record: it.Record.Fields}
	if o.Direct(it) {
		f.value = func(i int) string { return it.Record.Body.Field(o.Shown[i]) }
		return f, nil
	}
	values, err := it.Forms.Get(ctx, o.fieldKey(it.Gone), func() ([]byte, error) { return o.recordFields(ctx, it) })
	f.value = func(i int) string { return valueAt(values, i) }
	return f, err
}

// HasFields reports whether Fields needs no conversion of the item.
func (o *Objects) HasFields(it Item) bool {
	return o.Direct(it) || it.Forms.Has(o.fieldKey(it.Gone)) || o.keeps(it) && o.Kept.Has(o.idOf(it, o.fieldKey(false)))
}

func (o *Objects) fieldKey(gone bool) any {
	if gone {
		return o.fieldKeys[1]
	}
	return o.fieldKeys[0]
}

// recordFields returns the values of the shown fields of an item from Kept. The record of an event with the state before a change
// is the same record that the event before it shows.
func (o *Objects) recordFields(ctx context.Context, it Item) ([]byte, error) {
	alone := it
	alone.Forms, alone.Gone = nil, false
	return o.kept(ctx, alone, o.fieldKey(false), func() ([]byte, error) {
		obj, err := o.shown(ctx, alone)
		if err != nil {
			return nil, err
		}
		return o.appendFields(nil, obj), nil
	})
}

// appendFields appends the values of the shown fields of an object: each has its length before it.
func (o *Objects) appendFields(dst []byte, obj runtime.Object) []byte {
	u, _ := obj.(*unstructured.Unstructured)
	for _, path := range o.paths {
		text := ""
		if u != nil {
			text = textAt(u.Object, path)
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return slices.Clip(dst)
}

// textAt returns the value at a path as a selector compares it; "" for what is no string, boolean or number. It returns what
// codec.Document.Field returns for the JSON of the value.
func textAt(value any, path []string) string {
	for _, name := range path {
		members, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = members[name]
	}
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// valueAt returns the value with an index in what appendFields has made.
func valueAt(values []byte, i int) string {
	for ; ; i-- {
		size, n := binary.Uvarint(values)
		end := n + int(size)
		if n <= 0 || end > len(values) {
			return ""
		}
		if i == 0 {
			return string(values[n:end])
		}
		values = values[end:]
	}
}

// itemFields are the fields of an item.
type itemFields struct {
	of     *Objects
	value  func(i int) string // the value of a shown field
	record fields.Fields      // has the other fields
}

var _ fields.Fields = (*itemFields)(nil)

// Has implements fields.Fields.
func (f *itemFields) Has(field string) bool {
	return slices.Contains(f.of.Shown, field) || f.record.Has(field)
}

// Get implements fields.Fields.
func (f *itemFields) Get(field string) string {
	if i := slices.Index(f.of.Shown, field); i >= 0 {
		return f.value(i)
	}
	return f.record.Get(field)
}
