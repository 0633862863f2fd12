package cacher

import (
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// kept is what readers keep with a page. The first reader makes it, so that pages that are never listed have none.
type kept struct {
	left  bool           // the page has left the latest state: nothing more is kept
	forms *storage.Forms // for all elements of the page; nil: none are kept
	sets  atomic.Pointer[setIDs]
}

// setIDs has the ids of the label sets of a page's entries; 0 means that the entry has none.
type setIDs [pageRoom]uint32

// setsOf returns the label sets of a page of a state. A reader that looks for some of the sets need not look at the entries.
// setsOf returns nil if the sets are not kept. They take 4 bytes for each entry of the pages that lists by label examine.
func setsOf(p *page[entry]) *setIDs {
	k := p.keeps()
	if k.left {
		return nil
	}
	ids := k.sets.Load()
	if ids == nil {
		ids = new(setIDs)
		for i, e := range p.used() {
			if set := e.set(); set != nil {
				ids[i] = set.id
			}
		}
		k.sets.Store(ids) // concurrent callers store the same content
	}
	return ids
}

// keeps returns what is kept with a page of a state. It is dropped when the page leaves the latest state. A copy of the page
// that a write makes has nothing kept at first.
func (p *page[E]) keeps() *kept {
	k := p.kept.Load()
	if k == nil {
		k = &kept{forms: p.node.owner.forms.NewForms()}
		if !p.kept.CompareAndSwap(nil, k) {
			return p.keeps()
		}
	}
	return k
}

// leave marks all pages of a tree as having left the latest state.
func (t tree[E]) leave(ed *edition) {
	if ed == nil || ed.forms == nil {
		return
	}
	t.pages(0, t.len(), func(p *page[E], _ []*E) bool {
		p.node.leave(ed)
		return true
	})
}

// newEdition returns the edition for further writes to the latest state. The caller holds mu.
func (c *Cacher) newEdition() *edition {
	return &edition{forms: c.opts.Forms, left: kept{left: true}}
}
