package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
)

// counts has the numbers of the calls of hooks.
type counts struct {
	mu               sync.Mutex // guards all below
	lists            map[cacher.Source]int
	watches          map[cacher.WatchBegan]int
	fills            []cacher.Filled
	voids            []error
	expired, catches int
}

func (c *counts) hooks() cacher.Hooks {
	c.lists, c.watches = map[cacher.Source]int{}, map[cacher.WatchBegan]int{}
	locked := func() func() { c.mu.Lock(); return c.mu.Unlock }
	return cacher.Hooks{
		Filled:   func(f cacher.Filled) { defer locked()(); c.fills = append(c.fills, f) },
		Void:     func(why error) { defer locked()(); c.voids = append(c.voids, why) },
		List:     func(s cacher.Source) { defer locked()(); c.lists[s]++ },
		Watch:    func(w cacher.WatchBegan) { defer locked()(); c.watches[w]++ },
		Expired:  func() { defer locked()(); c.expired++ },
		CaughtUp: func() { defer locked()(); c.catches++ },
	}
}

// text returns the counts without the fills.
func (c *counts) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d filled, %d void, lists %v, watches %v, %d expired, %d caught up", len(c.fills), len(c.voids), c.lists, c.watches, c.expired, c.catches)
}

// Each hook is called once for each event.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls counts
		r := newRig(t, nil, cacher.Options{Window: time.Minute, Hooks: calls.hooks()})
		want := func(text string) {
			t.Helper()
			synctest.Wait()
			if got := calls.text(); got != text {
				t.Errorf("told %q\nwant %q", got, text)
			}
		}
		for i := range 700 {
			r.put(fmt.Sprintf("a/%03d", i), "red")
		}
		first := r.now()
		want("0 filled, 0 void, lists map[], watches map[], 0 expired, 0 caught up")
		r.fill()
		want("1 filled, 0 void, lists map[memory:1], watches map[], 0 expired, 0 caught up")
		st := r.Stats()
		if f := calls.fills[0]; f.Records != 700 || f.Bytes != st.Bytes || f.Changes != 700 || f.Took < 0 {
			t.Errorf("filled: %+v; it is %+v", f, st)
		}
		r.put("a/000", "blue")
		r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: first}})
		r.list(storage.ListOptions{At: storage.Read{Match: storage.Any}})
		want("1 filled, 0 void, lists map[memory:2 history:1], watches map[], 0 expired, 0 caught up")
		slow := r.watch(storage.WatchOptions{Initial: true})
		late := r.watch(storage.WatchOptions{From: first})
		gone := r.watch(storage.WatchOptions{})
		want("1 filled, 0 void, lists map[memory:2 history:1], watches map[{false false}:1 {false true}:1 {true false}:1], 0 expired, 0 caught up")
		if st := r.Stats(); st.Watchers != 3 {
			t.Errorf("it is %+v, want 3 watchers", st)
		}
		gone.Close()
		gone.Close()
		if st := r.Stats(); st.Watchers != 2 {
			t.Errorf("it is %+v, want 2 watchers", st)
		}
		if _, err := slow.next(); err != nil { // nothing more is read for now
			t.Fatal(err)
		}
		r.put("a/003", "blue")
		time.Sleep(2 * time.Minute)
		r.seen(r.put("a/001", "blue"))
		var expired *storage.ExpiredError
		late.ends(&expired)
		want("1 filled, 0 void, lists map[memory:2 history:1], watches map[{false false}:1 {false true}:1 {true false}:1], 1 expired, 0 caught up")
		_, err := r.Watch(r.ctx, storage.WatchOptions{From: first})
		wantExpired(t, err, first, r.Stats().Oldest)
		for e, err := slow.next(); !e.InitialEnd; e, err = slow.next() {
			if err != nil {
				t.Fatal(err)
			}
		}
		want("1 filled, 0 void, lists map[memory:2 history:1], watches map[{false false}:1 {false true}:1 {true false}:1], 2 expired, 1 caught up")
		if st := r.Stats(); st.Watchers != 1 {
			t.Errorf("it is %+v, want 1 watcher", st)
		}
		r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: first}})
		want("1 filled, 0 void, lists map[memory:2 history:1 storage:1], watches map[{false false}:1 {false true}:1 {true false}:1], 2 expired, 1 caught up")

		r.source.hold()
		r.source.fail(storage.ErrUnavailable)
		r.put("a/002", "blue")
		r.put("a/002", "red")
		r.compact()
		r.source.release()
		slow.ends(&expired)
		r.eventually("the cache is filled anew", func() bool { return r.Stats().Filled })
		want("2 filled, 1 void, lists map[memory:2 history:1 storage:1], watches map[{false false}:1 {false true}:1 {true false}:1], 3 expired, 1 caught up")
		if !errors.Is(calls.voids[0], storage.ErrCompacted) {
			t.Errorf("void: %v", calls.voids)
		}
	})
}

// Stats describes the cache.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, cacher.Options{ReadWait: time.Second})
		start := r.now()
		size := func() (n int64) {
			for record := range r.list(storage.ListOptions{At: storage.Read{Match: storage.Any}}).Records {
				n += int64(len(record.Body.Bytes()))
			}
			return n
		}
		r.put("a/x", "red")
		if st := r.Stats(); st != (cacher.Stats{}) {
			t.Errorf("a cache that is not in use is %+v", st)
		}
		r.fill()
		check := func(want cacher.Stats) {
			t.Helper()
			synctest.Wait()
			got := r.Stats()
			if least := size(); got.Bytes < least || got.Bytes > least+1000*int64(got.Records) {
				t.Errorf("%d records take %d bytes, and their bodies %d", got.Records, got.Bytes, least)
			}
			if got.LogBytes < int64(100*got.Changes) || got.LogBytes > int64(2000*got.Changes) {
				t.Errorf("%d changes take %d bytes", got.Changes, got.LogBytes)
			}
			want.Filled, want.Bytes, want.LogBytes = true, got.Bytes, got.LogBytes
			if got != want {
				t.Errorf("it is   %+v,\nwant it %+v", got, want)
			}
		}
		now := r.now()
		check(cacher.Stats{Records: 1, Revision: now, Oldest: start, Changes: 1})
		time.Sleep(20 * time.Second)
		now = r.put("a/y", "red")
		check(cacher.Stats{Records: 2, Revision: now, Oldest: start, Changes: 2, Window: 20 * time.Second})
		time.Sleep(20 * time.Second)
		now = r.drop("a/y")
		check(cacher.Stats{Records: 1, Revision: now, Oldest: start, Changes: 3, Window: 40 * time.Second})
		now = r.aside()
		r.list(storage.ListOptions{})
		check(cacher.Stats{Records: 1, Revision: now, Oldest: start, Changes: 3, Window: 40 * time.Second})
		w := r.watch(storage.WatchOptions{})
		check(cacher.Stats{Records: 1, Revision: now, Oldest: start, Changes: 3, Window: 40 * time.Second, Watchers: 1})
		w.Close()
		r.source.hold()
		for range 3 {
			r.put("a/x", "blue")
		}
		if _, err := r.Revision(r.ctx); err != nil {
			t.Error(err)
		}
		check(cacher.Stats{Records: 1, Revision: now, Oldest: start, Changes: 3, Window: 40 * time.Second, Lag: 3})
		r.source.release()
		check(cacher.Stats{Records: 1, Revision: now + 3, Oldest: start, Changes: 6, Window: 40 * time.Second})
		r.Close()
		if st := r.Stats(); st != (cacher.Stats{}) {
			t.Errorf("a closed cache is %+v", st)
		}
		if err := r.Ready(context.Background()); err == nil {
			t.Error("a closed cache is ready")
		}
	})
}
