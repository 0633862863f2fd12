package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Checks during a call share its result; a later check makes a new call.
func TestProbesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		sick := errors.New("sick")
		p := newProbe(t.Context(), func(context.Context) error { asked.Add(1); <-release; return sick })
		defer p.close()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if err := p.check(t.Context()); !errors.Is(err, sick) {
					t.Errorf("%v, want %v", err, sick)
				}
			})
		}
		synctest.Wait()
		close(release)
		all.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("the storage was asked %d times", n)
		}
		if err := p.check(t.Context()); !errors.Is(err, sick) || asked.Load() != 2 {
			t.Errorf("later: %v after %d questions", err, asked.Load())
		}
	})
}

// A storage that does not return, although its context ends, holds one goroutine, and no check for longer than the timeout.
func TestAHungStorageHoldsOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		p := newProbe(t.Context(), func(context.Context) error { asked.Add(1); <-release; return nil })
		for range 10 {
			begin := time.Now()
			err := p.check(t.Context())
			if err == nil || !strings.Contains(err.Error(), "has not answered") || time.Since(begin) != probeTimeout {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d questions are under way", n)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.check(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait gets %v", err)
		}
		close(release)
		synctest.Wait()
		if err := p.check(t.Context()); err != nil {
			t.Errorf("after it has recovered: %v", err)
		}
		p.close()
	})
}

// close ends a call by its context, and waits for it.
func TestProbeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		ended := false
		p := newProbe(life, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); ended = true; return ctx.Err() })
		go func() { _ = p.check(t.Context()) }()
		synctest.Wait()
		end()
		if p.close(); !ended {
			t.Error("close did not wait")
		}
		if err := p.check(t.Context()); err == nil {
			t.Error("a question after close")
		}
		p.close()
	})
}

// A storage that does not return, although its context ends, does not prevent the server from closing it.
func TestProbeCloseOfAHungStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		released := make(chan struct{})
		p := newProbe(life, func(context.Context) error { <-released; return nil })
		go func() { _ = p.check(t.Context()) }()
		synctest.Wait()
		end()
		begin := time.Now()
		if p.close(); time.Since(begin) != probeTimeout {
			t.Errorf("close returned after %v", time.Since(begin))
		}
		close(released) // as the storage's Close does
	})
}

// A panic of the storage fails the check, not the process.
func TestProbeOfAPanic(t *testing.T) {
	p := newProbe(t.Context(), func(context.Context) error { panic("no such page") })
	defer p.close()
	if err := p.check(t.Context()); err == nil || !strings.Contains(err.Error(), "no such page") {
		t.Errorf("got %v", err)
	}
}
