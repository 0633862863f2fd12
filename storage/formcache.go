package storage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// FormCache keeps the forms of records and of blocks of records, such as their encodings and compressed texts. All forms
// share one budget of bytes. One cache is for all resources of a server. All methods may be called concurrently; a nil
// *FormCache keeps nothing.
//
// When the budget is used up, each new form makes the cache examine the oldest one. If that was not used lately, it is
// dropped and the new form takes its place. Otherwise the oldest form stays for another round, and the new form is not kept.
// So forms in use stay, and unused forms are dropped after they were examined a few times. If a list is larger than the
// budget, a part of it stays in the cache. A cache that drops the least recently used form would keep nothing of such a list.
type FormCache struct {
	most    int64    // maximum number of bytes
	largest int64    // maximum cost of one form
	byID    sync.Map // *form by id, without the forms of Forms
	hits    [hitStripes]stripe
	misses  atomic.Int64

	mu        sync.Mutex // guards all fields below, and the place of each form in the order; no form is made while it is held
	order     form       // the two ends of the kept forms: order.older is the newest, order.newer the oldest
	forms     int
	bytes     int64
	evictions int64
}

// stripe is a counter in its own cache line, so that readers of different forms do not share a line.
type stripe struct {
	n atomic.Int64
	_ [56]byte
}

const (
	hitStripes = 8
	// formCost is about what a form costs besides its bytes: the struct, its key and its place in a map.
	formCost = 256
	// largestShare: one form may cost at most 1/largestShare of the budget. A larger form would evict too many others.
	largestShare = 8
	// lives is how many times a form is examined before it is dropped, counted from when it was made or last used. With two,
	// lists of up to three times the budget find what fits into it.
	lives = 2
)

// FormStats describes a FormCache at one moment.
type FormStats struct {
	Bytes, Forms            int64 // of the kept forms; Bytes includes the cost of each form besides its text
	Most                    int64 // the budget in bytes
	Hits, Misses, Evictions int64 // so far: forms found, forms made, forms dropped to make space for others
}

// NewFormCache returns an empty cache that keeps at most most bytes. It returns nil, which keeps nothing, when most is not
// positive.
func NewFormCache(most int64) *FormCache {
	if most <= 0 {
		return nil
	}
	c := &FormCache{most: most, largest: most / largestShare}
	c.order.older, c.order.newer = &c.order, &c.order
	return c
}

// Get is like Forms.Get, for forms that belong to no Forms. id is a comparable value that identifies the record and the form.
// The form is not dropped when the record is gone, so id must differ between two states of the record.
func (c *FormCache) Get(ctx context.Context, id any, make func() ([]byte, error)) ([]byte, error) {
	if c == nil {
		return make()
	}
	for {
		found, ok := c.byID.Load(id)
		if !ok {
			found, _ = c.byID.LoadOrStore(id, &form{key: id})
		}
		if text, ok, err := found.(*form).get(ctx, c, make); ok {
			return text, err
		}
	}
}

// Has is like Forms.Has, for forms that belong to no Forms.
func (c *FormCache) Has(id any) bool {
	if c == nil {
		return false
	}
	found, ok := c.byID.Load(id)
	return ok && found.(*form).made.Load()
}

// NewForms returns an empty Forms whose bytes count against the budget, and may be dropped at any time. The owner of the
// Forms calls Drop when the event or block is gone.
func (c *FormCache) NewForms() *Forms {
	if c == nil {
		return nil
	}
	return &Forms{cache: c}
}

// Stats returns the present numbers of the cache.
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

// hit notes that a form was found. It writes nothing if another reader of the form has written the same already.
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

// keep puts a form, whose text is made, into the order. It returns false if the form costs too much, if the forms in the
// cache are in use, or if the form's Forms was dropped.
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

// room frees space for a cost and returns the forms that were dropped for it. ok is false at the first form that stays. The
// caller holds mu.
func (c *FormCache) room(cost int64) (gone []*form, ok bool) {
	for c.bytes+cost > c.most {
		e := c.order.newer
		if left := e.lives.Load(); left > 0 {
			e.lives.Store(left - 1) // a concurrent hit may be lost
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

// forget takes a form out of the order and subtracts its cost. The caller holds mu.
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

// form is one form, which is made already or not yet. Readers find it in a list, and use it, without a lock.
type form struct {
	key    any
	in     *Forms               // the Forms whose list has it; nil: it is in the map of its cache
	next   atomic.Pointer[form] // in that list
	made   atomic.Bool          // text is set
	lives  atomic.Uint32        // how many more times the cache may examine the form before it is dropped
	text   []byte               // text and stripe never change once made is true
	stripe uint32               // the counter of its cache that counts its hits

	// making is the attempt to make text; nil once that is made. An attempt that failed stays: the form is not found any more.
	making atomic.Pointer[making]

	cost         int64 // guarded by FormCache.mu, like all fields below: its share of the budget; 0: none
	older, newer *form // neighbours in the cache's order; nil: the form is not in it
}

// making is one attempt to make the text of a form.
type making struct {
	done chan struct{} // closed at its end
	// Set before done is closed.
	failed bool  // there is no text
	why    error // the error for all callers that waited; nil: they make the form themselves
}

// get returns the form's text, and makes it if it is not made yet. ok is false if another goroutine was making it and failed
// with a panic or a context's error; the caller then looks the form up again. cache is the cache of the form; nil is none.
func (e *form) get(ctx context.Context, cache *FormCache, make func() ([]byte, error)) (text []byte, ok bool, err error) {
	if e.made.Load() {
		cache.hit(e)
		return e.text, true, nil
	}
	mine := newMaking()
	if !e.making.CompareAndSwap(nil, mine) {
		return e.await(ctx, cache)
	}
	defer mine.end(e)
	if e.made.Load() {
		cache.hit(e)
		return e.text, true, nil
	}
	cache.miss(e)
	kept := false
	defer func() { // make may have panicked
		if !kept {
			e.leave(cache)
		}
	}()
	if text, err = make(); err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			mine.why = err
		}
		return nil, true, err
	}
	e.text = text
	kept = cache.keep(e)
	e.made.Store(true) // callers that wait get the text even if it is not kept
	if kept && e.in != nil && e.in.grown != nil {
		e.in.grown(len(text))
	}
	return text, true, nil
}

func newMaking() *making { return &making{done: make(chan struct{})} }

// end ends the attempt.
func (m *making) end(e *form) {
	if m.failed = !e.made.Load(); !m.failed {
		e.making.Store(nil)
	}
	close(m.done)
}

// await is get for a form that another goroutine makes.
func (e *form) await(ctx context.Context, cache *FormCache) (text []byte, ok bool, err error) {
	if other := e.making.Load(); other != nil {
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
		if other.failed {
			return nil, other.why != nil, other.why
		}
	}
	cache.hit(e)
	return e.text, true, nil
}

// leave removes a form from its list or map.
func (e *form) leave(cache *FormCache) {
	if e.in != nil {
		e.in.remove(e)
	} else {
		cache.byID.CompareAndDelete(e.key, e)
	}
}

// remove removes a form from the list. A reader that has reached the form continues from there.
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
