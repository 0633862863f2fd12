package cacher_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
)

// past has every state that a storage had, and the changes between them.
type past struct {
	revisions []int64
	states    []map[string]int64 // states[i] is that at revisions[i]
	changes   []string           // changes[i] leads to states[i+1], in the format of eventText
}

func newPast(r *rig) *past {
	return &past{revisions: []int64{r.now()}, states: []map[string]int64{{}}}
}

// live makes some more changes.
func (p *past) live(r *rig, n int) {
	r.t.Helper()
	for range n {
		i := len(p.changes)
		key := fmt.Sprintf("n%d/k%d", i%2, i*7%11)
		switch _, found := p.states[i][key]; {
		case found && i%3 == 0:
			p.note("DELETED", key, r.drop(key))
		case found:
			p.note("MODIFIED", key, r.put(key, []string{"red", "blue"}[i%2]))
		default:
			p.note("ADDED", key, r.put(key, []string{"red", "blue"}[i%2]))
		}
	}
}

// note records a change.
func (p *past) note(kind, key string, revision int64) {
	next := maps.Clone(p.states[len(p.changes)])
	if next[key] = revision; kind == "DELETED" {
		delete(next, key)
	}
	p.revisions, p.states = append(p.revisions, revision), append(p.states, next)
	p.changes = append(p.changes, fmt.Sprintf("%s %s@%d", kind, key, revision))
}

// shown returns a state as text.
func (p *past) shown(i int) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(p.states[i])) {
		all = append(all, fmt.Sprintf("%s@%d", key, p.states[i][key]))
	}
	return strings.Join(all, " ")
}

// check reads every state from the i-th on, and watches from each. sources records what serves the lists, which must be the
// history.
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
		w.wantIdle()
		w.Close()
	}
}

// wantIdle checks that a watch has nothing more to deliver up to the store's revision.
func (v *view) wantIdle() {
	v.r.t.Helper()
	for now := v.r.now(); ; {
		v.RequestProgress()
		e, err := v.next()
		if err != nil || e.Type != "BOOKMARK" {
			v.r.t.Fatalf("unexpected: %q, %v", eventText(e), err)
		}
		if e.Record.Revision >= now {
			return
		}
	}
}

// sources records what served the lists.
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

// A server that starts again continues where its clients are: no change is missing, no list is repeated, and the states in
// between are served from memory.
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

// A history that is longer than the window is replayed within it; the storage below serves what has left the window.
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

// dear is a backend whose watches take long to deliver older changes.
type dear struct {
	*memory.Backend
	revisions int64
}

// Replay implements storage.Replayer.
func (d dear) Replay() int64 { return d.revisions }

// If history takes long to replay, readers do not wait for more of it than the storage below recommends.
func TestRestartOverADearHistory(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	const replayed = 100
	var from sources
	r := newRig(t, dear{b, replayed}, cacher.Options{Hooks: cacher.Hooks{List: from.hook}})
	p := newPast(r)
	p.live(r, 300)
	r.fill()
	if st := r.Stats(); st.Oldest != p.revisions[300]-replayed || st.Changes > replayed {
		t.Errorf("%+v, and the store is at %d", st, p.revisions[300])
	}
	p.check(r, slices.Index(p.revisions, p.revisions[300]-replayed), &from)
}

// crashed opens the file that a crash of the process would leave now.
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

// Clients have seen what a crash has lost: they must begin anew, and not continue as if nothing had happened.
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
