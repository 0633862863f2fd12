package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/client"
)

// model keeps every state of a server by its revision.
type model struct {
	mu     sync.Mutex // guards states
	states map[int64][]string
}

// remember is called by the only writer, after each write.
func (m *model) remember(w *wire, revision int64) {
	w.mu.Lock()
	objs := []runtime.Object{}
	for _, obj := range w.sorted() {
		objs = append(objs, obj)
	}
	w.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[revision] = names(objs)
}

func (m *model) at(revision int64) ([]string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, ok := m.states[revision]
	return state, ok
}

// Under random writes, cuts, outages and expiries, a reader shows only states that existed, in their order. A client that only
// applies the changes has the same state. Both reach the state of the server in the end.
func TestModel(t *testing.T) {
	both(t, func(t *testing.T, o client.ReadersOptions) {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) { runModel(t, o, seed) })
		}
	})
}

func runModel(t *testing.T, o client.ReadersOptions, seed uint64) {
	w := newWire(t)
	m := &model{states: map[int64][]string{100: {}}}
	o.Changes = 20
	r := w.readers(o).Reader(boatKind)
	done := make(chan int64, 1)
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wait.Go(func() {
		random := rand.New(rand.NewPCG(seed, 1))
		last := int64(100)
		for range 400 {
			last = max(last, step(w, m, random))
			if random.IntN(8) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		w.leave(false)
		w.do(func() { w.silent = false })
		done <- last
	})
	wait.Go(func() { followChanges(ctx, t, m, r) })
	var before int64
	final := int64(-1)
	for final < 0 || before < final {
		select {
		case final = <-done:
		default:
		}
		l, err := readModel(ctx, r, before, final)
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		if err != nil { // the server cannot be reached, or the revision does not arrive
			continue
		}
		if l.Revision < before {
			t.Fatalf("the state of %d came after that of %d", l.Revision, before)
		}
		before = l.Revision
		checkState(t, m, l)
		checkExactly(ctx, t, m, r, l.Revision)
	}
	cancel()
}

// readModel reads with a random freshness: Cached, a revision a little higher than before, or the final revision.
func readModel(ctx context.Context, r runtime.Reader[runtime.Object], before, final int64) (runtime.Listed[runtime.Object], error) {
	switch {
	case final >= 0:
		return r.List(ctx, runtime.Query{At: runtime.AtLeast(final)})
	case rand.IntN(2) == 0:
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return r.List(ctx, runtime.Query{At: runtime.AtLeast(before + rand.Int64N(4))})
	}
	return r.List(ctx, runtime.Query{})
}

// step makes one random change to the server, and returns its revision.
func step(w *wire, m *model, random *rand.Rand) (revision int64) {
	namespace, name := fmt.Sprint("n", random.IntN(2)), fmt.Sprint("b", random.IntN(6))
	switch n := random.IntN(40); {
	case n < 24:
		revision = w.put(namespace, name, fmt.Sprint(random.IntN(1000)))
	case n < 34:
		revision = w.delete(namespace, name)
	case n < 35:
		w.cut(random.IntN(60) - 1)
	case n == 36:
		w.leave(true)
	case n == 35:
		w.do(func() { w.silent = !w.silent })
	case n == 37:
		w.leave(false)
	case n == 38:
		w.expire()
	default:
		revision = w.bookmark()
	}
	if revision > 0 {
		m.remember(w, revision)
	}
	return revision
}

// checkState compares a list with the server's state at that revision, which the model may not have yet.
func checkState(t *testing.T, m *model, l runtime.Listed[runtime.Object]) {
	t.Helper()
	state, ok := m.at(l.Revision)
	for range 1000 {
		if ok {
			break
		}
		time.Sleep(time.Millisecond)
		state, ok = m.at(l.Revision)
	}
	if got := names(l.Items); !ok || !slices.Equal(got, state) {
		t.Fatalf("at %d: got  %s\nwant %s", l.Revision, got, state)
	}
}

func checkExactly(ctx context.Context, t *testing.T, m *model, r runtime.Reader[runtime.Object], revision int64) {
	t.Helper()
	for past := revision; past > revision-5; past-- {
		if _, ok := m.at(past); !ok {
			continue
		}
		if l, err := r.List(ctx, runtime.Query{At: runtime.Exactly(past)}); err == nil {
			checkState(t, m, l)
		}
	}
}

// followChanges keeps its own state only by applying changes.
func followChanges(ctx context.Context, t *testing.T, m *model, r runtime.Reader[runtime.Object]) {
	mine := map[string]*unstructured.Unstructured{}
	var since int64
	for ctx.Err() == nil {
		c, err := r.Changes(ctx, since, cached)
		if err != nil {
			continue
		}
		if c.Revision < since {
			t.Errorf("changes up to %d came after those up to %d", c.Revision, since)
			return
		}
		if c.Reset {
			clear(mine)
		}
		for _, one := range c.All {
			k := one.Namespace + "/" + one.Name
			if delete(mine, k); !one.Deleted {
				mine[k] = one.Object.(*unstructured.Unstructured)
			}
		}
		since = c.Revision
		state := []runtime.Object{}
		for _, obj := range mine {
			state = append(state, obj)
		}
		slices.SortFunc(state, func(a, b runtime.Object) int {
			return slices.Compare(names([]runtime.Object{a}), names([]runtime.Object{b}))
		})
		checkFollowed(t, m, since, state)
		time.Sleep(time.Millisecond)
	}
}

func checkFollowed(t *testing.T, m *model, revision int64, state []runtime.Object) {
	t.Helper()
	var want []string
	ok := false
	for range 1000 {
		if want, ok = m.at(revision); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := names(state); !ok || !slices.Equal(got, want) {
		t.Errorf("by changes up to %d: got  %s\nwant %s", revision, got, want)
	}
}
