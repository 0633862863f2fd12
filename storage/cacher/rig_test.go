package cacher_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// waitTime is how long a test waits for something that must happen.
const waitTime = 20 * time.Second

// rig is a cache of gadgets, and the storage below it.
type rig struct {
	*cacher.Cacher
	t       testing.TB
	ctx     context.Context
	backend storage.Backend
	store   *storage.Store
	source  *disturbed
	root    string // prefix of the resource's keys in the backend
}

// newRig makes a cache over a backend; nil is a backend in memory. Both live as long as the test.
func newRig(t testing.TB, b storage.Backend, o cacher.Options) *rig {
	t.Helper()
	if b == nil {
		m := memory.New(memory.Options{})
		t.Cleanup(func() { m.Close() })
		b = m
	}
	so, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	so.ReadWait = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, backend: b, root: so.Prefix + "/"}
	if r.store, err = storage.NewStore(b, so); err != nil {
		t.Fatal(err)
	}
	r.source = &disturbed{Store: r.store, feeds: map[*disturbedFeed]struct{}{}}
	r.open(o)
	t.Cleanup(func() { r.Close() })
	return r
}

// open makes a new cache over the same storage.
func (r *rig) open(o cacher.Options) {
	r.t.Helper()
	o.Namespaced, o.FillWait = true, cmp.Or(o.FillWait, o.ReadWait)
	c, err := cacher.New(r.source, o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Cacher = c
}

func gadgetOf(key, color string, set labels.Set) *storagetest.Gadget {
	ns, name, _ := strings.Cut(key, "/")
	return &storagetest.Gadget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: set},
		Spec:       storagetest.GadgetSpec{Size: 1, Color: color},
	}
}

// put creates a gadget, or changes its color.
func (r *rig) put(key, color string) int64 {
	r.t.Helper()
	record, err := r.store.Create(r.ctx, key, gadgetOf(key, color, nil), storage.WriteOptions{})
	if errors.Is(err, storage.ErrExists) {
		record, err = r.store.Update(r.ctx, key, storage.WriteOptions{}, changed(func(g *storagetest.Gadget) {
			g.Spec.Color = color
			g.Spec.Size++
		}))
	}
	if err != nil {
		r.t.Fatalf("writing %q: %v", key, err)
	}
	return record.Revision
}

func (r *rig) drop(key string) int64 {
	r.t.Helper()
	record, err := r.store.Update(r.ctx, key, storage.WriteOptions{}, dropped)
	if err != nil {
		r.t.Fatalf("deleting %q: %v", key, err)
	}
	return record.Revision
}

func dropped(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
	return storage.Outcome{Delete: true}, nil
}

func changed(f func(*storagetest.Gadget)) storage.ChangeFunc {
	return func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g, ok := obj.(*storagetest.Gadget)
		if !ok {
			return storage.Outcome{}, fmt.Errorf("the object is a %T", obj)
		}
		f(g)
		return storage.Outcome{Object: g}, nil
	}
}

const broken = `{"kind":`

// plant writes bytes directly to the backend, under any key.
func (r *rig) plant(key, value string) int64 {
	r.t.Helper()
	return r.commit(storage.Commit{Key: r.root + key, Expect: storage.AnyRevision, Value: []byte(value)})
}

func (r *rig) commit(c storage.Commit) int64 {
	r.t.Helper()
	done, err := r.backend.Commit(r.ctx, c)
	if err != nil {
		r.t.Fatalf("committing %q: %v", c.Key, err)
	}
	return done.Revision
}

// aside commits under a key of another resource.
func (r *rig) aside() int64 {
	return r.commit(storage.Commit{Key: "/aside", Expect: storage.AnyRevision, Value: []byte("x")})
}

// compact removes the history of the backend.
func (r *rig) compact() int64 {
	r.t.Helper()
	now := r.now()
	c, ok := r.backend.(storage.Compactor)
	if !ok {
		r.t.Fatalf("a %T does not compact", r.backend)
	}
	if err := c.Compact(r.ctx, now); err != nil && !errors.Is(err, storage.ErrCompacted) {
		r.t.Fatal(err)
	}
	return now
}

func (r *rig) now() int64 {
	r.t.Helper()
	now, err := r.store.Revision(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return now
}

// fill makes the cache fill, and waits for that.
func (r *rig) fill() {
	r.t.Helper()
	r.list(storage.ListOptions{})
	r.eventually("the cache is filled", func() bool { return r.Stats().Filled })
}

// seen waits until the cache has seen a revision.
func (r *rig) seen(revision int64) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the cache has reached %d", revision), func() bool {
		if r.Stats().Revision >= revision {
			return true
		}
		// The cache receives progress about other resources only when a reader waits for it.
		_, _ = r.Get(r.ctx, "none/none", storage.Read{Match: storage.NotOlderThan, Revision: revision})
		return false
	})
}

func (r *rig) eventually(what string, f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(waitTime); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("it does not happen: %s (the cache is %+v, and %v)", what, r.Stats(), r.Ready(r.ctx))
		}
	}
}

// patiently returns a context that ends when a test has waited long enough.
func (r *rig) patiently() context.Context {
	ctx, cancel := context.WithTimeout(r.ctx, waitTime)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) list(o storage.ListOptions) storage.Page {
	r.t.Helper()
	p, err := r.List(r.patiently(), o)
	if err != nil {
		r.t.Fatalf("List(%+v): %v", o, err)
	}
	return p
}

// shown returns a page as text.
func shown(p storage.Page) string {
	var all []string
	for record := range p.Records {
		all = append(all, fmt.Sprintf("%s@%d", record.Key, record.Revision))
	}
	return strings.Join(all, " ")
}

// view is a watch under test.
type view struct {
	storage.Watch
	r       *rig
	pending []storage.Event
}

func (r *rig) watch(o storage.WatchOptions) *view {
	r.t.Helper()
	w, err := r.Watch(r.ctx, o)
	if err != nil {
		r.t.Fatalf("Watch(%+v): %v", o, err)
	}
	r.t.Cleanup(w.Close)
	return &view{Watch: w, r: r}
}

// next returns the next event.
func (v *view) next() (storage.Event, error) {
	if len(v.pending) == 0 {
		ctx, cancel := context.WithTimeout(v.r.ctx, waitTime)
		defer cancel()
		events, err := v.Next(ctx)
		if err != nil {
			return storage.Event{}, err
		}
		v.pending = append([]storage.Event(nil), events...)
	}
	e := v.pending[0]
	v.pending = v.pending[1:]
	return e, nil
}

func (v *view) want(want ...string) {
	v.r.t.Helper()
	for i, w := range want {
		e, err := v.next()
		if err != nil {
			v.r.t.Fatalf("event %d: %v, want %q", i, err, w)
		}
		if got := eventText(e); got != w {
			v.r.t.Fatalf("event %d is %q, want %q", i, got, w)
		}
	}
}

// ends reads until the watch ends, which must be with an error of the given type, and returns the number of events before.
func (v *view) ends(target any) (events int) {
	v.r.t.Helper()
	for ; ; events++ {
		_, err := v.next()
		if err == nil {
			continue
		}
		if !errors.As(err, target) {
			v.r.t.Fatalf("the watch ends with %v, want a %T", err, target)
		}
		return events
	}
}

// eventText returns an event as text.
func eventText(e storage.Event) string {
	text := fmt.Sprintf("%s %s@%d", e.Type, e.Record.Key, e.Record.Revision)
	if e.Type == watch.Bookmark {
		text = fmt.Sprintf("BOOKMARK @%d", e.Record.Revision)
	}
	if e.InitialEnd {
		text += " end"
	}
	return text
}

func colored(color string) storage.Selection {
	return storage.Selection{Fields: fields.OneTermEqualSelector("spec.color", color)}
}

// soak is how long a long test runs: KEELSON_SOAK, or 0.
func soak(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("KEELSON_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KEELSON_SOAK: %v", err)
	}
	return d
}
