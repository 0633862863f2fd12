package handlers

import (
	"context"
	"iter"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/storage"
)

// Bounds on what is converted at once, of a kind that is best converted so: see runtime.KindOptions.ConvertAll. The last object
// may go beyond that.
const (
	batchItems = 500
	batchBytes = 1 << 20 // of the records' bodies
)

// batch is a run of items of which those that have to be converted are converted at once, when the first of them is needed:
// what somebody else has made of them meanwhile is not made again. One goroutine uses it.
type batch struct {
	*endpoint
	ctx     context.Context
	items   []wire.Item
	records []storage.Record // of the items that have to be converted
	objects []runtime.Object // of records, in the version of the URL; nil: not made yet
	bytes   int              // of records
	stream  bool             // what comes before an object that cannot be converted is of use
	most    int              // of a stream: how many go at once since one could not be converted; 0: batchItems
}

func (e *endpoint) newRun(ctx context.Context) *batch { return &batch{endpoint: e, ctx: ctx} }

// differs reports whether the objects of the URL's version may have other fields than those of the kind's other versions, and no Go
// type that says so.
func (e *endpoint) differs() bool { return e.Known != nil && e.Known.VersionsDiffer() }

// isConverted reports whether an item's object is converted, with others if there are any.
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

// full reports whether the run is as much as is converted at once.
func (t *batch) full() bool { return len(t.items) >= batchItems || t.bytes >= batchBytes }

// object returns the object of a record, for which it makes those of the records that follow, too.
func (t *batch) object(at int) (runtime.Object, error) {
	if t.objects == nil {
		t.objects = make([]runtime.Object, len(t.records))
	}
	if t.objects[at] != nil {
		return t.objects[at], nil
	}
	made, err := t.makeFrom(at)
	if err != nil && t.stream && t.most != 1 && t.ctx.Err() == nil {
		t.most = 1 // it may be one that comes later which cannot be converted
		made, err = t.makeFrom(at)
	}
	if err != nil {
		return nil, err
	}
	t.most *= 2
	copy(t.objects[at:], made)
	return t.objects[at], nil
}

// makeFrom makes the object of a record, and those of records that follow.
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

// converted returns an item that is converted for ctx, if it has to be.
func (e *endpoint) converted(ctx context.Context, it wire.Item) wire.Item {
	if !e.isConverted(it) {
		return it
	}
	t := e.newRun(ctx)
	t.add(it)
	return t.items[0]
}

// inRuns returns items that are converted in runs, if they have to be.
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

// each yields the items from one place up to another.
func (t *batch) each(from, to int, yield func(wire.Item) bool) bool {
	for _, it := range t.items[from:to] {
		if !yield(it) {
			return false
		}
	}
	return true
}

// blocksInRuns returns the blocks of a list. Items of which nothing is kept are converted in runs of several blocks, if they have
// to be.
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
