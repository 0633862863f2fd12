package memory_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// content yields values, and then an error unless it is nil.
func content(err error, kvs ...storage.KV) iter.Seq2[storage.KV, error] {
	return func(yield func(storage.KV, error) bool) {
		for _, kv := range kvs {
			if !yield(kv, nil) {
				return
			}
		}
		if err != nil {
			yield(storage.KV{}, err)
		}
	}
}

func TestLoad(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	if err := b.Load(t.Context(), 50, content(nil, storage.KV{Key: "a", Value: []byte("1"), Revision: 7}, storage.KV{Key: "b", Revision: 50})); err != nil {
		t.Fatal(err)
	}
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil || res.Revision != 50 || res.Count != 2 || res.KVs[0].Revision != 7 || string(res.KVs[0].Value) != "1" {
		t.Fatalf("Range: %+v, %v", res, err)
	}
	for _, at := range []int64{1, 7, 49} {
		if _, err := b.Get(t.Context(), "a", at); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Get at %d: %v, want ErrCompacted", at, err)
		}
	}
	done, err := b.Commit(t.Context(), storage.Commit{Key: "a", Expect: 7, Value: []byte("2")})
	if err != nil || done.Revision != 51 {
		t.Errorf("a commit that expects a loaded revision: %+v, %v", done, err)
	}
	if got, err := b.Get(t.Context(), "a", 50); err != nil || string(got.KV.Value) != "1" || got.KV.Revision != 7 {
		t.Errorf("Get at 50: %+v, %v", got, err)
	}
	if err := b.Load(t.Context(), 60, content(nil)); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("a second Load: %v, want ErrNotEmpty", err)
	}
}

// After a Load without values the backend counts as loaded.
func TestLoadOfNothing(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	if err := b.Load(t.Context(), 1, content(nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(t.Context(), 1, content(nil)); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("a second Load: %v, want ErrNotEmpty", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	cut := errors.New("cut")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a := storage.KV{Key: "a", Revision: 1}
	for name, c := range map[string]struct {
		ctx      context.Context
		revision int64
		kvs      iter.Seq2[storage.KV, error]
		want     error
	}{
		"an error of the source": {t.Context(), 9, content(cut, a), cut},
		"an ended context":       {ended, 9, content(nil, a), context.Canceled},
		"no revision":            {t.Context(), 0, content(nil), nil},
		"a value above it":       {t.Context(), 9, content(nil, storage.KV{Key: "a", Revision: 10}), nil},
		"a value without one":    {t.Context(), 9, content(nil, storage.KV{Key: "a"}), nil},
		"no key":                 {t.Context(), 9, content(nil, storage.KV{Revision: 1}), nil},
		"a key twice":            {t.Context(), 9, content(nil, a, a), nil},
		"no order":               {t.Context(), 9, content(nil, storage.KV{Key: "b", Revision: 1}, a), nil},
		"a TTL":                  {t.Context(), 9, content(nil, storage.KV{Key: "a", Revision: 1, Expiring: true}), nil},
	} {
		b := memory.New(memory.Options{})
		if err := b.Load(c.ctx, c.revision, c.kvs); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if res, err := b.Range(t.Context(), storage.Range{}); err != nil || res.Revision != 1 || res.Count != 0 {
			t.Errorf("%s left %+v, %v", name, res, err)
		}
		b.Close()
		if err := b.Load(t.Context(), 9, content(nil)); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	used := memory.New(memory.Options{})
	defer used.Close()
	put(t, used, "a", "1", 0)
	if err := used.Load(t.Context(), 9, content(nil)); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("of a used one: %v, want ErrNotEmpty", err)
	}
	late := memory.New(memory.Options{})
	defer late.Close()
	meddle := func(yield func(storage.KV, error) bool) { put(t, late, "z", "1", 0); yield(a, nil) }
	if err := late.Load(t.Context(), 9, meddle); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("of one written meanwhile: %v, want ErrNotEmpty", err)
	}
}

// Every result with a value tells whether it was committed with a TTL.
func TestExpiringIsReported(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	f, err := b.Watch(t.Context(), storage.WatchRange{From: 1, Prev: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, ttl := range []time.Duration{time.Hour, 0, time.Hour} {
		at := put(t, b, "a", fmt.Sprint(i), ttl)
		want := ttl > 0
		if res, err := b.Get(t.Context(), "a", at); err != nil || res.KV.Expiring != want {
			t.Errorf("Get: %+v, %v", res, err)
		}
		if res, err := b.Range(t.Context(), storage.Range{}); err != nil || res.KVs[0].Expiring != want {
			t.Errorf("Range: %+v, %v", res, err)
		}
		if res, err := b.Commit(t.Context(), storage.Commit{Key: "a"}); !errors.Is(err, storage.ErrConflict) || res.Current.Expiring != want {
			t.Errorf("a conflict's Current: %+v, %v", res, err)
		}
	}
	if _, err := b.Commit(t.Context(), storage.Commit{Key: "a", Expect: storage.AnyRevision, Delete: true, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	got, err := f.Next(t.Context())
	if err != nil || len(got.Changes) != 4 {
		t.Fatalf("Next: %+v, %v", got, err)
	}
	for i, c := range got.Changes {
		if want := !c.Deleted && i != 1; c.Expiring != want {
			t.Errorf("change %d: %+v, want expiring %v", i, c, want)
		}
		if i > 0 && c.Prev.Expiring != got.Changes[i-1].Expiring {
			t.Errorf("change %d: its Prev is %+v", i, c.Prev)
		}
	}
}
