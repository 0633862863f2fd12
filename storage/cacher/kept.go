package cacher

import (
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// kept is what readers keep with a page. It is made by the first of them, so that pages which nobody lists have none.
type kept struct {
	left  bool           // the page has left the latest state: nothing more is kept
	forms *storage.Forms // of all its elements; nil: none are kept
	sets  atomic.Pointer[setIDs]
}

// setIDs are the ids of the label sets of a page's entries; 0 stands for one that has none.
type setIDs [pageRoom]uint32

// setsOf returns the label sets of a page of a state, so that who looks for some of them need not look at the entries;
// nil where they are not kept. They take 4 bytes an entry of the pages that lists by label look at.
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
		k.sets.Store(ids) // two who make them make the same
	}
	return ids
}

// keeps returns what is kept with the page of a state. It goes when the page leaves the latest state, and a page that a
// write makes of this one begins without.
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

// leave says of all pages of a tree that they have left the latest state.
func (t tree[E]) leave(ed *edition) {
	if ed == nil || ed.forms == nil {
		return
	}
	t.pages(0, t.len(), func(p *page[E], _ []*E) bool {
		p.node.leave(ed)
		return true
	})
}

// newEdition returns the edition that goes on with the latest state. The caller holds mu.
func (c *Cacher) newEdition() *edition {
	return &edition{forms: c.opts.Forms, left: kept{left: true}}
}
