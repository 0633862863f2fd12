package cacher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the options of a Cacher. The zero Options is for a cluster-scoped resource.
type Options struct {
	// Namespaced means that keys are "namespace/name", and not "name".
	Namespaced bool
	// IndexFields and IndexLabels are selectable fields and labels by whose values records are indexed. The cost of a list
	// that selects one value is proportional to the records found. A change wakes only the watches that select one of its
	// values. An index costs some 60 bytes a record.
	IndexFields, IndexLabels []string
	// Window is how long changes are kept for watches and older states; 0 is 5 min. It should be above three minutes: a
	// server sends bookmarks about once a minute, and a client resumes a watch at the last bookmark that it has received.
	Window time.Duration
	// WindowBytes is about how much memory older states and changes may take, whatever Window is. 0 means a quarter of the
	// bytes of all records, at least 8 MiB and at most 128 MiB.
	WindowBytes int64
	// ReadWait is how long a read waits for a revision that the cache has not reached; 0 is 3 s.
	ReadWait time.Duration
	// FillWait is how long a list, a watch, or a Get with a Match other than Latest waits for the cache to be filled; 0 is 3
	// s.
	FillWait time.Duration
	// Forms keeps what readers derive from the blocks of a list, such as their encodings; nil keeps nothing. Several caches
	// may share one.
	Forms *storage.FormCache
	// Hooks are called about events in the cache.
	Hooks Hooks
}

func (o Options) withDefaults() (Options, error) {
	if o.Window < 0 || o.WindowBytes < 0 || o.ReadWait < 0 || o.FillWait < 0 {
		return o, errors.New("cacher: Window, WindowBytes, ReadWait and FillWait must not be negative")
	}
	for _, names := range [][]string{o.IndexFields, o.IndexLabels} {
		for i, name := range names {
			if name == "" || slices.Contains(names[:i], name) {
				return o, fmt.Errorf("cacher: index %q: want the name of a selectable field or a label, once", name)
			}
		}
	}
	if o.Window == 0 {
		o.Window = 5 * time.Minute
	}
	if o.ReadWait == 0 {
		o.ReadWait = 3 * time.Second
	}
	if o.FillWait == 0 {
		o.FillWait = 3 * time.Second
	}
	return o, nil
}

// Cacher is a storage.Interface that serves from memory. It begins to fill when it is first used. Until then it has no
// goroutine. Afterwards it has one that follows the storage below, and another one while readers wait for the store's
// revision. If the storage below is in this process, neither exists while nothing happens: see storage.Waker and
// storage.Source.Known. All methods may be called concurrently. Make one with New, and close it before the storage below.
//
// A Cacher keeps no decoded objects and no queue per watcher. Its state is an immutable ordered tree of pages that share the
// records' bytes with the backend. Parts that many records have in common are kept once, see codec.Common.
type Cacher struct {
	below  storage.Source
	opts   Options
	unsafe storage.UnreadableDeleter // nil: the storage below is no UnreadableDeleter

	life     context.Context // ends with Close
	end      context.CancelFunc
	working  sync.WaitGroup
	begin    sync.Once
	follower follower // used by the goroutine that follows only
	latest   revisions
	writes   *writes   // the acknowledged writes
	plain    bool      // the storage below is no storage.Source
	batches  sync.Pool // of *[]*change, for watchers that are reading

	published atomic.Pointer[snapshot] // a state that the cache had, or has; nil: no state may be shown
	reached   atomic.Int64             // the revision up to which the cache is complete
	known     atomic.Int64             // the highest revision that the store is known to have reached
	epoch     atomic.Int64             // grows when everything shown so far becomes void
	changed   atomic.Int64             // log.last; 0: the cache is not filled
	setBack   atomic.Int64             // the highest revision that was known before the store was last set back; 0: it never was

	mu       sync.Mutex // guards all below
	ending   bool
	empty    time.Time     // since when the cache has not been filled
	hopeless bool          // the last attempt to fill the cache met something that it cannot keep: the next attempts will, too
	loading  chan struct{} // closed when the current attempt to fill the cache ends; nil: there is none
	problem  error         // why the cache is not filled, or not fresh; nil if it is
	answered time.Time     // when the storage below last returned something
	ended    error         // error of watches of an earlier epoch; nil: an ExpiredError
	cut      error         // error of watches of this epoch at the end of the log; nil: they continue
	loaded   bool          // the fields below may be shown
	state    state         // the latest state
	edition  *edition      // has the nodes of state that are used by nothing else
	entries  *entries
	log      changelog
	recent   []*snapshot // older states that were read last
	feed     storage.Following
	waiters  []*waiter
	progress progress
	timer    *time.Timer // for the next call of tick
	idle     idle
	woken    []*watcher // not idle any more; nudgeWoken must nudge them
	asking   []*watcher // they want a bookmark at the next progress mark
	reminder reminder
	watchers int
}

var (
	_ storage.Interface         = (*Cacher)(nil)
	_ storage.UnreadableDeleter = (*Cacher)(nil)
	_ storage.Differ            = (*Cacher)(nil)
)

// Uncached returns the storage below, for callers that must not be served from memory.
func (c *Cacher) Uncached() storage.Interface { return c.below }

// New returns a cache of one resource. The cache never closes below.
func New(below storage.Interface, o Options) (*Cacher, error) {
	if below == nil {
		return nil, errors.New("cacher: a cache needs a storage below it")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cacher{opts: o, writes: new(writes)}
	var source bool
	if c.below, source = below.(storage.Source); !source {
		c.below, c.plain = plain{below}, true
	}
	c.unsafe, _ = below.(storage.UnreadableDeleter)
	c.life, c.end = context.WithCancel(context.Background())
	c.latest.read = c.below.Revision
	return c, nil
}

// Close ends all watches with storage.ErrClosed, stops following the storage below, and waits for that. No goroutine is left,
// and none begins later. Every later call returns storage.ErrClosed; a second Close does nothing.
func (c *Cacher) Close() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.end()
	c.working.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(storage.ErrClosed)
	c.doneLoading()
	for _, t := range []*time.Timer{c.timer, c.progress.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// Create implements storage.Interface.
func (c *Cacher) Create(ctx context.Context, key string, obj runtime.Object, opts storage.WriteOptions) (storage.Record, error) {
	if c.life.Err() != nil {
		return storage.Record{}, storage.ErrClosed
	}
	record, err := c.below.Create(ctx, key, obj, opts)
	c.acknowledge(record.Revision, opts, err)
	return record, err
}

// Update implements storage.Interface.
func (c *Cacher) Update(ctx context.Context, key string, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	if c.life.Err() != nil {
		return storage.Record{}, storage.ErrClosed
	}
	c.start()
	record, err := c.update(ctx, key, opts, change)
	c.acknowledge(record.Revision, opts, err)
	return record, err
}

func (c *Cacher) update(ctx context.Context, key string, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	if e := c.find(key); e != nil && e.unreadable == nil {
		from := e.Record
		if opts.Account != nil {
			if err := opts.Account.Hold(int64(from.Body.Size())); err != nil {
				return storage.Record{}, err
			}
		}
		from.Body = from.Body.Whole() // it is used more than once
		return c.below.UpdateFrom(ctx, from, opts, change)
	}
	return c.below.Update(ctx, key, opts, change)
}

// DeleteUnreadable implements storage.UnreadableDeleter. If the storage below does not implement it, the error is
// storage.ErrUnsupported.
func (c *Cacher) DeleteUnreadable(ctx context.Context, key string, opts storage.WriteOptions) (int64, error) {
	switch {
	case c.life.Err() != nil:
		return 0, storage.ErrClosed
	case c.unsafe == nil:
		return 0, storage.ErrUnsupported
	}
	revision, err := c.unsafe.DeleteUnreadable(ctx, key, opts)
	c.acknowledge(revision, opts, err)
	return revision, err
}

// Decode implements storage.Interface.
func (c *Cacher) Decode(r storage.Record) (runtime.Object, error) { return c.below.Decode(r) }

// DecodeAll implements storage.ManyDecoder.
func (c *Cacher) DecodeAll(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error) {
	if many, ok := c.below.(storage.ManyDecoder); ok {
		return many.DecodeAll(ctx, records, gv)
	}
	return nil, storage.ErrUnsupported
}

// Revision implements storage.Interface.
func (c *Cacher) Revision(ctx context.Context) (int64, error) {
	if c.life.Err() != nil {
		return 0, storage.ErrClosed
	}
	return c.now(ctx)
}

// Get implements storage.Interface.
func (c *Cacher) Get(ctx context.Context, key string, at storage.Read) (storage.Record, error) {
	if at.Match == storage.Latest {
		return c.getLatest(ctx, key)
	}
	s, err := c.stateFor(ctx, at)
	switch {
	case err != nil:
		return storage.Record{}, err
	case s == nil:
		return c.below.Get(ctx, key, askedBelow(at))
	}
	return recordOf(s.find(key))
}

// getLatest returns the record from memory if its revision is the one that the store reports as current.
func (c *Cacher) getLatest(ctx context.Context, key string) (storage.Record, error) {
	if c.life.Err() != nil {
		return storage.Record{}, storage.ErrClosed
	}
	c.start()
	if c.plain {
		return c.below.Get(ctx, key, storage.Read{})
	}
	if storage.CheckKey(key, c.opts.Namespaced) != nil {
		return storage.Record{}, storage.ErrNotFound
	}
	before := c.mark()
	if now, ok := c.below.Known(); ok && now == before.reached {
		if e, ok := c.lookup(key, now); ok {
			return recordOf(e)
		}
	}
	stat, err := c.below.Stat(ctx, key)
	if err != nil {
		return storage.Record{}, err
	}
	c.compare(before, stat.At)
	if stat.Revision == 0 {
		return storage.Record{}, storage.ErrNotFound
	}
	if e := c.find(key); e != nil && e.Revision == stat.Revision {
		return recordOf(e)
	}
	return c.below.Get(ctx, key, storage.Read{})
}

// lookup returns the entry under a key at a revision; ok is false if the cache has passed that revision.
func (c *Cacher) lookup(key string, at int64) (e *entry, ok bool) {
	if s := c.published.Load(); s != nil && s.revision == at {
		return s.find(key), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded || c.reached.Load() != at {
		return nil, false
	}
	return c.state.find(key), true
}

// find returns the cache's present entry under a key, or nil.
func (c *Cacher) find(key string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return nil
	}
	return c.state.find(key)
}

// recordOf returns the result of a Get that found e.
func recordOf(e *entry) (storage.Record, error) {
	switch {
	case e == nil:
		return storage.Record{}, storage.ErrNotFound
	case e.unreadable != nil:
		return storage.Record{}, e.unreadable
	}
	return e.Record, nil
}
