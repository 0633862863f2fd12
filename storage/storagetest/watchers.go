package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// watcher is a watch of a workload, with its own way of reading.
type watcher struct {
	w      *workload
	name   string
	b      storage.Backend
	prefix string
	prev   bool
	// from is the revision at which it begins; -1: the store's revision at that time.
	from   int64
	middle bool // it begins in the middle of the workload
	// each runs after every Next, and may end the feed, which is then resumed where it was.
	each func(f *watcher) (resume bool)
	// timeout bounds a Next; 0 is no bound. A reader that stopped waiting tries again.
	timeout time.Duration

	mu   sync.Mutex // guards feed
	feed storage.Feed

	// The results; used by its own goroutine only until run returns.
	changes []storage.Change
	marks   []mark
	reached int64 // nothing more comes at or below this revision
	nexts   int
	bad     error
}

// mark records that a watch showed a revision at a time.
type mark struct {
	at       time.Duration
	revision int64
}

// watches returns the watches that run at the same time as the clients.
func (w *workload) watches() []*watcher {
	slow := func(f *watcher) bool {
		w.rest(w.ctx, 15*time.Millisecond)
		return false
	}
	resume := func(f *watcher) bool { return f.nexts%3 == 0 }
	progress := func(f *watcher) bool {
		w.rest(w.ctx, time.Millisecond)
		f.ask()
		return f.nexts%20 == 0
	}
	list := []*watcher{
		{name: "all keys", prefix: "", from: w.first, prev: true},
		{name: "the prefix, without previous values", prefix: w.prefix, from: w.first},
		{name: "one key", prefix: w.key(1), from: w.first, prev: true},
		{name: "a slow reader", prefix: w.prefix, from: w.first, prev: true, each: slow},
		{name: "one that resumes", prefix: w.prefix, from: w.first, prev: true, each: resume},
		{name: "one that asks for progress", prefix: w.key(0), from: w.first, prev: true, each: progress},
		{name: "one that gives up and comes back", prefix: w.prefix, from: w.first, timeout: time.Millisecond},
		{name: "from the future", prefix: w.prefix, from: w.first + 40, prev: true},
		{name: "begun in the middle", prefix: w.prefix, from: -1, middle: true, prev: true},
		{name: "begun in the middle, from the beginning", prefix: w.prefix, from: w.first, middle: true, prev: true},
	}
	return w.staff(list)
}

// staff gives each watch its backend.
func (w *workload) staff(list []*watcher) []*watcher {
	for i, f := range list {
		f.w, f.b = w, w.backends[i%len(w.backends)]
		f.prev = f.prev && !w.incomplete
	}
	return list
}

// lateWatches returns the watches that begin after the clients have ended.
func (w *workload) lateWatches() []*watcher {
	return w.staff([]*watcher{
		{name: "begun at the end, from the beginning", prefix: w.prefix, from: w.first, prev: true},
		{name: "begun at the end, from in between", prefix: w.prefix, from: (w.first + w.final.Load()) / 2, prev: true},
	})
}

// run follows the changes until all up to the workload's end have come.
func (f *watcher) run() {
	if f.middle {
		select {
		case <-f.w.halfway:
		case <-f.w.ctx.Done():
		}
	}
	if f.from < 0 {
		if f.from, f.bad = f.w.ask(); f.bad != nil {
			return
		}
	}
	for from := f.from; !f.over(); from = max(f.from, f.reached) {
		if f.bad = f.open(from); f.bad != nil {
			return
		}
		f.bad = f.follow()
		f.feed.Close()
		if f.bad != nil {
			return
		}
	}
}

func (f *watcher) over() bool {
	final := f.w.final.Load()
	return final > 0 && f.reached >= final
}

// open starts the watch. If the store is unavailable, it tries again.
func (f *watcher) open(from int64) error {
	for {
		feed, err := f.b.Watch(f.w.ctx, storage.WatchRange{Prefix: f.prefix, From: from, Prev: f.prev})
		if err == nil {
			f.mu.Lock()
			f.feed = feed
			f.mu.Unlock()
			return nil
		}
		if !transient(err) || f.w.ctx.Err() != nil {
			return fmt.Errorf("Watch from %d: %w", from, err)
		}
		f.w.rest(f.w.ctx, 10*time.Millisecond)
	}
}

// ask requests progress of the watch, if it has begun.
func (f *watcher) ask() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.feed != nil {
		f.feed.RequestProgress()
	}
}

// follow reads until the end, or until the watch is to be resumed.
func (f *watcher) follow() error {
	for !f.over() {
		if f.w.final.Load() > 0 {
			f.ask()
		}
		got, err := f.next()
		if err != nil {
			return err
		}
		if err := f.take(got); err != nil {
			return err
		}
		if f.nexts++; f.each != nil && f.each(f) {
			return nil
		}
	}
	return nil
}

// next calls Next with the watch's timeout, again and again until the test is over.
func (f *watcher) next() (storage.Changes, error) {
	for {
		ctx, cancel := f.w.ctx, context.CancelFunc(func() {})
		if f.timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, f.timeout)
		}
		got, err := f.feed.Next(ctx)
		cancel()
		switch {
		case err == nil:
			return got, nil
		case f.w.ctx.Err() != nil:
			return got, fmt.Errorf("after progress %d Next waited for changes up to revision %d in vain: %w", f.reached, f.w.final.Load(), err)
		case !errors.Is(err, context.DeadlineExceeded) || f.timeout == 0:
			return got, fmt.Errorf("after progress %d: Next: %w", f.reached, err)
		}
		if f.w.final.Load() > 0 {
			f.timeout = 0
			f.ask()
		}
	}
}

// take checks the rules for every result of Next, and keeps the result.
func (f *watcher) take(got storage.Changes) error {
	last := f.reached
	for _, c := range got.Changes {
		switch {
		case c.Revision <= last:
			return fmt.Errorf("%q after revision or progress %d", text(c), last)
		case c.Revision <= f.from:
			return fmt.Errorf("%q, but the watch is from %d", text(c), f.from)
		case !strings.HasPrefix(c.Key, f.prefix):
			return fmt.Errorf("%q, but the watch is of %q", text(c), f.prefix)
		}
		if strings.HasPrefix(c.Key, f.w.prefix) {
			last = c.Revision // other clients of the store may make several changes in one revision
		}
	}
	if got.Progress < last {
		return fmt.Errorf("progress %d after revision or progress %d", got.Progress, last)
	}
	if len(got.Changes) == 0 && got.Progress < f.reached {
		return fmt.Errorf("progress went back from %d to %d", f.reached, got.Progress)
	}
	f.changes = append(f.changes, got.Changes...)
	f.marks = append(f.marks, mark{time.Since(f.w.started), got.Progress})
	f.reached = got.Progress
	return nil
}
