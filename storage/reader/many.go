package reader

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// many collects the records of a result whose decoded objects are not kept. Records are added first, and decoded then.
type many struct {
	r       *Reader
	set     func(i int, obj runtime.Object)
	skip    func(i int, err *storage.UnreadableError) // called for an object that cannot be decoded; nil: it is an error
	records []storage.Record
	places  []int // positions of the records in the result
}

// many begins a result; set is called with each object.
func (r *Reader) many(set func(i int, obj runtime.Object)) *many {
	return &many{r: r, set: set}
}

// add adds the record of the object i.
func (m *many) add(i int, record storage.Record) {
	if obj := m.r.kept.get(record); obj != nil {
		m.set(i, obj)
		return
	}
	m.records, m.places = append(m.records, record), append(m.places, i)
}

// decode makes the objects that are missing.
func (m *many) decode(ctx context.Context) error {
	var unreadable *storage.UnreadableError
	if decoder, ok := m.r.store.(storage.ManyDecoder); ok && len(m.records) > 1 && m.r.opts.Version != (schema.GroupVersion{}) {
		objs, err := decoder.DecodeAll(ctx, m.records, m.r.opts.Version)
		if err == nil {
			for i, obj := range objs {
				m.set(m.places[i], m.r.kept.put(m.records[i], obj))
			}
		}
		if !errors.Is(err, storage.ErrUnsupported) && (m.skip == nil || !errors.As(err, &unreadable)) {
			return err
		}
	}
	for i, record := range m.records {
		if err := ctx.Err(); err != nil {
			return err
		}
		obj, err := m.r.object(record)
		switch {
		case err == nil:
			m.set(m.places[i], obj)
		case m.skip != nil && errors.As(err, &unreadable):
			m.skip(m.places[i], unreadable)
		default:
			return err
		}
	}
	return nil
}

// object returns the shared object of a record.
func (r *Reader) object(record storage.Record) (runtime.Object, error) {
	if obj := r.kept.get(record); obj != nil {
		return obj, nil
	}
	obj, err := r.store.Decode(record)
	if err != nil {
		return nil, err
	}
	return r.kept.put(record, obj), nil
}
