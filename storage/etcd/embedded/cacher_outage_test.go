package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/watch"
)

// seen is what a watch has delivered until it ended, and its error.
type seen struct {
	mu        sync.Mutex // guards all below
	revisions []int64
	err       error
	over      chan struct{}
}

// look reads a watch until it ends.
func look(t *testing.T, s storage.Interface, o storage.WatchOptions) *seen {
	t.Helper()
	ctx := bounded(t)
	w, err := s.Watch(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	k := &seen{over: make(chan struct{})}
	go func() {
		defer close(k.over)
		for {
			events, err := w.Next(ctx)
			k.mu.Lock()
			k.err = err
			for _, e := range events {
				if e.Type != watch.Bookmark {
					k.revisions = append(k.revisions, e.Record.Revision)
				}
			}
			k.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return k
}

func (k *seen) all() ([]int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.revisions), k.err
}

// expires waits for the end of the watch.
func (k *seen) expires(t *testing.T) {
	t.Helper()
	var expired *storage.ExpiredError
	select {
	case <-k.over:
		if _, err := k.all(); !errors.As(err, &expired) {
			t.Errorf("the watch has ended with %v, want an ExpiredError", err)
		}
	case <-time.After(waitTime):
		t.Error("the watch goes on")
	}
}

// history reads from the store itself what happened after a revision.
func history(t *testing.T, s storage.Source, from int64) (all []int64) {
	t.Helper()
	ctx := bounded(t)
	now, err := s.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Follow(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for reached := from; reached < now; {
		f.RequestProgress()
		m, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, move := range m.Moves {
			all = append(all, move.Record.Revision)
		}
		reached = m.Progress
	}
	return all
}

// TestCacheOutage: etcd is killed again and again under a cache with watches and a writer that tries again. Nothing is lost
// and nothing is shown twice; what the cache has can be read while etcd is unavailable.
func TestCacheOutage(t *testing.T) { // not parallel: another test could be given its port
	kills := 3
	if testing.Short() {
		kills = 1
	}
	o := embedded.Options{Dir: t.TempDir(), ListenClient: freeAddresses(t, 1)[0], UnsafeNoFsync: true}
	process := serveElsewhere(t, o)
	b := open(t, etcd.Options{Endpoints: []string{process.endpoint}, CompactionInterval: -1})
	store := gadgets(t, b, "x")
	c := cacheOf(t, store, cacher.Options{})
	ctx := bounded(t)
	first := mustPutGadget(t, c, "a/0")
	if _, _, err := listed(ctx, c, storage.Read{}); err != nil {
		t.Fatal(err)
	}
	watches := []*seen{look(t, c, storage.WatchOptions{From: first}), look(t, c, storage.WatchOptions{From: first, Selection: storage.Selection{Namespace: "a"}})}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var last atomic.Int64 // acknowledged
	last.Store(first)
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r, err := putGadget(ctx, c, fmt.Sprint("a/", i%5))
			switch {
			case err == nil:
				last.Store(r.Revision)
			case !errors.Is(err, storage.ErrUnavailable):
				t.Errorf("writing: %v", err)
				return
			}
		}
	})
	for range kills {
		before := last.Load()
		until(t, "something is written", func() bool { return last.Load() >= before+20 })
		process.kill()
		without(t, c)
		process = serveElsewhere(t, o)
		watches = append(watches, look(t, c, storage.WatchOptions{From: first}))
	}
	before := last.Load()
	until(t, "something is written", func() bool { return last.Load() >= before+20 })
	close(stop)
	writing.Wait()
	want := history(t, store, first)
	for i, k := range watches {
		until(t, "the watch is at the end", func() bool {
			got, err := k.all()
			return err != nil || len(got) >= len(want)
		})
		if got, err := k.all(); err != nil || !slices.Equal(got, want) {
			t.Errorf("watch %d has shown %d, %v; want %d", i, got, err, want)
		}
	}
	until(t, "the cache is ready", func() bool { return c.Ready(ctx) == nil })
	below, _, err := listed(ctx, store, storage.Read{})
	if got, _, failed := listed(ctx, c, storage.Read{}); got != below || err != nil || failed != nil {
		t.Errorf("the state is %q, %v; want %q, %v", got, failed, below, err)
	}
}

// without checks what works without etcd, and how the rest fails.
func without(t *testing.T, c *cacher.Cacher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bounded(t), waitTime)
	defer cancel()
	known := c.Stats().Revision
	for _, at := range []storage.Read{{Match: storage.Any}, {Match: storage.NotOlderThan, Revision: known}, {Match: storage.Exact, Revision: known}} {
		if text, revision, err := listed(ctx, c, at); err != nil || text == "" || revision < known {
			t.Errorf("List at %+v: %q at %d, %v", at, text, revision, err)
		}
		if r, err := c.Get(ctx, "a/0", at); err != nil || r.Key != "a/0" {
			t.Errorf("Get at %+v: %+v, %v", at, r, err)
		}
	}
	_, get := c.Get(ctx, "a/0", storage.Read{})
	_, _, list := listed(ctx, c, storage.Read{})
	for name, err := range map[string]error{"Get": get, "List": list} {
		if !errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if _, _, err := listed(short, c, storage.Read{}); err == nil {
		t.Error("List: no error within its deadline")
	}
}

// Changes that were compacted while the cache had no connection end the watches that had not seen them; no change is skipped.
func TestCompactionUnderACache(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Options{})
	p := storagetest.NewProxy(t, address(t, server.Endpoints()[0]))
	through := open(t, etcd.Options{Endpoints: []string{p.Addr()}, CompactionInterval: -1})
	direct := open(t, etcd.Options{Endpoints: server.Endpoints(), CompactionInterval: -1})
	var voids atomic.Int64
	c := cacheOf(t, gadgets(t, through, "x"), cacher.Options{Hooks: cacher.Hooks{Void: func(error) { voids.Add(1) }}})
	store := gadgets(t, direct, "x")
	ctx := bounded(t)
	first := mustPutGadget(t, store, "a/x")
	if _, _, err := listed(ctx, c, storage.Read{}); err != nil {
		t.Fatal(err)
	}
	for _, forgotten := range []bool{false, true} {
		before := mustPutGadget(t, c, "a/y")
		all, other := look(t, c, storage.WatchOptions{From: before}), look(t, c, storage.WatchOptions{From: before, Selection: storage.Selection{Namespace: "b"}})
		p.Refuse()
		p.Cut()
		var written []int64
		for range 10 {
			written = append(written, mustPutGadget(t, store, "a/x"))
		}
		if forgotten {
			if err := direct.Compact(ctx, written[9]); err != nil {
				t.Fatal(err)
			}
		}
		p.Heal()
		if forgotten {
			all.expires(t)
			other.expires(t)
		} else {
			until(t, "the watch goes on", func() bool { got, err := all.all(); return err != nil || len(got) >= len(written) })
		}
		got, err := all.all()
		if want := written[:len(got)]; !slices.Equal(got, want) || !forgotten && err != nil {
			t.Errorf("the watch has shown %d, %v; want %d", got, err, written)
		}
		want := fmt.Sprintf("a/x@%d a/y@%d", written[9], before)
		if text, at, err := listed(ctx, c, storage.Read{}); err != nil || text != want || at < written[9] {
			t.Errorf("the state is %q at %d, %v; want %q", text, at, err, want)
		}
	}
	if voids.Load() != 1 {
		t.Errorf("the cache was void %d times", voids.Load())
	}
	if _, err := c.Watch(ctx, storage.WatchOptions{From: first}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a watch from what is gone: %v", err)
	}
}

// TestCacheOfARestoredEtcd: etcd is replaced by an older copy of itself under a cache.
func TestCacheOfARestoredEtcd(t *testing.T) { // not parallel: another test could be given its port
	for name, ask := range map[string]func(context.Context, storage.Interface){
		"nobody asks": func(context.Context, storage.Interface) {},
		"a list":      func(ctx context.Context, c storage.Interface) { _, _ = c.List(ctx, storage.ListOptions{}) },
		"a get":       func(ctx context.Context, c storage.Interface) { _, _ = c.Get(ctx, "a/0", storage.Read{}) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "nobody asks" && testing.Short() {
				t.Skip("the cache asks a quiet etcd each ten seconds")
			}
			restored(t, ask)
		})
	}
}

func restored(t *testing.T, ask func(context.Context, storage.Interface)) {
	dir, copied := t.TempDir(), t.TempDir()
	o := embedded.Options{Dir: dir, ListenClient: freeAddresses(t, 1)[0], UnsafeNoFsync: true}
	server := start(t, o)
	b := open(t, etcd.Options{Endpoints: server.Endpoints(), CompactionInterval: -1})
	store := gadgets(t, b, "x")
	var mu sync.Mutex // guards the reasons
	var voids, unready []error
	var c *cacher.Cacher
	below := &loads{Store: store, before: func() {
		if err := c.Ready(t.Context()); err != nil {
			mu.Lock()
			defer mu.Unlock()
			unready = append(unready, err)
		}
	}}
	c = cacheOf(t, below, cacher.Options{Hooks: cacher.Hooks{Void: func(why error) {
		mu.Lock()
		defer mu.Unlock()
		voids = append(voids, why)
	}}})
	ctx := bounded(t)
	kept := map[string]int64{}
	for i := range 20 {
		key := fmt.Sprint("a/", i%3)
		kept[key] = mustPutGadget(t, c, key)
	}
	now := revision(t, b)
	stopped := func() {
		t.Helper()
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stopped()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	server = start(t, o)
	until(t, "etcd is back", func() bool { _, err := putGadget(ctx, c, "a/lost"); return err == nil })
	for i := range 20 {
		mustPutGadget(t, c, fmt.Sprint("a/", i%4))
	}
	lost := revision(t, b)
	if _, at, err := listed(ctx, c, storage.Read{}); err != nil || at < lost {
		t.Fatalf("the cache is at %d, %v; etcd at %d", at, err, lost)
	}
	watches := []*seen{look(t, c, storage.WatchOptions{}), look(t, c, storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}}), look(t, c, storage.WatchOptions{From: now})}
	mu.Lock()
	unready = nil
	mu.Unlock()

	stopped()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	server = start(t, o)
	ask(ctx, c)
	for _, w := range watches {
		w.expires(t)
	}
	until(t, "the cache is ready", func() bool { return c.Ready(ctx) == nil && c.Stats().Filled })
	mu.Lock()
	if len(voids) != 1 || !strings.Contains(voids[0].Error(), "set back") {
		t.Errorf("void: %v", voids)
	}
	if len(unready) == 0 || !strings.Contains(unready[0].Error(), "set back") {
		t.Errorf("while it was filled anew, Ready said %v", unready)
	}
	mu.Unlock()
	var want []string
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		want = append(want, fmt.Sprintf("%s@%d", key, kept[key]))
	}
	for _, at := range []storage.Read{{Match: storage.Any}, {}, {Match: storage.Exact, Revision: now}} {
		if text, revision, err := listed(ctx, c, at); err != nil || text != strings.Join(want, " ") || revision != now {
			t.Errorf("the state at %+v is %q at %d, %v; want %q at %d", at, text, revision, err, want, now)
		}
	}
	again := look(t, c, storage.WatchOptions{From: now})
	var future []int64
	for i := range 30 {
		future = append(future, mustPutGadget(t, c, fmt.Sprint("a/", i%5)))
	}
	until(t, "the watch has shown the new future", func() bool { got, err := again.all(); return err != nil || len(got) >= len(future) })
	if got, err := again.all(); err != nil || !slices.Equal(got, future) {
		t.Errorf("the watch has shown %d, %v; want %d", got, err, future)
	}
	inEtcd, _, err := listed(ctx, store, storage.Read{})
	if text, _, failed := listed(ctx, c, storage.Read{}); text != inEtcd || err != nil || failed != nil {
		t.Errorf("the state is %q, %v; want %q, %v", text, failed, inEtcd, err)
	}
}

// loads is a storage.Source that counts the reads of the whole state.
type loads struct {
	*storage.Store
	before func()
}

func (l *loads) State(ctx context.Context, at int64) (storage.State, error) {
	l.before()
	return l.Store.State(ctx, at)
}
