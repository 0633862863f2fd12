package storage

import (
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/fields"
)

// FieldReader reads the selectable fields of the records of one storage. It is comparable, and all methods may be called
// concurrently.
type FieldReader interface {
	// Has reports whether records have the field: it is the Has of the Fields of every record.
	Has(field string) bool
	// Get returns the field of the record with this key and body: it is the Get of the record's Fields.
	Get(key string, body codec.Document, field string) string
}

// ReadFields is implemented by Fields of a record that keep only the record's own key and body, and data that all records
// share. A caller that keeps many records need not keep their Fields.
type ReadFields interface {
	fields.Fields
	// Reader returns the FieldReader that can read the fields; nil if only these Fields can.
	Reader() FieldReader
}

var _ ReadFields = (*recordFields)(nil)

// Reader implements ReadFields.
func (f *recordFields) Reader() FieldReader { return (*fieldReader)(f.of) }

// fieldReader reads the fields of a store's records.
type fieldReader StoreOptions

// Has implements FieldReader.
func (r *fieldReader) Has(field string) bool {
	return (&recordFields{of: (*StoreOptions)(r)}).Has(field)
}

// Get implements FieldReader.
func (r *fieldReader) Get(key string, body codec.Document, field string) string {
	return (&recordFields{of: (*StoreOptions)(r), key: key, body: body}).Get(field)
}
