package cacher_test

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// The goroutine that follows the storage does not have the profile labels of a writer, because labels tell to which request a
// goroutine belongs.
func TestNoLabelsOfWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{})
		defer b.Close()
		k := newKind(t, b, "kind")
		defer k.Close()
		time.Sleep(time.Second)
		if got := workers(t); got != 0 {
			t.Fatalf("it is not at rest, but has %d goroutines", got)
		}
		pprof.Do(t.Context(), pprof.Labels("writer", t.Name()), func(context.Context) {
			k.wrote("a/third")
			k.wrote("a/fourth")
		})
		if got := workers(t); got != 1 {
			t.Fatalf("after two writes in a row there are %d goroutines, want 1", got)
		}
		var all strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		for group := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(group, fmt.Sprintf("%q", t.Name())) {
				t.Errorf("a goroutine has the labels of a writer:\n%s", group)
			}
		}
	})
}

// late is a backend whose feeds can end because a deadline of their own has passed.
type late struct {
	storage.Backend
	over  atomic.Bool  // the present feeds have ended
	calls atomic.Int64 // number of calls of Next of a feed that has ended
}

// Watch implements storage.Backend.
func (b *late) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	b.over.Store(false)
	feed, err := b.Backend.Watch(ctx, w)
	if err != nil {
		return nil, err
	}
	return overdueFeed{lateFeed{feed, feed.(storage.Waker), 0}, b}, nil
}

type overdueFeed struct {
	lateFeed
	b *late
}

// Next implements storage.Feed.
func (f overdueFeed) Next(ctx context.Context) (storage.Changes, error) {
	if f.b.over.Load() && f.b.calls.Add(1) < 1000 {
		return storage.Changes{}, fmt.Errorf("asking: %w", context.DeadlineExceeded)
	}
	return f.lateFeed.Next(ctx)
}

// A feed that ends with a deadline of its own is closed, and not read again and again.
func TestDeadlineOfAFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &late{Backend: memory.New(memory.Options{})}
		defer b.Close()
		k := newKind(t, b, "kind")
		defer k.Close()
		k.wrote("a/third") // it is busy
		b.over.Store(true)
		k.watch.RequestProgress()
		k.create("a/fourth")
		time.Sleep(time.Second)
		if got := b.calls.Load(); got > 2 {
			t.Errorf("a feed that is over was asked %d times", got)
		}
		if err := k.Ready(context.Background()); err != nil {
			t.Errorf("it follows no other feed: %v", err)
		}
	})
}
