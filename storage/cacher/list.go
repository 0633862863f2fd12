package cacher

import (
	"context"
	"iter"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/labels"
)

// List implements storage.Interface. The records of a page are read from the state while they are walked. A page without
// selectors has the same cost however many records it has.
func (c *Cacher) List(ctx context.Context, opts storage.ListOptions) (storage.Page, error) {
	if err := opts.Plain(); err != nil {
		return storage.Page{}, err
	}
	l := listing{opts: opts, scope: opts.Scope(c.opts.Namespaced), indexes: &c.opts, limit: int(max(opts.Limit, 0))}
	epoch := c.epoch.Load()
	s, err := c.stateOf(ctx, &l)
	if s == nil && err == nil && epoch != c.epoch.Load() && !l.isSmall() {
		s, err = c.stateOf(ctx, &l) // the state was found to be void, and the cache is filled anew
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
				opts.At = storage.Read{} // with Any, the limit would be ignored
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

// listing is one List in progress.
type listing struct {
	opts      storage.ListOptions
	scope     storage.Scope
	indexes   *Options
	limit     int       // 0: none
	from      string    // the first key to look at
	state     *snapshot // the state to list
	revision  int64     // the revision of the result
	source    Source
	index     string // the index that is read; "" for none
	evaluated int    // number of rows to which the selectors were applied
}

// isSmall reports whether the storage below may serve the list while the cache is being filled. It may if the list is of one
// object, is one page of a client that lists by pages, or has the Match Acknowledged, which only readers in this process use.
func (l *listing) isSmall() bool {
	_, one := l.scope.Single()
	return one || l.opts.Limit > 0 && !l.opts.Selective() || l.opts.At.Match == storage.Acknowledged
}

// stateOf finds the state to list, and where the list begins; it returns nil when the storage below has to serve the list.
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

// block makes a block of elements of a page. It has Forms only if it is the whole page.
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

// chosenPage makes the page of the rows that match the selectors. A page with all records that the limit allows has a token if
// there are records after it, whether they match or not, as in kube-apiserver.
func (l *listing) chosenPage(rows rows) (storage.Page, error) {
	var out []*entry
	last, full := l.scope.To, false
	rows.chosen(func(e *entry, looked int) bool {
		l.evaluated = looked
		out = append(out, e)
		full = l.limit > 0 && len(out) == l.limit
		return !full
	})
	if !full {
		l.evaluated = rows.to - rows.from
	}
	more := full && l.follow(out[len(out)-1].Key)
	if more {
		last = out[len(out)-1].Key + "\x00"
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

// follow reports whether there are records in the interval of the scope after a key.
func (l *listing) follow(key string) bool {
	t := l.state.records
	end := t.len()
	if l.scope.To != "" {
		end = t.rank(before(l.scope.To))
	}
	return t.rank(before(key+"\x00")) < end
}

// goOn sets the token of a page, for the rows after a key.
func (l *listing) goOn(p *storage.Page, key string) {
	p.Continue = l.scope.Token(storage.Continue{Revision: l.revision, From: key + "\x00"})
}

// rows selects the entries of a list or of the initial events of a watch: the entries with ranks [from, to) of a tree for
// which choose is true. They are in key order.
type rows struct {
	tree     tree[entry]
	from, to int
	choose   func(*entry) bool // nil: all entries, which are all in the scope
	verdicts *verdicts         // on the label sets of the entries; nil: choose depends on more than labels
}

// chosen yields the entries for which choose is true, each with the number of rows examined so far. In pages that have their
// label set ids, only entries with a matching set are read.
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

// at returns the entry with a rank, which must exist.
func at(t tree[entry], rank int) (found *entry) {
	t.walk(rank, rank+1, func(e *entry) bool {
		found = e
		return false
	})
	return found
}

// rows returns the rows of the list, without its limit.
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

// index returns the name of an index: "f:" and its field, or "l:" and its label.
func (o *Options) index(i int) string {
	if i < len(o.IndexFields) {
		return "f:" + o.IndexFields[i]
	}
	return "l:" + o.IndexLabels[i-len(o.IndexFields)]
}

// asked returns the value of an index that a selection requires; ok is false if it requires none.
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

// verdicts has the results of a selector on label sets, for one goroutine and many entries. The selector is applied once to
// labels that are equal, as long as there are not too many different ones. nil chooses all.
type verdicts struct {
	selector labels.Selector
	known    [knownVerdicts]uint32 // at the id of a set modulo the length: the id, followed by a bit that is 1 if it matches
}

const knownVerdicts = 1024

// newVerdicts returns the verdicts of a selector; nil for a selector that chooses all.
func newVerdicts(selector labels.Selector) *verdicts {
	if selector == nil || selector.Empty() {
		return nil
	}
	return &verdicts{selector: selector}
}

// on returns the verdict on the labels of a readable entry.
func (v *verdicts) on(e *entry) bool { return v == nil || v.onID(e.set().id, e) }

// onID is on for a caller that has the id of the entry's label set. The entry is read only if the verdict on that set is not
// known. An entry whose set has no id may be unreadable, and is chosen then.
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

// readable returns an UnreadableError if there is an unreadable entry before the key end; end "" is no bound.
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
