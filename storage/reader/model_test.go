package reader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/reader"
)

// write is an acknowledged write.
type write struct {
	key, color string // color "" is a deletion
}

// history has what happened to gadgets, and what readers were shown.
type history struct {
	mu     sync.Mutex // guards all below
	writes map[int64]write
	acked  map[string]int64 // the last acknowledged revision of each key
	states map[int64]string // the states that were shown, by revision
	gone   []absence
}

// absence is a read that found no value under a key whose last acknowledged write was at a revision.
type absence struct {
	key   string
	acked int64
}

func (h *history) wrote(revision int64, w write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes[revision] = w
	h.acked[w.key] = max(h.acked[w.key], revision)
}

func (h *history) last(key string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked[key]
}

// showed records a state that a reader was shown. Two readers of one revision must be shown the same.
func (h *history) showed(t *testing.T, how string, revision int64, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, ok := h.states[revision]; ok && other != state {
		t.Errorf("%s: revision %d is %q, and was shown as %q", how, revision, state, other)
	}
	h.states[revision] = state
}

func (h *history) missed(key string, acked int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = append(h.gone, absence{key, acked})
}

// check compares everything that was shown with a replay of the writes.
func (h *history) check(t *testing.T) {
	t.Helper()
	revisions := make([]int64, 0, len(h.writes))
	for r := range h.writes {
		revisions = append(revisions, r)
	}
	slices.Sort(revisions)
	shown := make([]int64, 0, len(h.states))
	for r := range h.states {
		shown = append(shown, r)
	}
	slices.Sort(shown)
	x := index{objects: map[string]string{}}
	deleted := map[string]int64{} // the last deletion
	i := 0
	for _, at := range shown {
		for ; i < len(revisions) && revisions[i] <= at; i++ {
			w := h.writes[revisions[i]]
			if w.color == "" {
				delete(x.objects, w.key)
				deleted[w.key] = revisions[i]
			} else {
				x.objects[w.key] = fmt.Sprintf("%s=%s@%d", w.key, w.color, revisions[i])
			}
		}
		if want := x.String(); h.states[at] != want {
			t.Fatalf("at %d readers were shown\n%s\nwant\n%s", at, h.states[at], want)
		}
	}
	for ; i < len(revisions); i++ {
		if w := h.writes[revisions[i]]; w.color == "" {
			deleted[w.key] = revisions[i]
		}
	}
	for _, a := range h.gone {
		if a.acked > deleted[a.key] {
			t.Errorf("%s was not found; its write at %d was acknowledged before, and its last deletion was at %d", a.key, a.acked, deleted[a.key])
		}
	}
	t.Logf("%d writes, %d states, %d absences", len(revisions), len(shown), len(h.gone))
}

// TestModel: every read shows what it promises while others write.
func TestModel(t *testing.T) {
	t.Parallel()
	for name, backend := range backends {
		for _, lag := range []time.Duration{0, 2 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, late by %v", name, lag), func(t *testing.T) {
				t.Parallel()
				b := backend(t)
				g := open(t, b, "gadgets", lag, cacher.Options{IndexLabels: []string{"color"}}, reader.Options{KeepBytes: 8 << 10})
				runModel(t, g, b)
			})
		}
	}
}

func runModel(t *testing.T, g *gadgets, b storage.Backend) {
	const writers, writesEach = 4, 150
	h := &history{writes: map[int64]write{}, acked: map[string]int64{}, states: map[int64]string{}}
	var writing, reading sync.WaitGroup
	var over atomic.Bool
	for n := range writers {
		writing.Go(func() { writeAtRandom(t, g.cache, h, n, writesEach) })
	}
	writing.Go(func() { // of another kind: the revision of the store is not that of the newest change
		for range writesEach {
			if _, err := b.Commit(t.Context(), storage.Commit{Key: "/aside", Expect: storage.AnyRevision, Value: []byte("x")}); err != nil {
				t.Error(err)
			}
			time.Sleep(rand.N(time.Millisecond))
		}
	})
	for _, read := range []func(*testing.T, *gadgets, *history) error{getCached, listCached, listExactly} {
		reading.Go(func() {
			for !over.Load() && !t.Failed() {
				if err := read(t, g, h); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	reading.Go(func() {
		x := &index{}
		for end := false; !end && !t.Failed(); {
			end = over.Load()
			if err := x.follow(t, g, h); err != nil {
				t.Error(err)
				return
			}
		}
		if x.resets < 1 || x.resets > 5 { // once at the start, and rarely on a busy machine, when the reader falls too far behind
			t.Errorf("Changes was a Reset %d times, want once", x.resets)
		}
	})
	writing.Wait()
	over.Store(true)
	reading.Wait()
	h.check(t)
}

// writeAtRandom writes keys that no other writer has.
func writeAtRandom(t *testing.T, s storage.Interface, h *history, n, count int) {
	exists := map[string]bool{}
	for i := range count {
		w := write{key: fmt.Sprintf("ns/%d-%d", n, rand.IntN(6)), color: fmt.Sprintf("c%d-%d", n, i)}
		var revision int64
		var err error
		if exists[w.key] && rand.IntN(3) == 0 {
			w.color = ""
			revision, err = remove(t.Context(), s, w.key)
		} else {
			revision, err = put(t.Context(), s, w.key, w.color)
		}
		if err != nil {
			t.Errorf("writing %q: %v", w.key, err)
			return
		}
		exists[w.key] = w.color != ""
		h.wrote(revision, w)
		time.Sleep(rand.N(500 * time.Microsecond))
	}
}

// getCached reads one object, which must show what was acknowledged before.
func getCached(t *testing.T, g *gadgets, h *history) error {
	key := fmt.Sprintf("ns/%d-%d", rand.IntN(4), rand.IntN(6))
	acked := h.last(key)
	obj, err := g.Get(t.Context(), "ns", strings.TrimPrefix(key, "ns/"), runtime.Freshness{})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		if acked > 0 {
			h.missed(key, acked)
		}
	case err != nil:
		return fmt.Errorf("Get: %w", err)
	case revisionOf(obj) < acked:
		t.Errorf("Get is %s, and a write at %d was acknowledged before", text(obj), acked)
	}
	return nil
}

// listCached reads all objects, which must show every write that was acknowledged before.
func listCached(t *testing.T, g *gadgets, h *history) error {
	h.mu.Lock()
	acked := int64(0)
	for _, revision := range h.acked {
		acked = max(acked, revision)
	}
	h.mu.Unlock()
	before := g.Changed().Revision
	l, err := g.List(t.Context(), runtime.Query{})
	if err != nil {
		return fmt.Errorf("List: %w", err)
	}
	if l.Revision < acked || l.Revision < before {
		t.Errorf("List is at %d; a write at %d was acknowledged before, and Changed was %d", l.Revision, acked, before)
	}
	h.showed(t, "List", l.Revision, texts(l.Items))
	return nil
}

// listExactly reads all objects at the newest change.
func listExactly(t *testing.T, g *gadgets, h *history) error {
	at := g.Changed().Revision
	if at == 0 {
		return nil // the cache is not filled yet
	}
	l, err := g.List(t.Context(), runtime.Query{At: runtime.Exactly(at)})
	if err != nil {
		return fmt.Errorf("List exactly at %d: %w", at, err)
	}
	if l.Revision != at {
		t.Errorf("List exactly at %d is at %d", at, l.Revision)
	}
	h.showed(t, "List exactly", l.Revision, texts(l.Items))
	return nil
}

// follow calls Changes once: the changes must result in the state of their revision.
func (x *index) follow(t *testing.T, g *gadgets, h *history) error {
	at := runtime.Freshness{}
	if rand.IntN(8) == 0 {
		at = runtime.Live()
	}
	c, err := g.Changes(t.Context(), x.revision, at)
	if err != nil {
		return fmt.Errorf("Changes after %d: %w", x.revision, err)
	}
	if c.Revision < x.revision {
		t.Errorf("Changes after %d end at %d", x.revision, c.Revision)
	}
	x.apply(c)
	h.showed(t, "Changes", x.revision, x.String())
	if rand.IntN(4) > 0 {
		return nil
	}
	l, err := g.List(t.Context(), runtime.Query{At: runtime.Exactly(x.revision)})
	if err != nil {
		return fmt.Errorf("List exactly at %d, after Changes: %w", x.revision, err)
	}
	h.showed(t, "List after Changes", x.revision, texts(l.Items))
	return nil
}

// TestTwoKinds: a caller that reads two kinds at one revision never sees only a part of a change to both.
func TestTwoKinds(t *testing.T) {
	t.Parallel()
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := backend(t)
			roles := open(t, b, "roles", 3*time.Millisecond, cacher.Options{}, reader.Options{})
			bindings := open(t, b, "bindings", time.Millisecond, cacher.Options{}, reader.Options{})
			roles.fill(t)
			bindings.fill(t)
			var over atomic.Bool
			var acked, reads atomic.Int64 // the number of the last pair, and of reads
			var reading sync.WaitGroup
			for range 3 {
				reading.Go(func() {
					for !over.Load() && !t.Failed() {
						if err := readPairs(t, roles, bindings, acked.Load()); err != nil {
							t.Error(err)
						}
						reads.Add(1)
					}
				})
			}
			for i := 1; i <= 20_000 && (i <= 100 || reads.Load() < 150) && !t.Failed(); i++ {
				writePair(t, roles.cache, bindings.cache, i)
				acked.Store(int64(i))
			}
			over.Store(true)
			reading.Wait()
		})
	}
}

// keptPairs is the number of pairs that exist at a time.
const keptPairs = 5

// writePair writes a role and then its binding, and deletes an earlier binding and then its role.
func writePair(t *testing.T, roles, bindings storage.Interface, i int) {
	mustPut(t, roles, fmt.Sprint("ns/", i), "x")
	mustPut(t, bindings, fmt.Sprint("ns/", i), "x")
	if old := i - keptPairs; old > 0 {
		mustRemove(t, bindings, fmt.Sprint("ns/", old))
		mustRemove(t, roles, fmt.Sprint("ns/", old))
	}
}

func readPairs(t *testing.T, roles, bindings *gadgets, acked int64) error {
	at := runtime.Exactly(max(roles.Changed().Revision, bindings.Changed().Revision))
	names := map[string]bool{}
	l, err := roles.List(t.Context(), runtime.Query{At: at})
	if err != nil {
		return err
	}
	for _, obj := range l.Items {
		names[strings.Split(text(obj), "=")[0]] = true
	}
	bound, err := bindings.List(t.Context(), runtime.Query{At: at})
	if err != nil {
		return err
	}
	newest := int64(0)
	for _, obj := range bound.Items {
		name := strings.Split(text(obj), "=")[0]
		if !names[name] {
			t.Errorf("%v: the binding %s has no role", at, name)
		}
		var n int64
		if _, err := fmt.Sscanf(name, "ns/%d", &n); err != nil {
			return err
		}
		newest = max(newest, n)
	}
	if newest < acked {
		t.Errorf("%v: the newest binding is %d, and %d was acknowledged before", at, newest, acked)
	}
	return nil
}

// TestContextEnds: the context's error is returned unchanged.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	g := open(t, backends["memory"](t), "gadgets", 0, cacher.Options{}, reader.Options{
		Status: func(error, string) error { return errors.New("mapped") },
	})
	g.fill(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.Get(ctx, "ns", "a", runtime.AtLeast(1000)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v, want the context's error", err)
	}
}
