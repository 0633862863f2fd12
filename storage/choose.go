package storage

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/watch"
)

// Chooser chooses records by more than their labels and fields, such as by the form that another program gives them. It looks at
// many records at once. [ListChosen] and [WatchChosen] apply it to the lists and watches of an Interface. All methods may be
// called concurrently.
type Chooser interface {
	// Choose returns a verdict for each of the candidates, in their order: whether it is chosen. If there is an error, the
	// verdicts are those of the candidates before the one that has no verdict. They may be fewer unless partly is set: the
	// Chooser then makes an effort to return all of them. Choose ends when ctx ends.
	Choose(ctx context.Context, candidates []Candidate, partly bool) ([]bool, error)
}

// Candidate is a record about which a Chooser decides.
type Candidate struct {
	Record Record
	// Forms keeps what is derived from Record for all watchers, as in an Event; it may be nil.
	Forms *Forms
	// Gone says that the record is the state before the change of an event. The keys for its forms must differ from those for
	// forms of other records, because both are kept in the Forms of one event.
	Gone bool
}

// verdictsOf calls a Chooser. It returns an error instead of verdicts that are too few or too many without one: records would be
// left out silently.
func verdictsOf(ctx context.Context, chooser Chooser, candidates []Candidate, partly bool) ([]bool, error) {
	got, err := chooser.Choose(ctx, candidates, partly)
	if n := len(got); n > len(candidates) || n < len(candidates) && err == nil {
		return nil, fmt.Errorf("storage: %T has %d verdicts on %d records", chooser, n, len(candidates))
	}
	return got, err
}

// Plain returns an error if the selection has a Chooser. An Interface calls it, since only [ListChosen] and [WatchChosen] apply a
// Chooser. The error wraps ErrUnsupported.
func (s Selection) Plain() error {
	if s.Chooser == nil {
		return nil
	}
	return fmt.Errorf("%w: a Chooser is for storage.ListChosen and storage.WatchChosen", ErrUnsupported)
}

const (
	leastChunk  = 16      // records that a list with a limit chooses from at first; twice as many each time
	mostChunk   = 500     // maximum number of records that a list chooses from at once
	chunkBytes  = 1 << 20 // about the maximum number of bytes of their bodies
	mostDropped = 1000    // events that a watch drops one after the other before it requests a bookmark
)

// ListChosen is s.List with an opts.Chooser, which s does not get. It reads all records that the Selection matches, up to the
// last one of the page, and chooses from a bounded number of them at once. If s reads in portions, so does ListChosen: a portion
// of the result may have no record. The error of the Chooser is returned unchanged.
func ListChosen(ctx context.Context, s Interface, opts ListOptions, namespaced bool) (Page, error) {
	l := choosing{chooser: opts.Chooser, scope: opts.Scope(namespaced), limit: int(max(opts.Limit, 0))}
	if opts.At.Match == Any && opts.Continue == "" {
		l.limit = 0
	}
	opts.Chooser, opts.Limit = nil, 0
	page, err := s.List(ctx, opts)
	if err != nil {
		return Page{}, err
	}
	return l.page(ctx, page)
}

// choosing is a list with a Chooser in progress. It is a value: each portion continues with a copy.
type choosing struct {
	chooser Chooser
	scope   Scope
	limit   int // number of records wanted; 0: all
	chosen  int // number of records chosen
}

func (l *choosing) full() bool { return l.limit > 0 && l.chosen >= l.limit }

// page returns what is chosen of a page or portion of the Interface.
func (l choosing) page(ctx context.Context, in Page) (Page, error) {
	c := chunk{of: &l, most: l.firstChunk()}
	for rec := range in.Records {
		if c.more = c.more || l.full(); c.more {
			break
		}
		if c.add(rec); !c.ready() {
			continue
		}
		if err := c.choose(ctx); err != nil {
			return Page{}, err
		}
	}
	if err := c.choose(ctx); err != nil {
		return Page{}, err
	}
	page := Page{Records: c.verdicts.of(in.Records), Count: c.count, Revision: in.Revision, Version: in.Version, Bytes: in.Bytes}
	switch {
	case c.more || l.full() && in.Next != nil:
		page.Continue = l.scope.Token(Continue{Revision: in.Revision, From: c.last + "\x00"})
	case in.Next != nil:
		page.Next = func(ctx context.Context) (Page, error) {
			next, err := in.Next(ctx)
			if err != nil {
				return Page{}, err
			}
			return l.page(ctx, next)
		}
	}
	return page, nil
}

// chunk is a run of records of a page from which a list chooses at once, and the verdicts on the records before it.
type chunk struct {
	of         *choosing
	candidates []Candidate
	bytes      int // of the bodies of candidates
	most       int // maximum number of candidates

	verdicts verdicts
	count    int    // number of chosen records of the page
	last     string // the key of the last record with a verdict
	more     bool   // the page has records after last, which the list does not need
}

func (c *chunk) add(rec Record) {
	c.candidates = append(c.candidates, Candidate{Record: rec})
	c.bytes += rec.Body.Size()
}

func (c *chunk) ready() bool { return len(c.candidates) >= c.most || c.bytes >= chunkBytes }

// choose asks for the verdicts on the chunk, and empties it. An error for a record that the list does not need is ignored.
func (c *chunk) choose(ctx context.Context) error {
	if len(c.candidates) == 0 || c.more {
		return nil
	}
	got, err := verdictsOf(ctx, c.of.chooser, c.candidates, c.of.limit > 0)
	for i, chosen := range got {
		if c.more = c.of.full(); c.more {
			return nil
		}
		c.last = c.candidates[i].Record.Key
		c.verdicts.add(chosen)
		if chosen {
			c.of.chosen++
			c.count++
		}
	}
	if c.more = err != nil && c.of.full(); c.more {
		return nil
	}
	clear(c.candidates)
	c.candidates, c.bytes, c.most = c.candidates[:0], 0, min(2*c.most, mostChunk)
	return err
}

// verdicts has one bit for each of the first records of a page: a long list keeps no record.
type verdicts struct {
	bits []uint64
	n    int
}

func (v *verdicts) add(chosen bool) {
	if v.n%64 == 0 {
		v.bits = append(v.bits, 0)
	}
	if chosen {
		v.bits[v.n/64] |= 1 << (v.n % 64)
	}
	v.n++
}

// of returns the chosen ones of records.
func (v verdicts) of(records iter.Seq[Record]) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		i := 0
		for rec := range records {
			if i >= v.n || v.bits[i/64]>>(i%64)&1 != 0 && !yield(rec) {
				return
			}
			i++
		}
	}
}

// firstChunk returns from how many records the page chooses first. A short page may be found in few records.
func (l *choosing) firstChunk() int {
	if l.limit > 0 {
		return min(max(leastChunk, l.limit-l.chosen), mostChunk)
	}
	return mostChunk
}

// WatchChosen is s.Watch with an opts.Chooser, which s does not get. A record that begins to be chosen is ADDED, and one that is
// not chosen any more is DELETED with its previous content, as with selectors. Events before one that the Chooser fails for are
// delivered; the error of the Chooser ends the watch, and is returned unchanged. s must support WatchOptions.Before.
func WatchChosen(ctx context.Context, s Interface, opts WatchOptions) (Watch, error) {
	w := &chosenWatch{chooser: opts.Chooser, bookmarks: opts.Bookmarks}
	opts.Chooser, opts.Before = nil, true
	var err error
	if w.Watch, err = s.Watch(ctx, opts); err != nil {
		return nil, err
	}
	return w, nil
}

// chosenWatch is a Watch of the events of another Watch that concern chosen records.
type chosenWatch struct {
	Watch
	chooser   Chooser
	bookmarks bool

	// Used by Next only.
	dropped int // events that were dropped since the last one that was returned
	ended   error
}

// Next implements Watch.
func (w *chosenWatch) Next(ctx context.Context) ([]Event, error) {
	for {
		if w.ended != nil {
			return nil, w.ended
		}
		events, err := w.Watch.Next(ctx)
		if err != nil {
			return nil, err
		}
		chosen := w.choose(ctx, events)
		if len(chosen) > 0 {
			w.dropped = 0
			return chosen, nil
		}
		w.drop(len(events))
	}
}

// drop counts events that were dropped. The watch below takes them as received: it does not know that the reader of this watch
// has had no revision for long, and may need a bookmark.
func (w *chosenWatch) drop(events int) {
	if w.dropped += events; w.bookmarks && w.dropped >= mostDropped {
		w.dropped = 0
		w.RequestProgress()
	}
}

// choose returns the events of this watch for events of the watch below, whose slice it reuses.
func (w *chosenWatch) choose(ctx context.Context, events []Event) []Event {
	candidates := candidatesOf(events)
	var verdicts []bool
	if len(candidates) > 0 {
		verdicts, w.ended = verdictsOf(ctx, w.chooser, candidates, true)
	}
	out := events[:0]
	for _, e := range events {
		n := candidatesIn(&e)
		if len(verdicts) < n {
			break
		}
		of := verdicts[:n]
		verdicts = verdicts[n:]
		if e.Type == watch.Modified && e.Before == nil {
			w.ended = fmt.Errorf("%w: a watch with the states before changes", ErrUnsupported)
			break
		}
		if e, ok := seen(e, of); ok {
			out = append(out, e)
		}
	}
	clear(events[len(out):])
	return out
}

// candidatesIn returns how many records of an event must be judged.
func candidatesIn(e *Event) int {
	switch e.Type {
	case watch.Bookmark:
		return 0
	case watch.Modified:
		return 2
	}
	return 1
}

// candidatesOf returns the records of events that must be judged: for each event the state that it shows, and before it the state
// that the event has replaced, if it has been shown.
func candidatesOf(events []Event) []Candidate {
	var out []Candidate
	for i := range events {
		e := &events[i]
		before := Candidate{Record: e.Record, Forms: e.Forms, Gone: true}
		if e.Before != nil {
			before.Record = *e.Before
		}
		switch e.Type {
		case watch.Deleted:
			out = append(out, before)
		case watch.Modified:
			out = append(out, before, Candidate{Record: e.Record, Forms: e.Forms})
		case watch.Added:
			out = append(out, Candidate{Record: e.Record, Forms: e.Forms})
		}
	}
	return out
}

// seen returns the event that a watch has for e, if the candidates of e have these verdicts; ok is false for none.
func seen(e Event, verdicts []bool) (_ Event, ok bool) {
	if len(verdicts) < 2 {
		return e, len(verdicts) == 0 || verdicts[0]
	}
	switch matched, matches := verdicts[0], verdicts[1]; {
	case matches && matched:
	case matches:
		e.Type, e.Before = watch.Added, nil
	case matched:
		revision := e.Record.Revision
		e.Type, e.Record = watch.Deleted, *e.Before
		e.Record.Revision = revision
	default:
		return e, false
	}
	return e, true
}
