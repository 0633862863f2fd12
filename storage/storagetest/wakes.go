package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// alarm is the func given to Wake, and records its calls.
type alarm struct {
	t    testing.TB
	ctx  context.Context
	came chan struct{} // closed by the first call
	n    atomic.Int32
}

func (c *alarm) again() {
	if c.n.Add(1) == 1 {
		close(c.came)
	}
}

// comes waits until the func is called.
func (c *alarm) comes() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, Timeout)
	defer cancel()
	select {
	case <-c.came:
	case <-ctx.Done():
		c.t.Fatal("Wake has returned true, and its func is not called")
	}
}

// wants checks how often the func was called so far.
func (c *alarm) wants(n int32) {
	c.t.Helper()
	if got := c.n.Load(); got != n {
		c.t.Fatalf("the func given to Wake was called %d times, want %d", got, n)
	}
}

// asleep calls Wake, which must return true.
func asleep(t testing.TB, ctx context.Context, w storage.Waker) *alarm {
	t.Helper()
	c := &alarm{t: t, ctx: ctx, came: make(chan struct{})}
	if !w.Wake(c.again) {
		t.Fatal("Wake has returned false, and there is nothing to read")
	}
	return c
}

// awake checks that Wake returns false.
func awake(t testing.TB, w storage.Waker) {
	t.Helper()
	if w.Wake(func() {}) {
		t.Fatal("Wake has returned true, and Next would return now")
	}
}

// waker returns a watch as a storage.Waker, or skips the test.
func (f *feed) waker() storage.Waker {
	f.b.t.Helper()
	w, ok := f.Feed.(storage.Waker)
	if !ok {
		f.b.t.Skip("the feed is no storage.Waker")
	}
	return w
}

// asleep calls Wake of a watch that has nothing to deliver.
func (f *feed) asleep() *alarm {
	f.b.t.Helper()
	return asleep(f.b.t, f.b.ctx, f.waker())
}

func (f *feed) awake() {
	f.b.t.Helper()
	awake(f.b.t, f.waker())
}

var wakeTests = []backendTest{
	{"by a change", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "a", From: b.revision()})
		for i := range 3 {
			c := f.asleep()
			b.put("b", "elsewhere")
			c.wants(0)
			r := b.put("a", fmt.Sprint(i))
			c.comes()
			b.put("b", "elsewhere")
			f.awake()
			f.want(fmt.Sprintf("put a=%d@%d", i, r))
			c.wants(1)
		}
	}},
	{"not by what is there", func(t *testing.T, b *backend) {
		from := b.revision()
		r1 := b.put("a", "1")
		f := b.watch(storage.WatchRange{From: from})
		f.awake()
		f.awake()
		f.want(fmt.Sprintf("put a=1@%d", r1))
		r2 := b.put("a", "2")
		f.awake()
		f.want(fmt.Sprintf("put a=2@%d", r2))
		f.asleep()
	}},
	{"by progress that was requested", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "a", From: b.revision()})
		c := f.asleep()
		now := b.put("b", "1")
		f.RequestProgress()
		c.comes()
		if got, err := f.Next(b.timeoutContext()); err != nil || len(got.Changes) > 0 || got.Progress < now {
			t.Fatalf("Next: %+v, %v; want progress %d", got, err, now)
		}
		f.RequestProgress()
		f.awake()
		f.fill()
		c = f.asleep()
		f.RequestProgress()
		f.RequestProgress()
		c.comes()
		f.fill()
		c.wants(1)
	}},
	{"from the future", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision() + 2})
		c := f.asleep()
		b.put("a", "1")
		b.put("a", "2")
		c.wants(0)
		r := b.put("a", "3")
		c.comes()
		f.want(fmt.Sprintf("put a=3@%d", r))
	}},
	{"by Close", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		c := f.asleep()
		f.Close()
		c.comes()
		f.fails(storage.ErrClosed)
		f.awake()
		f.RequestProgress()
		f.Close()
		f.fails(storage.ErrClosed)
		c.wants(1)
	}},
	{"not after Close, whatever there is", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		b.put("a", "1")
		f.awake()
		f.Close()
		f.awake()
		f.fails(storage.ErrClosed)
	}},
	{"by the end of the context", func(t *testing.T, b *backend) {
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		inner, err := b.Watch(ctx, storage.WatchRange{From: b.revision()})
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		f := &feed{Feed: inner, b: b}
		c := f.asleep()
		b.put("a", "1")
		c.comes()
		f.next()
		c = f.asleep() // a second call
		cancel()
		c.comes()
		f.fails(context.Canceled)
		f.awake()
	}},
	{"by Close of the backend", func(t *testing.T, b *backend) {
		var all []*feed
		var calls []*alarm
		for i := range 5 {
			f := b.watch(storage.WatchRange{Prefix: strings.Repeat("a", i), From: b.revision() + int64(i)})
			all, calls = append(all, f), append(calls, f.asleep())
		}
		b.close()
		for i, f := range all {
			calls[i].comes()
			f.fails(storage.ErrClosed)
			f.awake()
			f.Close()
			calls[i].wants(1)
		}
	}},
	{"where history was compacted", func(t *testing.T, b *backend) {
		b.compactor()
		f := b.watch(storage.WatchRange{Prefix: "a", From: b.revision()})
		c := f.asleep()
		b.put("b", "1")
		b.compact(b.put("b", "2"))
		c.wants(0) // nothing is lost
		r := b.put("a", "1")
		c.comes()
		f.want(fmt.Sprintf("put a=1@%d", r))
		b.put("a", "2")
		b.compact(b.put("a", "3"))
		f.awake() // with the changes or with ErrCompacted
		if _, err := f.Next(b.timeoutContext()); err != nil && !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Next: %v", err)
		}
	}},
	{"the call may do anything", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{Prefix: "a", From: b.revision()})
		w, done := f.waker(), make(chan error, 1)
		again := func() {
			_, err := b.Commit(b.ctx, storage.Commit{Key: "a/2", Expect: storage.AnyRevision})
			for n := 0; err == nil && n < 2; {
				var got storage.Changes
				got, err = f.Next(b.ctx)
				n += len(got.Changes)
			}
			f.RequestProgress()
			if err == nil && w.Wake(func() {}) {
				err = errors.New("a Wake has returned true, and progress was requested")
			}
			f.Close()
			done <- err
		}
		if !w.Wake(again) {
			t.Fatal("Wake has returned false, and there is nothing to read")
		}
		b.put("a/1", "1")
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-b.timeoutContext().Done():
			t.Fatal("the call does not return")
		}
	}},
	{"a long history", wakeThroughHistory},
	{"beside writers", wakeBeside},
}

// wakeThroughHistory reads more than one Next returns, and mostly changes of other keys: in the end there is nothing to read.
func wakeThroughHistory(t *testing.T, b *backend) {
	from := b.revision()
	f := b.watch(storage.WatchRange{Prefix: "a", From: from})
	f.waker()
	var want []int64
	value := strings.Repeat("x", 2000)
	for i, end := 0, time.Now().Add(budget()); i < 3000 && time.Now().Before(end); i++ {
		if i%7 == 3 {
			want = append(want, b.put("a", value))
		} else {
			b.put("b", value)
		}
	}
	var got []int64
	c := &alarm{t: t, ctx: b.ctx, came: make(chan struct{})}
	for !f.waker().Wake(c.again) {
		f.fill() // it waits only if Wake was wrong
	}
	for _, change := range f.pending {
		got = append(got, change.Revision)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the changes are %d, want %d", got, want)
	}
	c.wants(0)
	f.pending = nil
	r := b.put("a", "end")
	c.comes()
	f.want(fmt.Sprintf("put a=end@%d", r))
}
