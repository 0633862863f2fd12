package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitIsForCreatesThatHaveBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c creates
		begin := func() context.CancelFunc {
			ctx, end := context.WithCancel(t.Context())
			c.begin(ctx, "a")
			return end
		}
		wait := func() (returned func() bool) {
			done := make(chan struct{})
			go func() { defer close(done); _ = c.wait(t.Context(), "a") }()
			return func() bool {
				synctest.Wait()
				select {
				case <-done:
					return true
				default:
					return false
				}
			}
		}
		if !wait()() {
			t.Error("waits though there was no create")
		}
		first, second := begin(), begin()
		one := wait()
		if one() {
			t.Error("does not wait for the first two")
		}
		third := begin()
		two := wait()
		first()
		third()
		if one() || two() {
			t.Error("the second has not ended")
		}
		later := begin()
		second()
		if !one() || !two() {
			t.Error("waits for a create that began later")
		}
		three := wait()
		if three() {
			t.Error("does not wait for the one that is left")
		}
		later()
		if !three() {
			t.Error("waits though all have ended")
		}
		if len(c.open) > 0 {
			t.Errorf("remembers creates that have ended: %v", c.open)
		}
		end := begin()
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		if err := c.wait(t.Context(), "b"); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	})
}

func TestSuspectsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s suspects
		if s.has("a") {
			t.Error("suspects before there was reason to")
		}
		s.add("a")
		time.Sleep(rememberDeletes - time.Second)
		if !s.has("a") || s.has("b") {
			t.Error("want a alone")
		}
		time.Sleep(2 * time.Second)
		if s.has("a") || len(s.until) > 0 {
			t.Error("a is not forgotten")
		}
		one, two := s.hold("a"), s.hold("a")
		time.Sleep(time.Hour)
		one()
		time.Sleep(time.Hour)
		if !s.has("a") {
			t.Error("let go by one of two")
		}
		two()
		if !s.has("a") {
			t.Error("let go at once")
		}
		time.Sleep(rememberDeletes + time.Second)
		if s.has("a") || len(s.closing) > 0 {
			t.Error("a is held for ever")
		}
	})
}

// After more deletes than can be remembered, every namespace is suspect.
func TestManySuspects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s suspects
		for i := range maxDeletes {
			s.add(fmt.Sprint(i))
		}
		if s.has("other") || !s.has("0") {
			t.Error("so many can be told apart")
		}
		s.add("more")
		if !s.has("other") || !s.has("0") || !s.has("more") {
			t.Error("the first are believed")
		}
		if len(s.until) > maxDeletes {
			t.Errorf("%d are remembered", len(s.until))
		}
		time.Sleep(rememberDeletes + time.Second)
		if s.has("other") || s.has("0") || s.has("more") {
			t.Error("they are suspected for ever")
		}
		for i := range maxDeletes {
			s.add(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		s.add("again")
		if s.has("other") {
			t.Error("those that may be forgotten take the place of others")
		}
	})
}
