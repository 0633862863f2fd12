package storage

import (
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/fields"
)

// FieldReader reads the selectable fields of the records of one storage. It is comparable, and all methods may be called
// concurrently.
type FieldReader interface {
	// Has is that of the Fields of every record.
	Has(field string) bool
	// Get is that of the Fields of the record with this key and body.
	Get(key string, body codec.Document, field string) string
}

// ReadFields are the Fields of a record that keep nothing but what the record has besides, and what all records share: who
// keeps many records need not keep theirs.
type ReadFields interface {
	fields.Fields
	// Reader is what reads them; nil when only they can.
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
