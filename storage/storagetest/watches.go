package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

var watchTests = []backendTest{
	{"every change in order", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		r1, r2, r3 := b.put("a", "1"), b.put("b", "1"), b.put("a", "2")
		r4, r5 := b.del("a"), b.put("a", "3")
		f.want(fmt.Sprintf("put a=1@%d", r1), fmt.Sprintf("put b=1@%d", r2), fmt.Sprintf("put a=2@%d", r3),
			fmt.Sprintf("delete a@%d", r4), fmt.Sprintf("put a=3@%d", r5))
		f.wantIdle()
	}},
	{"previous values", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision(), Prev: true})
		r1, r2 := b.put("a", "1"), b.put("a", "2")
		r3, r4 := b.del("a"), b.put("a", "4")
		f.want(fmt.Sprintf("put a=1@%d", r1), fmt.Sprintf("put a=2@%d (was 1@%d)", r2, r1),
			fmt.Sprintf("delete a@%d (was 2@%d)", r3, r2), fmt.Sprintf("put a=4@%d", r4))
		late := b.watch(storage.WatchRange{From: r1, Prev: true})
		late.want(fmt.Sprintf("put a=2@%d (was 1@%d)", r2, r1), fmt.Sprintf("delete a@%d (was 2@%d)", r3, r2),
			fmt.Sprintf("put a=4@%d", r4))
	}},
	{"from any revision", func(t *testing.T, b *backend) {
		start := b.revision()
		var revisions []int64
		for i := range 10 {
			revisions = append(revisions, b.put("k", fmt.Sprint(i)))
		}
		for i, from := range append([]int64{start}, revisions...) {
			f := b.watch(storage.WatchRange{From: from})
			for j := i; j < len(revisions); j++ {
				f.want(fmt.Sprintf("put k=%d@%d", j, revisions[j]))
			}
			f.wantIdle()
		}
	}},
	{"from before the beginning", func(t *testing.T, b *backend) {
		r := b.put("new/k", "1") // under a prefix that the store has never had, even if it was emptied for the test
		var got storage.Changes
		w, err := b.Watch(b.ctx, storage.WatchRange{Prefix: "new/"})
		if err == nil {
			defer w.Close()
		}
		for err == nil && len(got.Changes) == 0 && got.Progress < r {
			w.RequestProgress()
			got, err = w.Next(b.ctx)
		}
		switch {
		case errors.Is(err, storage.ErrCompacted): // the store may have had others before
		case err != nil:
			t.Errorf("a watch from 0: %v, want all changes or ErrCompacted", err)
		case len(got.Changes) != 1 || text(got.Changes[0]) != fmt.Sprintf("put new/k=1@%d", r):
			t.Errorf("a watch from 0: %+v, want all changes", got)
		}
	}},
	{"only its prefix", func(t *testing.T, b *backend) {
		from := b.revision()
		one := b.watch(storage.WatchRange{Prefix: "a/", From: from})
		key := b.watch(storage.WatchRange{Prefix: "a/x", From: from})
		b.put("a", "no")
		r1 := b.put("a/x", "1")
		b.put("b/x", "no")
		r2 := b.put("a/y", "2")
		b.put("a0", "no")
		r3 := b.put("a/xx", "3")
		one.want(fmt.Sprintf("put a/x=1@%d", r1), fmt.Sprintf("put a/y=2@%d", r2), fmt.Sprintf("put a/xx=3@%d", r3))
		key.want(fmt.Sprintf("put a/x=1@%d", r1), fmt.Sprintf("put a/xx=3@%d", r3))
		one.wantIdle()
		key.wantIdle()
		late := b.watch(storage.WatchRange{Prefix: "a/y", From: from})
		late.want(fmt.Sprintf("put a/y=2@%d", r2))
		late.wantIdle()
	}},
	{"no prefix is every key", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		var want []string
		for _, key := range []string{"a", "\x01", "\xff", "\xff\xff", " ", "/registry/x", "ключ"} {
			want = append(want, fmt.Sprintf("put %s=v@%d", key, b.put(key, "v")))
		}
		f.want(want...)
		f.wantIdle()
	}},
	{"a prefix of any bytes", func(t *testing.T, b *backend) {
		from := b.revision()
		all := []string{"a", "a\xfe", "a\xff", "a\xff\xff", "a\xff\xffb", "b", "\xfe", "\xff", "\xff\xff", "\xffz", "\x01"}
		revisions := map[string]int64{}
		feeds := map[string]*feed{}
		prefixes := []string{"a\xff", "a\xff\xff", "\xff", "\xff\xff", "\x01", "a\xffz"}
		for _, p := range prefixes {
			feeds[p] = b.watch(storage.WatchRange{Prefix: p, From: from})
		}
		for _, key := range all {
			revisions[key] = b.put(key, "v")
		}
		for _, p := range prefixes {
			for _, f := range []*feed{feeds[p], b.watch(storage.WatchRange{Prefix: p, From: from})} {
				for _, key := range all {
					if strings.HasPrefix(key, p) {
						f.want(fmt.Sprintf("put %s=v@%d", key, revisions[key]))
					}
				}
				f.wantIdle()
			}
		}
	}},
	{"the slice is the reader's", func(t *testing.T, b *backend) {
		from := b.revision()
		one, two := b.watch(storage.WatchRange{From: from, Prev: true}), b.watch(storage.WatchRange{From: from, Prev: true})
		r1, r2 := b.put("a", "1"), b.put("a", "2")
		want := []string{fmt.Sprintf("put a=1@%d", r1), fmt.Sprintf("put a=2@%d (was 1@%d)", r2, r1)}
		for one.last < r2 {
			got, err := one.Next(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Changes {
				got.Changes[i] = storage.Change{Key: "mine"}
			}
			one.last = got.Progress
		}
		two.want(want...)
		b.watch(storage.WatchRange{From: from, Prev: true}).want(want...)
	}},
	{"a feed without changes waits", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "k", From: b.revision()})
		b.put("other", "x")
		ctx, cancel := context.WithTimeout(b.ctx, 30*time.Millisecond)
		defer cancel()
		for answers := 0; ; answers++ {
			got, err := f.Next(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil || len(got.Changes) > 0 || answers > 10 {
				t.Fatalf("answer %d of Next: %+v, %v; want it to wait", answers, got, err)
			}
		}
		r := b.put("k", "1")
		f.want(fmt.Sprintf("put k=1@%d", r))
	}},
	{"a context that has ended", func(t *testing.T, b *backend) {
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		f, err := b.Watch(ctx, storage.WatchRange{From: b.revision()})
		if err == nil {
			defer f.Close()
			_, err = f.Next(b.timeoutContext())
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Watch and Next: %v, want context.Canceled or ErrClosed", err)
		}
	}},
	{"from the future", func(t *testing.T, b *backend) {
		from := b.revision() + 3
		f := b.watch(storage.WatchRange{From: from})
		var want []string
		for i := 0; len(want) < 3; i++ {
			if r := b.put("k", fmt.Sprint(i)); r > from {
				want = append(want, fmt.Sprintf("put k=%d@%d", i, r))
			}
		}
		f.want(want...)
	}},
	{"a reader that waits is woken", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "k", From: b.revision()})
		done := make(chan string, 1)
		go func() {
			got, err := f.Next(b.ctx)
			if err != nil {
				done <- err.Error()
				return
			}
			done <- text(got.Changes[0])
		}()
		b.put("other", "x")
		r := b.put("k", "1")
		if got, want := <-done, fmt.Sprintf("put k=1@%d", r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}},
	{"progress when asked for", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "k", From: b.revision()})
		b.put("other", "x")
		now := b.put("other", "y")
		f.RequestProgress()
		got, err := f.Next(b.ctx)
		if err != nil || len(got.Changes) != 0 || got.Progress < now {
			t.Errorf("Next = %+v, %v; want progress %d", got, err, now)
		}
		r := b.put("k", "1")
		f.want(fmt.Sprintf("put k=1@%d", r))
		f.wantIdle()
	}},
	{"progress wakes a reader", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "k", From: b.revision()})
		done := make(chan error, 1)
		go func() {
			got, err := f.Next(b.ctx)
			if err == nil && len(got.Changes) != 0 {
				err = fmt.Errorf("changes: %+v", got.Changes)
			}
			done <- err
		}()
		f.RequestProgress()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}},
	{"progress is never above the store's revision", func(t *testing.T, b *backend) {
		now := b.put("k", "1")
		f := b.watch(storage.WatchRange{From: now + 1000})
		f.RequestProgress()
		if got, err := f.Next(b.ctx); err != nil || got.Progress > now {
			t.Errorf("Next = %+v, %v; the store is at %d", got, err, now)
		}
	}},
	{"a reader gives up and comes back", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := f.Next(ctx)
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("Next: %v, want context.Canceled", err)
		}
		r := b.put("k", "1")
		f.want(fmt.Sprintf("put k=1@%d", r))
	}},
	{"ends with its context", func(t *testing.T, b *backend) {
		ctx, cancel := context.WithCancel(b.ctx)
		f, err := b.Watch(ctx, storage.WatchRange{From: b.revision()})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		done := make(chan error, 1)
		go func() {
			_, err := f.Next(b.timeoutContext())
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next: %v, want context.Canceled or ErrClosed", err)
		}
		f.RequestProgress()
		if got, err := f.Next(b.timeoutContext()); err == nil {
			t.Errorf("after the end Next returns %+v", got)
		}
		b.put("k", "1")
	}},
	{"ends with Close", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		done := make(chan error, 1)
		go func() {
			_, err := f.Next(b.ctx)
			done <- err
		}()
		f.Close()
		if err := <-done; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next: %v, want ErrClosed", err)
		}
		f.Close()
		f.RequestProgress()
		f.fails(storage.ErrClosed)
		b.put("k", "1")
	}},
	{"a large backlog", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "k", From: b.revision()})
		var want []string
		end := time.Now().Add(budget())
		for i := range 3000 {
			if time.Now().After(end) {
				break
			}
			if i%3 == 0 {
				b.put("other", "x")
				continue
			}
			want = append(want, fmt.Sprintf("put k=%d@%d", i, b.put("k", fmt.Sprint(i))))
		}
		f.want(want...)
		f.wantIdle()
	}},
	{"progress and Close beside Next", func(t *testing.T, b *backend) {
		for range 20 {
			f := b.watch(storage.WatchRange{From: b.revision()})
			var all sync.WaitGroup
			all.Go(func() {
				for {
					if _, err := f.Next(b.ctx); err != nil {
						if !errors.Is(err, storage.ErrClosed) {
							t.Errorf("Next: %v, want ErrClosed", err)
						}
						return
					}
				}
			})
			all.Go(func() {
				for range 5 {
					f.RequestProgress()
				}
			})
			b.put("k", "v")
			all.Go(f.Close)
			all.Wait()
		}
	}},
	{"never ahead of reads", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		var all sync.WaitGroup
		all.Go(func() {
			for i := range 100 {
				c := storage.Commit{Key: "k", Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))}
				if _, err := b.Commit(b.ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for seen := 0; seen < 100 && !t.Failed(); {
			got, err := f.Next(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(got.Changes)
			if now := b.get("k", 0); now.Revision < got.Progress {
				t.Fatalf("the feed is at %d, a read after it shows %+v", got.Progress, now)
			}
		}
		all.Wait()
	}},
	{"many readers and writers", func(t *testing.T, b *backend) {
		const writers, each = 4, 50
		var all sync.WaitGroup
		from := b.revision()
		for i := range 6 {
			prefix := ""
			if i%2 == 1 {
				prefix = fmt.Sprintf("w%d/", i%writers)
			}
			f := b.watch(storage.WatchRange{Prefix: prefix, From: from, Prev: true})
			want := writers * each
			if prefix != "" {
				want = each
			}
			all.Go(func() {
				if err := follow(f, want); err != nil {
					t.Error(err)
				}
			})
		}
		for w := range writers {
			all.Go(func() {
				for i := range each {
					c := storage.Commit{Key: fmt.Sprintf("w%d/k", w), Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))}
					if _, err := b.Commit(b.ctx, c); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}},
}

// follow reads n changes and checks that the values under each key count up from 0, each with the previous value.
func follow(f *feed, n int) error {
	next := map[string]int{}
	last := int64(0)
	for seen := 0; seen < n; {
		got, err := f.Next(f.b.ctx)
		if err != nil {
			return err
		}
		for _, c := range got.Changes {
			i := next[c.Key]
			prev := ""
			if c.Prev != nil {
				prev = string(c.Prev.Value)
			}
			wantPrev := ""
			if i > 0 {
				wantPrev = fmt.Sprint(i - 1)
			}
			if string(c.Value) != fmt.Sprint(i) || prev != wantPrev || c.Revision <= last {
				return fmt.Errorf("after revision %d: %s, want value %d", last, text(c), i)
			}
			next[c.Key]++
			last = c.Revision
			seen++
		}
	}
	return nil
}
