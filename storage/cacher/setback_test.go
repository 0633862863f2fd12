package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
)

// powerful is a backend with the optional abilities that both kinds in this process have.
type powerful interface {
	storage.Backend
	storage.Stater
	storage.Historian
	storage.Compactor
}

// replaceable is a backend that is replaced by another one while it is used, like an etcd that is restored from a snapshot,
// or a file that is replaced by an earlier copy. During the replacement it is unavailable.
type replaceable struct {
	current atomic.Pointer[powerful]
}

func newReplaceable(first powerful) *replaceable {
	b := &replaceable{}
	b.current.Store(&first)
	return b
}

// swap replaces the present backend by another one, and returns the present one.
func (b *replaceable) swap(by powerful) powerful { return *b.current.Swap(&by) }

// replace is swap, and closes the earlier backend: its feeds end.
func (b *replaceable) replace(t testing.TB, by powerful) {
	t.Helper()
	if err := b.swap(by).Close(); err != nil {
		t.Fatal(err)
	}
}

// backend returns the present backend.
func (b *replaceable) backend() powerful { return *b.current.Load() }

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

func (b *replaceable) Stat(ctx context.Context, key string) (storage.Stat, error) {
	res, err := b.backend().Stat(ctx, key)
	return res, away(err)
}

func (b *replaceable) Oldest(ctx context.Context) (int64, error) {
	oldest, err := b.backend().Oldest(ctx)
	return oldest, away(err)
}

func (b *replaceable) Compact(ctx context.Context, revision int64) error {
	return away(b.backend().Compact(ctx, revision))
}

func (b *replaceable) Close() error { return nil }

type awayFeed struct{ storage.Feed }

func (f awayFeed) Next(ctx context.Context) (storage.Changes, error) {
	got, err := f.Feed.Next(ctx)
	return got, away(err)
}

// restorable is a replaceable backend in memory.
type restorable struct{ *replaceable }

func newRestorable(t testing.TB) restorable {
	m := memory.New(memory.Options{})
	b := restorable{newReplaceable(m)}
	t.Cleanup(func() { b.backend().Close() })
	return b
}

// copyOf returns what is stored now, for restore.
func (b restorable) copyOf(t testing.TB) storage.RangeResult {
	t.Helper()
	res, err := b.Range(context.Background(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// restore goes back to a copy.
func (b restorable) restore(t testing.TB, from storage.RangeResult) {
	t.Helper()
	m := memory.New(memory.Options{})
	err := m.Load(context.Background(), from.Revision, func(yield func(storage.KV, error) bool) {
		for _, kv := range from.KVs {
			if !yield(kv, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.replace(t, m)
}

// TestSetBack replaces the file by an older copy, below a cache, and then makes other changes than before.
func TestSetBack(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*rig) error{
		"nobody looks": func(*rig) error { return nil },
		"a list": func(r *rig) error {
			p, err := r.List(r.ctx, storage.ListOptions{})
			if err == nil && (strings.Contains(shown(p), "lost") || p.Revision > r.now()) {
				err = fmt.Errorf("it shows %q at %d", shown(p), p.Revision)
			}
			return err
		},
		"a get": func(r *rig) error {
			_, err := r.Get(r.ctx, "n0/gone", storage.Read{}) // which is there again
			return err
		},
		"the revision":                       func(r *rig) error { _, err := r.Revision(r.ctx); return err },
		"a watch":                            func(r *rig) error { return begins(r, storage.WatchOptions{}) },
		"a watch that begins with the state": func(r *rig) error { return begins(r, storage.WatchOptions{Initial: true}) },
		"another write": func(r *rig) error {
			_, err := r.Create(r.ctx, "n0/made", gadgetOf("n0/made", "red", nil), storage.WriteOptions{})
			return err
		},
	} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprint(name, map[bool]string{true: ", bare"}[bare]), func(t *testing.T) {
				t.Parallel()
				setBack(t, bare, look)
			})
		}
	}
}

func begins(r *rig, o storage.WatchOptions) error {
	w, err := r.Watch(r.ctx, o)
	if err == nil {
		w.Close()
	}
	return err
}

func setBack(t *testing.T, bare bool, look func(*rig) error) {
	path := filepath.Join(t.TempDir(), "test.db")
	b := newReplaceable(openBolt(t, path, bolt.Options{}))
	var backend storage.Backend = b
	if bare {
		backend = struct{ storage.Backend }{b} // without optional abilities
	}
	var voids []error
	r := newRig(t, backend, cacher.Options{IndexFields: []string{"spec.color"}, Hooks: cacher.Hooks{Void: func(why error) { voids = append(voids, why) }}})
	var refills []error // the errors of Ready when the cache was filled again
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
	p.note("ADDED", "n0/gone", r.put("n0/gone", "red"))
	older := crashed(t, path, bolt.Options{})
	before := len(p.changes)
	p.live(r, 25) // these will be lost
	r.put("n0/lost", "red")
	r.drop("n0/gone")
	r.fill()
	filled = true
	watches := []*view{
		r.watch(storage.WatchOptions{}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "none", Name: "none"}}),
		r.watch(storage.WatchOptions{Selection: colored("red")}), r.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "none"}}),
		r.watch(storage.WatchOptions{From: r.now() + 50}),
		r.watch(storage.WatchOptions{From: p.revisions[before]}), r.watch(storage.WatchOptions{Initial: true}),
	}

	b.replace(t, older)
	if err := look(r); err != nil {
		t.Error(err)
	}
	for i, w := range watches {
		var expired *storage.ExpiredError
		if n := w.ends(&expired); n > 0 && i < 5 {
			t.Errorf("watch %d shows %d events", i, n)
		}
	}
	r.eventually("the cache is filled anew", func() bool { return r.Ready(r.ctx) == nil && r.Stats().Filled })
	if len(voids) != 1 || !strings.Contains(voids[0].Error(), "set back") {
		t.Errorf("void: %v", voids)
	}
	if len(refills) == 0 || refills[0] == nil || !strings.Contains(refills[0].Error(), "set back") {
		t.Errorf("while the cache was filled anew, Ready said %v", refills)
	}

	// After the other changes, no read may show a lost state.
	future := &past{revisions: p.revisions[: before+1 : before+1], states: p.states[: before+1 : before+1], changes: p.changes[:before:before]}
	if now := r.now(); now != p.revisions[before] { // look has written
		future.note("ADDED", "n0/made", now)
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

// rewound is a rig whose store will be set back: the cache has seen a later state than the copy.
func rewound(t *testing.T, o cacher.Options) (r *rig, b restorable, past storage.RangeResult) {
	t.Helper()
	b = newRestorable(t)
	r = newRig(t, b, o)
	r.put("a/kept", "red")
	r.put("a/gone", "red")
	past = b.copyOf(t)
	r.fill()
	for range 20 {
		r.put("a/new", "red")
	}
	r.drop("a/gone")
	r.seen(r.now())
	return r, b, past
}

// healed checks that the cache shows the store's state after the store was set back.
func (r *rig) healed() {
	r.t.Helper()
	r.eventually("the cache is ready", func() bool {
		st := r.Stats()
		return r.Ready(r.ctx) == nil && st.Filled && st.Revision <= r.now()
	})
	want, err := r.store.List(r.ctx, storage.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, match := range []storage.Match{storage.Any, storage.Latest} {
		if p := r.list(storage.ListOptions{At: storage.Read{Match: match}}); shown(p) != shown(want) || p.Revision != want.Revision {
			r.t.Errorf("the list is %q at %d, want %q at %d", shown(p), p.Revision, shown(want), want.Revision)
		}
	}
	w := r.watch(storage.WatchOptions{})
	w.want(fmt.Sprintf("ADDED z/healed@%d", r.put("z/healed", "red")))
	r.drop("z/healed")
}

// The cache is filled anew, which takes long. Meanwhile the storage below serves small reads, others are refused, and Ready
// returns the reason.
func TestSetBackAndSilent(t *testing.T) {
	r, b, past := rewound(t, cacher.Options{ReadWait: 50 * time.Millisecond})
	r.put("a/later", "red")
	b.restore(t, past)
	r.source.hold()
	defer r.source.release()
	r.put("b/x", "red") // so that there is something to replay
	for range 3 {
		p := r.list(storage.ListOptions{Limit: 100})
		if want := fmt.Sprintf("a/gone@%d a/kept@%d b/x@%d", past.Revision, past.Revision-1, past.Revision+1); shown(p) != want {
			t.Errorf("the list is %q, want %q", shown(p), want)
		}
		if _, err := r.List(r.patiently(), storage.ListOptions{}); !errors.As(err, new(*storage.FillingError)) {
			t.Errorf("a list without a limit: %v", err)
		}
		if _, err := r.Get(r.patiently(), "a/new", storage.Read{}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get of what is gone: %v", err)
		}
		if _, err := r.Get(r.patiently(), "a/new", storage.Read{Match: storage.Any}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get of what is gone, of any state: %v", err)
		}
	}
	if err := r.Ready(r.ctx); err == nil || !strings.Contains(err.Error(), "set back") {
		t.Errorf("Ready is %v, want it to tell why", err)
	}
	o := storage.WatchOptions{Selection: storage.Selection{Namespace: "b"}, From: past.Revision}
	if _, err := r.Watch(r.patiently(), o); !errors.As(err, new(*storage.FillingError)) {
		t.Errorf("a watch: %v", err)
	}
	r.source.release()
	r.healed()
	r.watch(o).want(fmt.Sprintf("ADDED b/x@%d", past.Revision+1))
}

// A reader detects that the store was set back while the cache is about to follow again. The cache must not wait for the lost
// revisions.
func TestSetBackWhileFollowing(t *testing.T) {
	r, b, past := rewound(t, cacher.Options{ReadWait: 50 * time.Millisecond})
	var once sync.Once
	find := func() {
		once.Do(func() {
			if _, err := r.Revision(r.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	r.source.following.Store(&find)
	b.restore(t, past)
	r.healed()
}

// The store is set back while the cache is being filled.
func TestSetBackWhileFilling(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("feed ends ", late), func(t *testing.T) {
			b := newRestorable(t)
			r := newRig(t, b, cacher.Options{ReadWait: 50 * time.Millisecond})
			r.put("a/kept", "red")
			past := b.copyOf(t)
			r.put("a/new", "red")
			r.put("a/new", "blue")
			compact := b.copyOf(t)
			var once sync.Once
			back := func() {
				once.Do(func() { b.restore(t, past) })
			}
			var before func() error
			if before = func() error { back(); return nil }; late {
				r.source.following.Store(&back)
			} else {
				r.source.stating.Store(&before)
			}
			p := r.list(storage.ListOptions{})
			if strings.Contains(shown(p), "a/new") || p.Revision >= compact.Revision {
				t.Errorf("the list is %q at %d", shown(p), p.Revision)
			}
			r.healed()
		})
	}
}
