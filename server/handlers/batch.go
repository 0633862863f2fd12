package handlers

import (
	"context"
	"iter"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/storage"
)

// Bounds on the records that are converted at once, of a kind for which that is better than one by one: see
// runtime.KindOptions.ConvertAll. The last record may exceed batchBytes.
const (
	batchItems = 500
	batchBytes = 1 << 20 // of the records' bodies
)

// batch is a run of items. The items that must be converted are converted together, when the first of them is needed. Items that
// another request has converted in the meantime are not converted again. One goroutine uses a batch.
type batch struct {
	*endpoint
	ctx     context.Context
	items   []wire.Item
	records []storage.Record // the records of the items that must be converted
	objects []runtime.Object // the objects of records, in the version of the URL; nil elements are not made yet
	bytes   int              // the size of records
	stream  bool             // the items before one that cannot be converted are used, as in a watch
	most    int              // for a stream, how many records are converted at once after a failure; 0 is batchItems
}

func (e *endpoint) newRun(ctx context.Context) *batch { return &batch{endpoint: e, ctx: ctx} }

// differs reports whether the kind has no Go type and its versions may have different fields.
func (e *endpoint) differs() bool { return e.Known != nil && e.Known.VersionsDiffer() }

// isConverted reports whether an item's record is converted by many, together with other records if there are any.
func (e *endpoint) isConverted(it wire.Item) bool {
	return e.many != nil && it.Object == nil && it.Made == nil && !it.Record.Body.IsZero() && !e.Direct(it)
}

// add puts an item at the end of the run.
func (t *batch) add(it wire.Item) {
	if t.isConverted(it) {
		at := len(t.records)
		it.Made = func() (runtime.Object, error) { return t.object(at) }
		t.records = append(t.records, it.Record)
		t.bytes += it.Record.Body.Size()
	}
	t.items = append(t.items, it)
}

// full reports whether the run has as many items or bytes as are converted at once.
func (t *batch) full() bool { return len(t.items) >= batchItems || t.bytes >= batchBytes }

// object returns the object of the record at an index. If it must be made, the objects of the records that follow are made, too.
func (t *batch) object(at int) (runtime.Object, error) {
	if t.objects == nil {
		t.objects = make([]runtime.Object, len(t.records))
	}
	if t.objects[at] != nil {
		return t.objects[at], nil
	}
	made, err := t.makeFrom(at)
	if err != nil && t.stream && t.most != 1 && t.ctx.Err() == nil {
		t.most = 1 // a later record may be the one that cannot be converted
		made, err = t.makeFrom(at)
	}
	if err != nil {
		return nil, err
	}
	t.most *= 2
	if t.stream { // the objects before are used already, and the events of a stream have any size
		clear(t.objects[:at])
	}
	copy(t.objects[at:], made)
	return t.objects[at], nil
}

// makeFrom makes the object of the record at an index, and of as many records after it as are converted at once.
func (t *batch) makeFrom(at int) ([]runtime.Object, error) {
	most := batchItems
	if t.most > 0 {
		most = min(most, t.most)
	}
	end, bytes := at, 0
	for end < len(t.records) && end-at < most && bytes < batchBytes && t.objects[end] == nil {
		bytes += t.records[end].Body.Size()
		end++
	}
	return t.many.DecodeRecords(t.ctx, t.records[at:end], t.Kind.GroupVersion())
}

// converted returns an item whose object is converted for ctx, if the item must be converted.
func (e *endpoint) converted(ctx context.Context, it wire.Item) wire.Item {
	if !e.isConverted(it) {
		return it
	}
	t := e.newRun(ctx)
	t.add(it)
	return t.items[0]
}

// inRuns returns items that are converted in runs, if they must be converted.
func (e *endpoint) inRuns(ctx context.Context, items iter.Seq[wire.Item]) iter.Seq[wire.Item] {
	if e.many == nil {
		return items
	}
	return func(yield func(wire.Item) bool) {
		t := e.newRun(ctx)
		for it := range items {
			if t.add(it); !t.full() {
				continue
			}
			if !t.each(0, len(t.items), yield) {
				return
			}
			t = e.newRun(ctx)
		}
		t.each(0, len(t.items), yield)
	}
}

// each yields the items with the indices from up to, but not including, to. It returns false if yield did.
func (t *batch) each(from, to int, yield func(wire.Item) bool) bool {
	for _, it := range t.items[from:to] {
		if !yield(it) {
			return false
		}
	}
	return true
}

// blocksInRuns returns the blocks of a list. Blocks whose encoding is not kept are converted in runs of several blocks, if their
// items must be converted.
func (l *listWriter) blocksInRuns() iter.Seq[block] {
	if l.many == nil {
		return l.blocks
	}
	key := l.textKey
	if l.zip && l.zipKey != nil {
		key = l.zipKey
	}
	return func(yield func(block) bool) {
		var ready []block
		flush := func() bool {
			for _, b := range ready {
				if !yield(b) {
					return false
				}
			}
			ready = ready[:0]
			return true
		}
		t := l.newRun(l.Context())
		for b := range l.blocks {
			if !b.forms.Has(key) {
				run, from := t, len(t.items)
				for it := range b.items {
					run.add(it)
				}
				to := len(run.items)
				b.items = func(yield func(wire.Item) bool) { run.each(from, to, yield) }
			}
			ready = append(ready, b)
			if !t.full() && len(ready) < batchItems {
				continue
			}
			if !flush() {
				return
			}
			t = l.newRun(l.Context())
		}
		flush()
	}
}
