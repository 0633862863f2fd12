package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
)

// past is every state that a storage had, and the changes between them.
type past struct {
	revisions []int64
	states    []map[string]int64 // states[i] is that at revisions[i]
	changes   []string           // changes[i] leads to states[i+1], as told has it
}

func newPast(r *rig) *past {
	return &past{revisions: []int64{r.now()}, states: []map[string]int64{{}}}
}

// live makes some more changes.
func (p *past) live(r *rig, n int) {
	r.t.Helper()
	for range n {
		i := len(p.changes)
		next := maps.Clone(p.states[i])
		key := fmt.Sprintf("n%d/k%d", i%2, i*7%11)
		_, found := next[key]
		var kind string
		var revision int64
		if found && i%3 == 0 {
			kind, revision = "DELETED", r.drop(key)
			delete(next, key)
		} else {
			kind, revision = "ADDED", r.put(key, []string{"red", "blue"}[i%2])
			next[key] = revision
		}
		if found && kind == "ADDED" {
			kind = "MODIFIED"
		}
		p.revisions, p.states = append(p.revisions, revision), append(p.states, next)
		p.changes = append(p.changes, fmt.Sprintf("%s %s@%d", kind, key, revision))
	}
}

// shown is a state as text.
func (p *past) shown(i int) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(p.states[i])) {
		all = append(all, fmt.Sprintf("%s@%d", key, p.states[i][key]))
	}
	return strings.Join(all, " ")
}

// check asks for every state from the i-th on, and watches from each. sources, unless nil, has where the cache says
// that it found a list.
func (p *past) check(r *rig, i int, sources *sources) {
	r.t.Helper()
	for ; i < len(p.revisions); i++ {
		at := storage.Read{Match: storage.Exact, Revision: p.revisions[i]}
		if page := r.list(storage.ListOptions{At: at}); shown(page) != p.shown(i) || page.Revision != at.Revision {
			r.t.Fatalf("the state at %d is %q at %d, want %q", at.Revision, shown(page), page.Revision, p.shown(i))
		}
		if got := sources.last(); got != cacher.FromHistory {
			r.t.Fatalf("the state at %d comes from %v", at.Revision, got)
		}
		w := r.watch(storage.WatchOptions{From: p.revisions[i]})
		w.want(p.changes[i:]...)
		w.quiet()
		w.Close()
	}
}

// quiet checks that a watch has nothing more to tell up to the store's revision.
func (v *view) quiet() {
	v.r.t.Helper()
	for now := v.r.now(); ; {
		v.RequestProgress()
		e, err := v.next()
		if err != nil || e.Type != "BOOKMARK" {
			v.r.t.Fatalf("unexpected: %q, %v", told(e), err)
		}
		if e.Record.Revision >= now {
			return
		}
	}
}

// sources are where lists were answered from.
type sources struct {
	mu  sync.Mutex // guards all
	all []cacher.Source
}

func (s *sources) hook(from cacher.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, from)
}

func (s *sources) last() cacher.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	return s.all[len(s.all)-1]
}

func wantExpired(t *testing.T, err error, revision, oldest int64) {
	t.Helper()
	var expired *storage.ExpiredError
	if !errors.As(err, &expired) || expired.Revision != revision || expired.Oldest != oldest {
		t.Errorf("error %v, want an ExpiredError for %d that names %d", err, revision, oldest)
	}
}

// A server that starts again goes on where clients are: nothing is missed, nothing relisted, and the states between are
// answered from memory.
func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	inFile := func() (storage.Backend, func()) {
		b, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b, func() {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	memory := inMemory(t)
	for name, open := range map[string]func() (storage.Backend, func()){
		"memory": func() (storage.Backend, func()) { return memory, func() {} },
		"bolt":   inFile,
	} {
		t.Run(name, func(t *testing.T) {
			backend, stop := open()
			r := newRig(t, backend, cacher.Options{})
			p := newPast(r)
			w := r.watch(storage.WatchOptions{From: p.revisions[0]})
			p.live(r, 40)
			w.want(p.changes...)
			r.Close()
			if _, err := w.next(); !errors.Is(err, storage.ErrClosed) {
				t.Errorf("Next after Close of the cache: %v", err)
			}
			p.live(r, 20) // by another server
			stop()

			for _, o := range []cacher.Options{{}, {IndexFields: []string{"spec.color"}}} {
				backend, stop = open()
				var from sources
				o.Hooks.List = from.hook
				r = newRig(t, backend, o)
				p.check(r, 0, &from)
				p.live(r, 10)
				p.check(r, len(p.changes)-20, &from)
				r.Close()
				stop()
			}

			backend, stop = open()
			r = newRig(t, backend, cacher.Options{})
			const forgotten = 30
			if err := backend.(storage.Compactor).Compact(t.Context(), p.revisions[forgotten]); err != nil {
				t.Fatal(err)
			}
			var from sources
			r.open(cacher.Options{Hooks: cacher.Hooks{List: from.hook}})
			p.check(r, forgotten, &from)
			for _, old := range []int64{p.revisions[0], p.revisions[forgotten-1]} {
				_, err := r.Watch(t.Context(), storage.WatchOptions{From: old})
				wantExpired(t, err, old, p.revisions[forgotten])
				_, err = r.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: old}})
				wantExpired(t, err, old, p.revisions[forgotten])
				_, err = r.Get(t.Context(), "n0/k0", storage.Read{Match: storage.Exact, Revision: old})
				wantExpired(t, err, old, p.revisions[forgotten])
			}
			r.Close()
			stop()
		})
	}
}

// A history that is longer than the window is replayed within it: what it has left behind is asked for below.
func TestRestartWithALongHistory(t *testing.T) {
	t.Parallel()
	var from sources
	var fills []cacher.Filled
	r := newRig(t, nil, cacher.Options{WindowBytes: 256 << 10, Hooks: cacher.Hooks{
		List: from.hook, Filled: func(f cacher.Filled) { fills = append(fills, f) },
	}})
	p := newPast(r)
	p.live(r, 1000)
	r.fill()
	st := r.Stats()
	if st.Oldest <= p.revisions[0] || st.Oldest >= p.revisions[900] || st.LogBytes > 256<<10 {
		t.Fatalf("the window is not what was asked for: %+v", st)
	}
	if len(fills) != 1 || fills[0].Changes != st.Changes || fills[0].Records != len(p.states[1000]) || fills[0].Bytes != st.Bytes {
		t.Errorf("filled with %+v; it is %+v", fills, st)
	}
	first := slices.Index(p.revisions, st.Oldest)
	p.check(r, first, &from)
	before := p.revisions[first-1]
	_, err := r.Watch(t.Context(), storage.WatchOptions{From: before})
	wantExpired(t, err, before, st.Oldest)
	page := r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: before}})
	if shown(page) != p.shown(first-1) || from.last() != cacher.FromStorage {
		t.Errorf("the state before the window is %q, from %v; want %q", shown(page), from.last(), p.shown(first-1))
	}
}

// crashed opens what a crash of the process would leave now.
func crashed(t *testing.T, path string, o bolt.Options) *bolt.Backend {
	t.Helper()
	left := filepath.Join(t.TempDir(), "left.db")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(left, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return openBolt(t, left, o)
}

// What a crash has lost was seen by clients: they must begin anew, and not go on as if nothing had happened.
func TestRestartAfterACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	o := bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour}
	first, err := bolt.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, first, cacher.Options{})
	kept := r.put("a/kept", "red")
	r.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, openBolt(t, path, o), cacher.Options{})
	w := r.watch(storage.WatchOptions{From: kept})
	lost := r.put("a/lost", "red")
	last := r.put("a/kept", "blue")
	w.want(fmt.Sprintf("ADDED a/lost@%d", lost), fmt.Sprintf("MODIFIED a/kept@%d", last))
	r.Close()

	r = newRig(t, crashed(t, path, o), cacher.Options{})
	now := r.now()
	if now <= last {
		t.Fatalf("the revision is %d after a crash at %d", now, last)
	}
	if got := r.list(storage.ListOptions{}); shown(got) != fmt.Sprintf("a/kept@%d", kept) || got.Revision != now {
		t.Errorf("the state is %q at %d", shown(got), got.Revision)
	}
	for _, from := range []int64{kept, lost, last, now - 1} {
		_, err := r.Watch(t.Context(), storage.WatchOptions{From: from})
		wantExpired(t, err, from, now)
		_, err = r.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: from}})
		wantExpired(t, err, from, now)
	}
	w = r.watch(storage.WatchOptions{From: now})
	next := r.put("a/lost", "blue")
	w.want(fmt.Sprintf("ADDED a/lost@%d", next))
}

// replaceable is a backend that is replaced by another one while it is used, as an etcd that is restored from a
// snapshot, or a file that is replaced by a copy of before. Between the two it is unavailable.
type replaceable struct {
	current atomic.Pointer[storage.Backend]
}

func (b *replaceable) replace(by storage.Backend) { b.current.Store(&by) }

// backend is the present one.
func (b *replaceable) backend() storage.Backend { return *b.current.Load() }

func away(err error) error {
	if errors.Is(err, storage.ErrClosed) {
		return fmt.Errorf("%w: it is being restored", storage.ErrUnavailable)
	}
	return err
}

func (b *replaceable) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	res, err := b.backend().Get(ctx, key, at)
	return res, away(err)
}

func (b *replaceable) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	res, err := b.backend().Range(ctx, r)
	return res, away(err)
}

func (b *replaceable) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	res, err := b.backend().Commit(ctx, c)
	return res, away(err)
}

func (b *replaceable) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	f, err := b.backend().Watch(ctx, w)
	return awayFeed{f}, away(err)
}

func (b *replaceable) Close() error { return nil }

type awayFeed struct{ storage.Feed }

func (f awayFeed) Next(ctx context.Context) (storage.Changes, error) {
	got, err := f.Feed.Next(ctx)
	return got, away(err)
}

// TestSetBack replaces the file by an older copy of it, under a cache, and lets the store run on to another future.
func TestSetBack(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*rig){
		"nobody looks": func(*rig) {},
		"a list":       func(r *rig) { _, _ = r.List(r.ctx, storage.ListOptions{}) },
		"a get":        func(r *rig) { _, _ = r.Get(r.ctx, "n0/k0", storage.Read{}) },
		"the revision": func(r *rig) { _, _ = r.Revision(r.ctx) },
		"a watch":      func(r *rig) { _, _ = r.Watch(r.ctx, storage.WatchOptions{}) },
		"another write": func(r *rig) {
			_, _ = r.Create(r.ctx, "n0/made", gadgetOf("n0/made", "red", nil), storage.WriteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setBack(t, look)
		})
	}
}

func setBack(t *testing.T, look func(*rig)) {
	path := filepath.Join(t.TempDir(), "test.db")
	b := &replaceable{}
	first := openBolt(t, path, bolt.Options{})
	b.replace(first)
	var voids []error
	r := newRig(t, b, cacher.Options{Hooks: cacher.Hooks{Void: func(why error) { voids = append(voids, why) }}})
	var refills []error // what Ready said when the cache was filled again
	filled := false
	state := func() error {
		if filled {
			refills = append(refills, r.Ready(r.ctx))
		}
		return nil
	}
	r.source.stating.Store(&state)
	p := newPast(r)
	p.live(r, 30)
	older := crashed(t, path, bolt.Options{})
	before := len(p.changes)
	p.live(r, 25) // which will be lost
	r.fill()
	filled = true
	all, one := r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "none", Name: "none"}})
	unread := r.watch(storage.WatchOptions{From: p.revisions[before]})

	b.replace(older)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	look(r)
	var expired *storage.ExpiredError
	all.ends(&expired)
	one.ends(&expired)
	unread.ends(&expired)
	r.eventually("the cache is filled anew", func() bool { return r.Ready(r.ctx) == nil && r.Stats().Filled })
	if len(voids) != 1 || !strings.Contains(voids[0].Error(), "set back") {
		t.Errorf("void: %v", voids)
	}
	if len(refills) == 0 || refills[0] == nil || !strings.Contains(refills[0].Error(), "set back") {
		t.Errorf("while the cache was filled anew, Ready said %v", refills)
	}

	// Another future: nothing of the lost one is shown, in no way.
	future := &past{revisions: p.revisions[: before+1 : before+1], states: p.states[: before+1 : before+1], changes: p.changes[:before:before]}
	if now := r.now(); now != p.revisions[before] { // look has written
		revision := r.now()
		next := maps.Clone(future.states[before])
		next["n0/made"] = revision
		future.revisions, future.states = append(future.revisions, revision), append(future.states, next)
		future.changes = append(future.changes, fmt.Sprintf("ADDED n0/made@%d", revision))
	}
	future.live(r, 15)
	i := len(future.states) - 1
	if got := r.list(storage.ListOptions{}); shown(got) != future.shown(i) || got.Revision != future.revisions[i] {
		t.Errorf("the state is %q at %d, want %q at %d", shown(got), got.Revision, future.shown(i), future.revisions[i])
	}
	var from sources
	r.Close()
	r.open(cacher.Options{Hooks: cacher.Hooks{List: from.hook}})
	future.check(r, 0, &from)
}
