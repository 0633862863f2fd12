package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// Fault is a failure below a backend: a member is killed, a connection is cut, the disk is full. Its functions run in the
// test's goroutine while other goroutines use the backend. If they do not succeed, they must fail the test themselves.
type Fault struct {
	Name   string             // name of the subtest
	Strike func(t *testing.T) // makes the failure happen
	// Heal ends what Strike began, and returns when the store could work again. It is nil for a fault that has ended when
	// Strike returns.
	Heal func(t *testing.T)
}

// Faulty is a store with the faults to test.
type Faulty struct {
	// Backends are open on one store; there is at least one. Clients use all of them: several backends stand for several
	// servers. The caller of Faults closes them.
	Backends []storage.Backend
	Faults   []Fault // the faults to test
}

// Faults tests that a store keeps its promises while each of the faults occurs and is healed, again and again. The results of
// concurrent clients are linearizable and in the order of their revisions, every watch delivers every change once, and
// nothing acknowledged is lost. After healing, commits, reads and watches work again within [Timeout]. Commits that end with
// ErrUnavailable or a context error may have happened; a commit that ends with ErrNoSpace has not. Reads may fail with
// ErrUnavailable, and a feed may not fail at all.
//
// Each fault is a subtest with its name. If there are several, a last subtest, "all", uses them in random order.
// KEELSON_SOAK=duration sets how long each subtest runs.
func Faults(t *testing.T, f Faulty) {
	t.Helper()
	if len(f.Backends) == 0 || len(f.Faults) == 0 {
		t.Fatal("storagetest.Faults needs a backend and a fault")
	}
	for i, fault := range f.Faults {
		t.Run(fault.Name, func(t *testing.T) { f.storm(t, fmt.Sprintf("/f%d", i), []Fault{fault}) })
	}
	if len(f.Faults) > 1 {
		t.Run("all", func(t *testing.T) { f.storm(t, "/all", f.Faults) })
	}
}

// storm runs histories with faults, a few or until the soak time is over. Each history has its own keys.
func (f Faulty) storm(t *testing.T, prefix string, faults []Fault) {
	rounds, strikes := 1, 3
	if testing.Short() {
		strikes = 1
	}
	strikes = max(strikes, len(faults))
	for end, round := soakEnd(t), 0; round < rounds || time.Now().Before(end); round++ {
		w := &workload{
			t: t, backends: f.Backends, prefix: fmt.Sprintf("%s.%d/", prefix, round), keys: 4, pause: 2 * time.Millisecond, faults: strikes,
		}
		w.begin()
		var order []int
		for range strikes {
			if len(order) == 0 {
				order = rand.Perm(len(faults))
			}
			w.weather(faults[order[0]])
			order = order[1:]
			w.middle()
			if t.Failed() {
				break
			}
		}
		close(w.stop)
		w.finish()
		if t.Failed() {
			return
		}
	}
}

// weather strikes and heals a fault while all clients and watches work, and checks that all of them work again.
func (w *workload) weather(fault Fault) {
	w.t.Helper()
	w.works("before " + fault.Name)
	fault.Strike(w.t)
	w.rest(w.ctx, time.Duration(100+rand.IntN(600))*time.Millisecond)
	if fault.Heal != nil {
		fault.Heal(w.t)
	}
	w.works("after " + fault.Name)
}

// works waits until some commits and reads of each client have succeeded.
func (w *workload) works(when string) {
	w.t.Helper()
	type counts struct{ commits, reads int64 }
	begun := make([]counts, len(w.clients))
	for i, c := range w.clients {
		begun[i] = counts{c.commits.Load(), c.reads.Load()}
	}
	ctx, cancel := context.WithTimeout(w.ctx, Timeout)
	defer cancel()
	for i, c := range w.clients {
		for c.commits.Load() < begun[i].commits+5 || c.reads.Load() < begun[i].reads+3 {
			if w.rest(ctx, time.Millisecond); ctx.Err() != nil || c.over.Load() {
				w.t.Errorf("%s, client %d: %d commits and %d reads were answered, then no more", when, c.id,
					c.commits.Load()-begun[i].commits, c.reads.Load()-begun[i].reads)
				return
			}
		}
	}
	w.watchable(ctx, when)
}

// watchable checks that a new watch of each backend can be opened and reaches the store's revision.
func (w *workload) watchable(ctx context.Context, when string) {
	w.t.Helper()
	for i, b := range w.backends {
		err := reaches(ctx, b, w.prefix)
		for err != nil && transient(err) && ctx.Err() == nil {
			w.rest(ctx, 10*time.Millisecond)
			err = reaches(ctx, b, w.prefix)
		}
		if err != nil {
			w.t.Errorf("%s, a new watch of backend %d: %v", when, i, err)
		}
	}
}

// reaches watches from the store's revision until the feed's progress has reached it.
func reaches(ctx context.Context, b storage.Backend, prefix string) error {
	now, err := b.Get(ctx, prefix, 0)
	if err != nil {
		return err
	}
	f, err := b.Watch(ctx, storage.WatchRange{Prefix: prefix, From: now.Revision})
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		f.RequestProgress()
		got, err := f.Next(ctx)
		if err != nil || got.Progress >= now.Revision {
			return err
		}
	}
}
