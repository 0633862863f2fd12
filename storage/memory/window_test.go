package memory_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/goleak"
)

func put(t *testing.T, b *memory.Backend, key, value string, ttl time.Duration) int64 {
	t.Helper()
	res, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(value), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func TestHistoryEndsWithTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{Window: time.Minute})
		defer b.Close()
		r1 := put(t, b, "a", "1", 0)
		r2 := put(t, b, "a", "2", 0)
		time.Sleep(time.Minute)
		r3 := put(t, b, "a", "3", 0)
		if res, err := b.Get(t.Context(), "a", r1); err != nil || string(res.KV.Value) != "1" {
			t.Errorf("after a minute, at %d: %+v, %v", r1, res, err)
		}
		time.Sleep(time.Second)
		put(t, b, "b", "1", 0)
		var expired *storage.ExpiredError
		if _, err := b.Get(t.Context(), "a", r1); !errors.As(err, &expired) || expired.Oldest != r2 {
			t.Errorf("after more than a minute, at %d: %v, want the oldest revision to be %d", r1, err, r2)
		}
		if res, err := b.Get(t.Context(), "a", r2); err != nil || string(res.KV.Value) != "2" {
			t.Errorf("the state before the window, at %d: %+v, %v", r2, res, err)
		}
		if res, err := b.Get(t.Context(), "a", r3); err != nil || string(res.KV.Value) != "3" {
			t.Errorf("in the window, at %d: %+v, %v", r3, res, err)
		}
	})
}

func TestAnIdleFeedDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{Window: time.Minute})
		defer b.Close()
		from := put(t, b, "quiet/a", "1", 0)
		idle, err := b.Watch(t.Context(), storage.WatchRange{Prefix: "quiet/", From: from})
		if err != nil {
			t.Fatal(err)
		}
		busy, err := b.Watch(t.Context(), storage.WatchRange{Prefix: "busy/", From: from})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			put(t, b, "busy/a", fmt.Sprint(i), 0)
			time.Sleep(time.Minute)
		}
		want := put(t, b, "quiet/a", "2", 0)
		got, err := idle.Next(t.Context())
		if err != nil || len(got.Changes) != 1 || got.Changes[0].Revision != want {
			t.Errorf("the quiet feed: %+v, %v; want the change of revision %d", got, err, want)
		}
		if got, err := busy.Next(t.Context()); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("the feed that did not read: %+v, %v; want ErrCompacted", got, err)
		}
	})
}

func TestHistoryIsBoundedByBytes(t *testing.T) {
	b := memory.New(memory.Options{WindowBytes: 100_000})
	defer b.Close()
	var last int64
	for i := range 100 {
		last = put(t, b, "k", fmt.Sprintf("%09000d", i), 0)
	}
	for back, readable := range map[int64]bool{0: true, 5: true, 9: true, 12: false, 50: false} {
		if _, err := b.Get(t.Context(), "k", last-back); (err == nil) != readable {
			t.Errorf("%d revisions ago: %v, want readable %v", back, err, readable)
		}
	}
	huge := put(t, b, "k", strings.Repeat("x", 500_000), 0)
	f, err := b.Watch(t.Context(), storage.WatchRange{From: huge - 1})
	if err != nil {
		t.Fatalf("the newest change is kept whatever its size: %v", err)
	}
	if got, err := f.Next(t.Context()); err != nil || len(got.Changes) != 1 {
		t.Errorf("Next: %+v, %v", got, err)
	}
}

func TestHistoryGivesItsMemoryBack(t *testing.T) {
	b := memory.New(memory.Options{WindowBytes: 1 << 20})
	defer b.Close()
	for i := range 20_000 { // 200 MB, all of keys that are created and deleted
		key := fmt.Sprint("k", i%1000)
		put(t, b, key, strings.Repeat("x", 10_000), 0)
		if i%2 == 1 {
			if _, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Delete: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("the heap is %d MiB, with 5 MB of values and 1 MiB of history", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(b)
}

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{})
		f, err := b.Watch(t.Context(), storage.WatchRange{From: 1, Prev: true})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		put(t, b, "long", "1", time.Hour)
		put(t, b, "short", "1", time.Minute)
		put(t, b, "renewed", "1", time.Minute)
		put(t, b, "renewed", "2", 3*time.Minute)
		put(t, b, "kept", "1", time.Minute)
		put(t, b, "kept", "2", 0)
		after := map[string]time.Duration{}
		for len(after) < 3 {
			got, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Changes {
				if c.Deleted {
					after[c.Key] = time.Since(start)
				}
			}
		}
		want := map[string]time.Duration{"short": time.Minute, "renewed": 3 * time.Minute, "long": time.Hour}
		if fmt.Sprint(after) != fmt.Sprint(want) {
			t.Errorf("deleted after %v, want %v", after, want)
		}
		if res, err := b.Get(t.Context(), "kept", 0); err != nil || !res.Found {
			t.Errorf("kept: %+v, %v", res, err)
		}
		put(t, b, "last", "1", time.Second)
		begin := time.Now()
		if err := b.Close(); err != nil || time.Since(begin) != 0 { // Close stops the timer and does not wait for it
			t.Errorf("Close took %v: %v", time.Since(begin), err)
		}
	})
}

func TestCloseDuringExpiry(t *testing.T) {
	defer goleak.VerifyNone(t)
	for i := range 50 {
		b := memory.New(memory.Options{})
		for j := range 20 {
			put(t, b, fmt.Sprint(j), "1", time.Duration(i*j)*time.Microsecond)
		}
		time.Sleep(time.Duration(i) * 10 * time.Microsecond)
		b.Close()
	}
}

// Two hundred idle backends, each with data and a watch, have no goroutine.
func TestManyBackends(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 200 {
		b := memory.New(memory.Options{})
		defer b.Close()
		put(t, b, "a", "1", 0)
		if _, err := b.Watch(t.Context(), storage.WatchRange{From: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines more", now-before)
	}
}

func TestOpen(t *testing.T) {
	open := memory.Open()
	one, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if one == two {
		t.Error("two servers share a backend")
	}
	h, ok := one.(storage.Healther)
	if !ok || h.Health(t.Context()) != nil {
		t.Error("the backend is not healthy")
	}
	one.Close()
	if err := h.Health(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}
