package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// plain is a backend without optional abilities, which counts its calls.
type plain struct {
	storage.Backend
	gets, ranges, commits int
	seen                  []storage.Range
	bytes                 []int // of the results of ranges
}

func (p *plain) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	p.gets++
	return p.Backend.Get(ctx, key, at)
}

func (p *plain) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	res, err := p.Backend.Range(ctx, r)
	p.ranges++
	p.seen = append(p.seen, r)
	size := 0
	for _, kv := range res.KVs {
		size += len(kv.Value)
	}
	p.bytes = append(p.bytes, size)
	return res, err
}

func (p *plain) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	p.commits++
	return p.Backend.Commit(ctx, c)
}

// telling is a plain backend that is a storage.Stater.
type telling struct {
	*plain
	stater storage.Stater
	stats  int
}

func (b *telling) Stat(ctx context.Context, key string) (storage.Stat, error) {
	b.stats++
	return b.stater.Stat(ctx, key)
}

// hidden is a backend without optional abilities.
type hidden struct{ storage.Backend }

func TestConformanceOverAPlainBackend(t *testing.T) {
	storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := inMemory(t)
		return newStore(t, hidden{b}, o), b
	})
}

// mute is a backend whose ErrCompacted does not have the oldest revision.
type mute struct{ storage.Backend }

func (m mute) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	res, err := m.Backend.Get(ctx, key, at)
	if errors.Is(err, storage.ErrCompacted) {
		err = storage.ErrCompacted
	}
	return res, err
}

func TestOldestOfBackendsThatCannotTell(t *testing.T) {
	m := memory.New(memory.Options{})
	defer m.Close()
	for _, c := range []struct {
		b       storage.Backend
		at      int64 // revision of the compaction; 0: none
		want    int64
		current int64
	}{
		{m, 0, 1, 21}, {hidden{m}, 0, 1, 21}, {mute{m}, 0, 1, 21}, {hidden{m}, 11, 11, 21}, {m, 0, 11, 21}, {mute{m}, 0, 21, 21},
	} {
		s := newStore(t, c.b, gadgetOptions(t))
		for now, err := s.Revision(t.Context()); now < c.current; now, err = s.Revision(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			create(t, s, fmt.Sprint("a/", now))
		}
		if c.at != 0 {
			if err := m.Compact(t.Context(), c.at); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Oldest(t.Context()); err != nil || got != c.want {
			t.Errorf("%T, compacted at %d: %d, %v; want %d", c.b, c.at, got, err, c.want)
		}
	}
}

// A state is read in portions, which are bounded in keys and about in bytes.
func TestStatePortions(t *testing.T) {
	o := gadgetOptions(t)
	for name, c := range map[string]struct{ n, size, most int }{
		"small": {5000, 10, 6}, "large": {180, 256 << 10, 6},
	} {
		m := inMemory(t)
		p := &plain{Backend: m}
		s := newStore(t, p, o)
		for i := range c.n {
			g := gadget(fmt.Sprintf("a/%05d", i))
			g.Spec.Color = strings.Repeat("x", c.size)
			body, err := o.Codec.Encode(g)
			if err != nil {
				t.Fatal(err)
			}
			commit(t, m, storage.Commit{Key: o.Prefix + "/a/" + g.Name, Value: body.Bytes()})
		}
		state, err := s.State(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for e, err := range state.Entries {
			if err != nil || e.Record.Key != fmt.Sprintf("a/%05d", count) {
				t.Fatalf("%s: entry %d is %+v, %v", name, count, e.Record, err)
			}
			count++
		}
		if count != c.n || p.ranges < 2 || p.ranges > c.most {
			t.Errorf("%s: %d entries in %d portions", name, count, p.ranges)
		}
		for i, r := range p.seen {
			if r.Limit <= 0 || r.Limit > 10_000 || i > 0 && (r.At != state.Revision || p.bytes[i] > 32<<20) || !r.Uncounted {
				t.Errorf("%s: portion %d of %d bytes: %+v", name, i, p.bytes[i], r)
			}
		}
	}
}

func TestStateIsWalkedOnce(t *testing.T) {
	s, _ := gadgets(t)
	create(t, s, "a/x")
	state, err := s.State(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []bool{false, true} {
		for _, err := range state.Entries {
			if (err != nil) != want {
				t.Errorf("walk %d: %v", n+1, err)
			}
		}
	}
}

// The requests of an UpdateFrom: no value is read if the given state is current, and a commit needs no read before it.
func TestUpdateFromAsksLittle(t *testing.T) {
	m := inMemory(t)
	p := &plain{Backend: m}
	b := &telling{plain: p, stater: m}
	for name, store := range map[string]*storage.Store{
		"with a Stater": newStore(t, b, gadgetOptions(t)), "without": newStore(t, p, gadgetOptions(t)),
	} {
		gets := map[string]int{"no change": 1, "stale": 1, "deleted": 1}
		stats := map[string]int{}
		if name != "without" {
			gets, stats = map[string]int{"stale": 1}, map[string]int{"no change": 1, "stale": 1, "deleted": 1}
		}
		old := create(t, store, "a/x")
		check := func(when string, change storage.ChangeFunc, from storage.Record, commits int) storage.Record {
			t.Helper()
			p.gets, p.commits, b.stats = 0, 0, 0
			r, err := store.UpdateFrom(t.Context(), from, storage.WriteOptions{}, change)
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.Fatalf("%s, %s: %v", name, when, err)
			}
			if p.gets != gets[when] || b.stats != stats[when] || p.commits != commits {
				t.Errorf("%s, %s: %d gets, %d stats, %d commits", name, when, p.gets, b.stats, p.commits)
			}
			return r
		}
		none := func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{}, nil
		}
		grow := func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
			obj.(*storagetest.Gadget).Spec.Size++
			return storage.Outcome{Object: obj}, nil
		}
		remove := func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{Delete: true}, nil
		}
		check("no change", none, old, 0)
		check("a change", grow, old, 1)
		check("stale", none, old, 0)
		r := check("a conflict", grow, old, 2)
		check("a deletion", remove, r, 1)
		check("deleted", none, r, 0)
	}
}

// dear is a backend whose watches take long to deliver older changes.
type dear struct{ storage.Backend }

// Replay implements storage.Replayer.
func (dear) Replay() int64 { return 7 }

// The backend determines how far back a watch may begin, also if it has hooks. Other backends have no limit.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	for name, c := range map[string]struct {
		backend storage.Backend
		hooks   storage.Hooks
		want    int64
	}{
		"memory":   {backend: b, want: math.MaxInt64},
		"dear":     {backend: dear{b}, want: 7},
		"observed": {backend: dear{b}, hooks: storage.Hooks{Requested: func(context.Context, storage.Operation, time.Duration, error) {}}, want: 7},
	} {
		o, err := storagetest.GadgetOptions()
		if err != nil {
			t.Fatal(err)
		}
		o.Hooks = c.hooks
		s, err := storage.NewStore(c.backend, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Replay(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
