package cacher

import (
	"context"
	"iter"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/labels"
)

// List implements storage.Interface. The records of a page are read from the state while they are walked; a page
// without selectors costs the same however many records it has.
func (c *Cacher) List(ctx context.Context, opts storage.ListOptions) (storage.Page, error) {
	l := listing{opts: opts, scope: opts.Scope(c.opts.Namespaced), indexes: &c.opts, limit: int(max(opts.Limit, 0))}
	epoch := c.epoch.Load()
	s, err := c.stateOf(ctx, &l)
	if s == nil && err == nil && epoch != c.epoch.Load() && !l.isSmall() {
		s, err = c.stateOf(ctx, &l) // it was found to be void, and is filled anew
	}
	switch {
	case err != nil:
		return storage.Page{}, err
	case s == nil:
		opts.At = askedBelow(opts.At)
		if err := c.filling(); err != nil {
			if !l.isSmall() {
				return storage.Page{}, err
			}
			if opts.At.Match == storage.Any {
				opts.At = storage.Read{} // of any state the limit would not count
			}
		}
		c.opts.Hooks.list(FromStorage)
		epoch = c.epoch.Load()
		page, err := c.below.List(ctx, opts)
		c.know(epoch, page.Revision)
		return page, err
	}
	l.state = s
	page, err := l.page()
	if err == nil {
		c.opts.Hooks.list(l.source)
		c.opts.Hooks.listed(Listed{Index: l.index, Evaluated: l.evaluated, Returned: page.Count})
	}
	return page, err
}

// listing is one List under way.
type listing struct {
	opts      storage.ListOptions
	scope     storage.Scope
	indexes   *Options
	limit     int       // 0: none
	from      string    // the first key to look at
	state     *snapshot // that is listed
	revision  int64     // that the page tells
	source    Source
	index     string // that the rows are taken from; "" for none
	evaluated int    // rows that were looked at, to choose from
}

// isSmall reports whether the storage below may answer while the cache is being filled: one object, or a page of a client that
// goes on from there. Readers in this process ask for all that was acknowledged.
func (l *listing) isSmall() bool {
	_, one := l.scope.Single()
	return one || l.opts.Limit > 0 && !l.opts.Selective() || l.opts.At.Match == storage.Acknowledged
}

// stateOf finds the state that is listed, and where in it the list begins; none when the storage below has to answer.
func (c *Cacher) stateOf(ctx context.Context, l *listing) (*snapshot, error) {
	at := l.opts.At
	l.from, l.source = l.scope.From, FromMemory
	if l.opts.Continue != "" {
		place, err := l.opts.Place(l.scope)
		if err != nil {
			return nil, err
		}
		l.from, at = place.From, storage.Read{Match: storage.Exact, Revision: place.Revision}
		if place.Revision == storage.AtLatest {
			at = storage.Read{}
		}
	}
	if at.Match == storage.Any {
		l.limit = 0
	}
	s, err := c.stateFor(ctx, at)
	if err != nil || s == nil {
		return nil, err
	}
	l.revision = s.revision
	if at.Match == storage.Exact {
		l.revision, l.source = at.Revision, FromHistory
	}
	return s, nil
}

// page makes the page.
func (l *listing) page() (storage.Page, error) {
	rows := l.rows()
	if rows.choose != nil {
		return l.chosenPage(rows)
	}
	count := rows.to - rows.from
	if l.limit > 0 {
		count = min(count, l.limit)
	}
	end := rows.from + count
	last := l.scope.To
	if end < rows.to {
		last = at(rows.tree, end).Key
	}
	if err := l.readable(last); err != nil {
		return storage.Page{}, err
	}
	p := storage.Page{Count: count, Revision: l.revision, Version: l.state.version(), Records: func(yield func(storage.Record) bool) {
		rows.tree.walk(rows.from, end, func(e *entry) bool { return yield(e.Record) })
	}, Blocks: func(yield func(storage.Block) bool) {
		rows.tree.pages(rows.from, end, func(p *page[entry], items []*entry) bool { return yield(block(p, items)) })
	}}
	if more := int64(rows.to - end); more > 0 {
		l.goOn(&p, at(rows.tree, end-1).Key)
		p.Remaining = &more
	}
	return p, nil
}

// block makes a block of elements of a page. Its forms are of the whole page.
func block(p *page[entry], items []*entry) storage.Block {
	b := storage.Block{Records: records(items), Count: len(items)}
	if len(items) == p.len() {
		b.Forms = p.keeps().forms
	}
	return b
}

func records(items []*entry) iter.Seq[storage.Record] {
	return func(yield func(storage.Record) bool) {
		for _, e := range items {
			if !yield(e.Record) {
				return
			}
		}
	}
}

// chosenPage makes the page of the rows that selectors choose.
func (l *listing) chosenPage(rows rows) (storage.Page, error) {
	var out []*entry
	last, more := l.scope.To, false
	rows.chosen(func(e *entry, looked int) bool {
		l.evaluated = looked
		if more = l.limit > 0 && len(out) == l.limit; more {
			last = out[len(out)-1].Key + "\x00"
			return false
		}
		out = append(out, e)
		return true
	})
	if !more {
		l.evaluated = rows.to - rows.from
	}
	if err := l.readable(last); err != nil {
		return storage.Page{}, err
	}
	p := storage.Page{Count: len(out), Revision: l.revision, Version: l.state.version(), Records: records(out)}
	if more {
		l.goOn(&p, out[len(out)-1].Key)
	}
	return p, nil
}

// goOn gives a page the token for the rows after a key.
func (l *listing) goOn(p *storage.Page, key string) {
	p.Continue = l.scope.Token(storage.Continue{Revision: l.revision, From: key + "\x00"})
}

// rows is what a list or the initial events of a watch are made of: the entries with ranks [from, to) of a tree that
// choose chooses. They are in key order.
type rows struct {
	tree     tree[entry]
	from, to int
	choose   func(*entry) bool // nil: all of them, and all are in the scope
	verdicts *verdicts         // on the label sets of what choose chooses; nil: it does not go by them alone
}

// chosen yields what choose chooses, and how many rows were looked at until then. Of pages that know their label sets
// only those entries are touched which have one that matches.
func (r *rows) chosen(yield func(e *entry, looked int) bool) {
	looked := 0
	r.tree.pages(r.from, r.to, func(p *page[entry], items []*entry) bool {
		var ids *setIDs
		if r.verdicts != nil && len(items) == p.len() {
			ids = setsOf(p)
		}
		for i, e := range items {
			if ids != nil && !r.verdicts.onID(ids[i], e) {
				continue
			}
			if r.choose(e) && !yield(e, looked+i+1) {
				return false
			}
		}
		looked += len(items)
		return true
	})
}

// at returns the entry with a rank that the tree has.
func at(t tree[entry], rank int) (found *entry) {
	t.walk(rank, rank+1, func(e *entry) bool {
		found = e
		return false
	})
	return found
}

// rows finds what the list shows, without a limit.
func (l *listing) rows() rows {
	s, sel := l.state, l.opts.Selection
	out := rows{tree: s.records, from: s.records.rank(before(l.from)), to: s.records.len()}
	if l.scope.To != "" {
		out.to = max(out.from, s.records.rank(before(l.scope.To)))
	}
	if !sel.Selective() && l.scope.Whole() {
		return out
	}
	for i, t := range s.indexes {
		text, ok := l.indexes.asked(sel, i)
		if !ok {
			continue
		}
		from, to := t.rank(beforeValue(i, text, l.from)), t.rank(afterValue(i, text, l.scope.To))
		if to-from < out.to-out.from {
			out.tree, out.from, out.to = t, from, max(from, to)
			l.index = l.indexes.index(i)
		}
	}
	verdicts, whole := newVerdicts(sel.Labels), l.scope.Whole()
	if l.index == "" {
		out.verdicts = verdicts // an index has few rows, and other pages
	}
	out.choose = func(e *entry) bool {
		return e.unreadable == nil && (whole || l.scope.Has(e.Key)) && verdicts.on(e) && (sel.Fields == nil || sel.Fields.Matches(e.Fields))
	}
	return out
}

// index names an index: "f:" and its field, or "l:" and its label.
func (o *Options) index(i int) string {
	if i < len(o.IndexFields) {
		return "f:" + o.IndexFields[i]
	}
	return "l:" + o.IndexLabels[i-len(o.IndexFields)]
}

// asked returns the one value of an index that a selection asks for.
func (o *Options) asked(sel storage.Selection, index int) (text string, ok bool) {
	if index < len(o.IndexFields) {
		if sel.Fields == nil {
			return "", false
		}
		return sel.Fields.RequiresExactMatch(o.IndexFields[index])
	}
	if sel.Labels == nil {
		return "", false
	}
	return sel.Labels.RequiresExactMatch(o.IndexLabels[index-len(o.IndexFields)])
}

// verdicts are those of a selector on label sets, for one goroutine and many entries: it judges labels that are the same
// once, as long as there are not too many. nil chooses all.
type verdicts struct {
	selector labels.Selector
	known    [knownVerdicts]uint32 // at the id of a set: the id, followed by a bit that is 1 if it matches
}

const knownVerdicts = 1024

// newVerdicts returns the verdicts of a selector; nil for one that chooses all.
func newVerdicts(selector labels.Selector) *verdicts {
	if selector == nil || selector.Empty() {
		return nil
	}
	return &verdicts{selector: selector}
}

// on returns the verdict on the labels of an entry that is readable.
func (v *verdicts) on(e *entry) bool { return v == nil || v.onID(e.set().id, e) }

// onID is on for an entry whose label set's id is at hand: the entry is only looked at if that set is not known. What has
// no id may be unreadable, and is chosen then.
func (v *verdicts) onID(id uint32, e *entry) bool {
	known := &v.known[id%knownVerdicts]
	if *known>>1 == id && id != 0 {
		return *known&1 != 0
	}
	return v.judge(id, e)
}

func (v *verdicts) judge(id uint32, e *entry) bool {
	set := e.set()
	if set == nil {
		return true
	}
	matches := v.selector.Matches(set)
	if id != 0 {
		known := &v.known[id%knownVerdicts]
		if *known = id << 1; matches {
			*known |= 1
		}
	}
	return matches
}

// readable returns an UnreadableError if there is an unreadable entry before the key end, "" being the end of all.
func (l *listing) readable(end string) error {
	t := l.state.unreadable
	if t.len() == 0 {
		return nil
	}
	var found *storage.UnreadableError
	t.walk(t.rank(before(l.from)), t.len(), func(e *entry) bool {
		switch {
		case end != "" && e.Key >= end:
			return false
		case !l.scope.Has(e.Key):
			return true
		}
		found = found.And(e.unreadable)
		return !found.Truncated
	})
	if found == nil {
		return nil
	}
	return found
}
