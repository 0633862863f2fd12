package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// sleeper is a reader that has no goroutine while there is nothing to read.
type sleeper struct {
	feed  storage.Feed
	waker storage.Waker // the feed
	ctx   context.Context
	slow  bool
	stop  func() // ends the feed early; nil: it is not ended
	last  string // the key whose change comes last

	running atomic.Int32 // number of goroutines in run
	twice   atomic.Bool  // there were two at once
	owed    atomic.Int64 // number of pending calls

	got  []int64       // revisions; used by the running goroutine, and by others when done is closed
	err  error         // the error that ended it; guarded like got
	seen chan struct{} // closed by saw, at the last change
	done chan struct{} // closed by ends, at the end of the reader
	saw  func()
	ends func()
}

// run reads until there is nothing to read, or the feed has ended.
func (s *sleeper) run() {
	for n := 0; ; n++ {
		if s.slow && n%5 == 0 {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
		}
		s.owed.Add(1)
		if s.waker.Wake(s.again) {
			return
		}
		s.owed.Add(-1)
		if s.running.Add(1) > 1 {
			s.twice.Store(true)
		}
		got, err := s.feed.Next(s.ctx)
		if err != nil {
			s.err = err
			s.ends()
			return
		}
		for _, c := range got.Changes {
			s.got = append(s.got, c.Revision)
			if c.Key == s.last {
				s.saw()
			}
		}
		s.running.Add(-1)
	}
}

func (s *sleeper) again() {
	s.owed.Add(-1)
	s.run()
}

// wakeBeside runs sleeping readers, some of which end, together with writers: no call may be lost, and none may come twice.
func wakeBeside(t *testing.T, b *backend) {
	const prefixes, commits = 3, 300
	start := b.revision()
	var all []*sleeper
	for i := range 4 * prefixes {
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		prefix := fmt.Sprintf("k%d/", i%prefixes)
		f, err := b.Watch(ctx, storage.WatchRange{Prefix: prefix, From: start})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := &sleeper{feed: f, ctx: b.ctx, slow: i%2 == 0, last: prefix + "end", seen: make(chan struct{}), done: make(chan struct{})}
		s.saw = sync.OnceFunc(func() { close(s.seen) })
		s.ends = sync.OnceFunc(func() { close(s.done) })
		s.waker = (&feed{Feed: f, b: b}).waker()
		if i >= 2*prefixes {
			s.stop = []func(){f.Close, cancel}[i%2]
		}
		all = append(all, s)
		go s.run()
	}
	want := make([]map[int64]bool, prefixes) // each is used by its writer, and then by the test
	var working sync.WaitGroup
	for p := range prefixes {
		want[p] = map[int64]bool{}
		working.Go(func() {
			for i, end := 0, time.Now().Add(budget()); i < commits && time.Now().Before(end); i++ {
				res, err := b.Commit(b.ctx, storage.Commit{Key: fmt.Sprintf("k%d/x", p), Expect: storage.AnyRevision})
				if err != nil {
					t.Errorf("Commit: %v", err)
					return
				}
				want[p][res.Revision] = true
				if i%10 == 0 {
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond) // the readers fall asleep
				}
			}
		})
	}
	working.Go(func() {
		for i := range 100 {
			all[i%len(all)].feed.RequestProgress()
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
			for _, s := range all {
				if i == 50 && s.stop != nil {
					s.stop()
				}
			}
		}
	})
	working.Wait()
	for p := range prefixes {
		want[p][b.put(fmt.Sprintf("k%d/end", p), "")] = true
	}
	ctx := b.timeoutContext()
	await := func(i int, what string, came <-chan struct{}) {
		t.Helper()
		select {
		case <-came:
		case <-ctx.Done():
			t.Fatalf("reader %d does not hear of %s; %d calls are owed", i, what, all[i].owed.Load())
		}
	}
	for i, s := range all {
		if s.stop == nil {
			await(i, "the last change", s.seen)
		}
	}
	b.close()
	for i, s := range all {
		await(i, "its end", s.done)
		s.check(t, i, start, want[i%prefixes])
	}
}

// check checks what a reader that has ended has seen.
func (s *sleeper) check(t *testing.T, i int, start int64, want map[int64]bool) {
	t.Helper()
	last := start
	for _, r := range s.got {
		if !want[r] || r <= last {
			t.Fatalf("reader %d is shown revision %d after %d", i, r, last)
		}
		last = r
	}
	switch owed := s.owed.Load(); {
	case s.twice.Load() || owed != 0:
		t.Errorf("reader %d was called while it read, or more often than it had asked for: %v, %d calls", i, s.twice.Load(), owed)
	case s.stop == nil && (!errors.Is(s.err, storage.ErrClosed) || len(s.got) != len(want)):
		t.Errorf("reader %d ends with %v after %d changes of %d", i, s.err, len(s.got), len(want))
	case !errors.Is(s.err, storage.ErrClosed) && !errors.Is(s.err, context.Canceled):
		t.Errorf("reader %d ends with %v", i, s.err)
	}
}
