package storage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// FormCache keeps what readers have made of records and of blocks of records, such as their encodings and compressed
// texts, under one budget of bytes for all of it. One cache is for all resources of a server. All methods may be called
// concurrently; a nil *FormCache keeps nothing.
//
// When the budget is spent, each new form has the oldest one looked at. If that was not used lately it goes, and the new
// one takes its place; else it stays for another round, and the new one is not kept. So what is used stays, what is not
// goes after a few looks, and a list of more than the budget has a part of it kept where dropping the least recently used
// would leave it nothing.
type FormCache struct {
	most    int64    // bytes at most
	largest int64    // that one form may cost
	byID    sync.Map // of *form by id, those of Forms aside
	hits    [hitStripes]stripe
	misses  atomic.Int64

	mu        sync.Mutex // guards all below, and the place of each form in the order; nothing is made under it
	order     form       // newest and oldest of those kept: order.older is the newest, order.newer the oldest
	forms     int
	bytes     int64
	evictions int64
}

// stripe is a counter in a cache line of its own, so that readers of different forms do not share one.
type stripe struct {
	n atomic.Int64
	_ [56]byte
}

const (
	hitStripes = 8
	// formCost is about what a form costs besides its bytes: itself, its key, its place in a map.
	formCost = 256
	// largestShare is the share of the budget that one form may cost. One that costs more would drive out too much.
	largestShare = 8
	// lives is how often a form is looked at before it goes, when it is new or was used. With two, lists of up to three
	// times the budget find what fits into it.
	lives = 2
)

// FormStats is what a FormCache is like.
type FormStats struct {
	Bytes, Forms            int64 // that are kept; bytes with what a form costs besides its own
	Most                    int64 // bytes that may be kept
	Hits, Misses, Evictions int64 // so far: forms found, forms made, forms dropped for others
}

// NewFormCache returns an empty cache that keeps most bytes at most; nil, which keeps nothing, when most is not positive.
func NewFormCache(most int64) *FormCache {
	if most <= 0 {
		return nil
	}
	c := &FormCache{most: most, largest: most / largestShare}
	c.order.older, c.order.newer = &c.order, &c.order
	return c
}

// Get is Forms.Get for what belongs to no Forms: id, a comparable value, stands for the record and for the form of it.
// Nobody drops it when the record is gone, so id must tell one state of the record from another.
func (c *FormCache) Get(id any, make func() ([]byte, error)) ([]byte, error) {
	if c == nil {
		return make()
	}
	for {
		found, ok := c.byID.Load(id)
		if !ok {
			found, _ = c.byID.LoadOrStore(id, &form{key: id})
		}
		if text, ok, err := found.(*form).get(c, make); ok {
			return text, err
		}
	}
}

// NewForms returns an empty Forms whose bytes are under the budget, and may be dropped at any time. Its owner calls Drop
// when what it is of is gone.
func (c *FormCache) NewForms() *Forms {
	if c == nil {
		return nil
	}
	return &Forms{cache: c}
}

// Stats tells what the cache is like now.
func (c *FormCache) Stats() FormStats {
	if c == nil {
		return FormStats{}
	}
	s := FormStats{Most: c.most, Misses: c.misses.Load()}
	for i := range c.hits {
		s.Hits += c.hits[i].n.Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Bytes, s.Forms, s.Evictions = c.bytes, int64(c.forms), c.evictions
	return s
}

// hit notes that a form was found. Nothing is written that another reader of the form has written already.
func (c *FormCache) hit(e *form) {
	if c == nil {
		return
	}
	c.hits[e.stripe%hitStripes].n.Add(1)
	if e.lives.Load() != lives {
		e.lives.Store(lives)
	}
}

// miss counts a form that has to be made.
func (c *FormCache) miss(e *form) {
	if c != nil {
		e.stripe = uint32(c.misses.Add(1))
	}
}

// keep takes a form whose text is made into the order. It is false when it costs too much, when those that are there are
// used, or when the form's Forms is over.
func (c *FormCache) keep(e *form) bool {
	if c == nil {
		return !e.in.over.Load()
	}
	cost := int64(cap(e.text)) + formCost
	if cost > c.largest {
		return false
	}
	e.lives.Store(lives)
	c.mu.Lock()
	gone, ok := c.room(cost)
	if ok = ok && (e.in == nil || !e.in.over.Load()); ok {
		e.cost = cost
		c.bytes += cost
		c.forms++
		c.push(e)
	}
	c.mu.Unlock()
	for _, e := range gone {
		e.leave(c)
	}
	return ok
}

// room makes room for a cost and returns what has to leave for that. It is not ok at the first form that stays. The
// caller holds mu.
func (c *FormCache) room(cost int64) (gone []*form, ok bool) {
	for c.bytes+cost > c.most {
		e := c.order.newer
		if left := e.lives.Load(); left > 0 {
			e.lives.Store(left - 1) // a hit meanwhile may be forgotten
			c.pull(e)
			c.push(e)
			return gone, false
		}
		c.forget(e)
		c.evictions++
		gone = append(gone, e)
	}
	return gone, true
}

// drop forgets the forms of a list.
func (c *FormCache) drop(first *form) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := first; e != nil; e = e.next.Load() {
		if e.cost > 0 {
			c.forget(e)
		}
	}
}

// forget takes a form out of the order and gives its cost back. The caller holds mu.
func (c *FormCache) forget(e *form) {
	c.pull(e)
	c.bytes -= e.cost
	c.forms--
	e.cost = 0
}

// push makes a form the newest; pull takes it out of the order. The caller holds mu.
func (c *FormCache) push(e *form) {
	e.newer, e.older = &c.order, c.order.older
	e.older.newer, c.order.older = e, e
}

func (c *FormCache) pull(e *form) {
	e.newer.older, e.older.newer = e.older, e.newer
	e.newer, e.older = nil, nil
}

// form is one form, made or still to be made. Readers find it in a list, and use it, without a lock.
type form struct {
	key    any
	in     *Forms               // in whose list it is; nil: it is in the map of its cache
	next   atomic.Pointer[form] // in that list
	made   atomic.Bool          // text is there
	lives  atomic.Uint32        // looks of the cache that it survives
	text   []byte               // it and stripe never change once made is true
	stripe uint32               // which counter of its cache counts its hits

	making sync.Mutex // held while text is made
	failed bool       // guarded by making, as why: it has left its list unmade, and nobody finds it any more
	why    error      // what all who waited for it get; nil: they make it themselves

	cost         int64 // guarded by FormCache.mu, as all below: its part of the budget; 0: it has none
	older, newer *form // in the cache's order; nil: it is not in it
}

// get returns the form's text, and makes it when nobody has. It is not ok when who was making it has not come to an end: then it
// has to be looked for again. cache is what it is under; nil is none.
func (e *form) get(cache *FormCache, make func() ([]byte, error)) (text []byte, ok bool, err error) {
	if e.made.Load() {
		cache.hit(e)
		return e.text, true, nil
	}
	e.making.Lock()
	defer e.making.Unlock()
	switch {
	case e.made.Load():
		cache.hit(e)
		return e.text, true, nil
	case e.failed:
		return nil, e.why != nil, e.why
	}
	cache.miss(e)
	kept := false
	defer func() { // make may have panicked
		if !kept {
			e.failed = !e.made.Load()
			e.leave(cache)
		}
	}()
	if text, err = make(); err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			e.why = err
		}
		return nil, true, err
	}
	e.text = text
	kept = cache.keep(e)
	e.made.Store(true) // who waits gets it even if it is not kept
	if kept && e.in != nil && e.in.grown != nil {
		e.in.grown(len(text))
	}
	return text, true, nil
}

// leave takes a form out of where it is found.
func (e *form) leave(cache *FormCache) {
	if e.in != nil {
		e.in.remove(e)
	} else {
		cache.byID.CompareAndDelete(e.key, e)
	}
}

// remove takes a form out of the list. Who is at it goes on from there.
func (f *Forms) remove(e *form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := &f.first
	for o := at.Load(); o != nil; o = at.Load() {
		if o == e {
			at.Store(e.next.Load())
			return
		}
		at = &o.next
	}
}
