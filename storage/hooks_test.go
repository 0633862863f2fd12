package storage_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/labels"
)

// requests records the calls of hooks.
type requests struct {
	mu     sync.Mutex // guards all below
	counts map[string]int
	listed []storage.Listed
}

func (r *requests) hooks() storage.Hooks {
	r.counts = map[string]int{}
	return storage.Hooks{
		Requested: func(_ context.Context, operation storage.Operation, took time.Duration, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.counts[fmt.Sprintf("%s, failed: %t, took less than nothing: %t", operation, err != nil, took < 0)]++
		},
		Listed: func(l storage.Listed) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.listed = append(r.listed, l)
		},
	}
}

// take returns what was recorded since its last call.
func (r *requests) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := ""
	for _, key := range slices.Sorted(maps.Keys(r.counts)) {
		out += fmt.Sprintf("%d %s; ", r.counts[key], key)
	}
	clear(r.counts)
	return out
}

// A store with hooks still passes the tests of a store.
func TestConformanceWithHooks(t *testing.T) {
	storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := memory.New(memory.Options{})
		t.Cleanup(func() { b.Close() })
		o.Hooks = new(requests).hooks()
		return newStore(t, b, o), b
	})
}

// Each request to the backend calls the hook once, with its operation.
func TestHooks(t *testing.T) {
	var calls requests
	o := gadgetOptions(t)
	o.Hooks = calls.hooks()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	s := newStore(t, b, o)
	const well = ", failed: false, took less than nothing: false; "
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	grow := func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		obj.(*storagetest.Gadget).Spec.Size++
		return storage.Outcome{Object: obj}, nil
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"create", func() { create(t, s, "a/x") }, "1 create" + well},
		{"create again", func() { _, _ = s.Create(ctx, "a/x", gadget("a/x"), storage.WriteOptions{}) }, "1 create" + well},
		{"get", func() { _, err := s.Get(ctx, "a/x", storage.Read{}); must(err) }, "1 get" + well},
		{"get nothing", func() { _, _ = s.Get(ctx, "a/nope", storage.Read{}) }, "1 get" + well},
		{"stat", func() { _, err := s.Stat(ctx, "a/x"); must(err) }, "1 get" + well},
		{"list", func() { _, err := s.List(ctx, storage.ListOptions{}); must(err) }, "1 list" + well},
		{"state", func() { _, err := s.State(ctx, 0); must(err) }, "1 list" + well},
		{"update", func() { _, err := s.Update(ctx, "a/x", storage.WriteOptions{}, grow); must(err) }, "1 get" + well + "1 update" + well},
		{"revision", func() { _, err := s.Revision(ctx); must(err) }, "1 getCurrentResourceVersion" + well},
		{"oldest", func() { _, err := s.Oldest(ctx); must(err) }, ""}, // the backend is asked as a Historian
		{"known", func() {
			if _, ok := s.Known(); !ok {
				t.Error("the backend knows its revision no more")
			}
		}, ""},
		{"watch", func() {
			w, err := s.Watch(ctx, storage.WatchOptions{})
			must(err)
			w.Close()
		}, "1 getCurrentResourceVersion" + well + "1 watch" + well},
		{"get what is compacted", func() {
			now, err := s.Revision(ctx)
			must(err)
			must(b.Compact(ctx, now))
			calls.take()
			if _, err := s.Get(ctx, "a/x", storage.Read{Match: storage.Exact, Revision: now - 1}); err == nil {
				t.Error("it is there")
			}
		}, "1 get, failed: true, took less than nothing: false; "},
		{"delete", func() {
			_, err := s.Update(ctx, "a/x", storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
				return storage.Outcome{Delete: true}, nil
			})
			must(err)
		}, "1 delete" + well + "1 get" + well},
	} {
		calls.take()
		step.do()
		if got := calls.take(); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	for _, key := range []string{"a/x", "a/y", "b/z"} {
		create(t, s, key)
	}
	calls.listed = nil
	for _, opts := range []storage.ListOptions{
		{}, {Limit: 2}, {Selection: storage.Selection{Namespace: "a"}},
		{Selection: storage.Selection{Labels: labels.SelectorFromSet(labels.Set{"no": "such"})}},
	} {
		_, err := s.List(ctx, opts)
		must(err)
	}
	if want := []storage.Listed{{Fetched: 3, Returned: 3}, {Fetched: 2, Returned: 2}, {Fetched: 2, Returned: 2}, {Fetched: 3, Evaluated: 3}}; !slices.Equal(calls.listed, want) {
		t.Errorf("lists took %+v, want %+v", calls.listed, want)
	}
}
