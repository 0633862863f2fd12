package remember_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/runtime/remember"
)

var errLate = errors.New("late")

// lengths returns a cache of texts that remembers those that are not empty for a minute.
func lengths(entries, bytes int) *remember.Cache[string] {
	return remember.New(remember.Options[string]{
		Entries: entries, Bytes: bytes, Size: func(s string) int { return len(s) }, Time: time.Second, Late: errLate,
		Keep: func(s string) time.Duration {
			if s == "" {
				return 0
			}
			return time.Minute
		},
	})
}

func key(n int) remember.Key { return sha256.Sum256(fmt.Append(nil, n)) }

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		entries, bytes int
		answer         string
		asked          []int
		calls          int
	}{
		{10, 100, "abc", []int{1, 1, 2, 1}, 2},
		{2, 100, "abc", []int{1, 2, 1, 3, 1, 2}, 4}, // 2 is dropped, which was not used for the longest time
		{10, 12, "abc", []int{1, 2, 3, 4, 1, 5, 1, 2}, 6},
		{10, 12, "abcd", []int{1, 1}, 2}, // more than a quarter
		{10, 100, "", []int{1, 1}, 2},
		{-1, 100, "a", []int{1, 1}, 1},
	} {
		cache, calls := lengths(c.entries, c.bytes), 0
		for _, n := range c.asked {
			got, err := cache.Get(t.Context(), key(n), func(context.Context) (string, error) { calls++; return c.answer, nil })
			if got != c.answer || err != nil {
				t.Error(got, err)
			}
			if known, ok := cache.Known(key(n)); ok && known != c.answer {
				t.Errorf("known is %q", known)
			}
		}
		if calls != c.calls {
			t.Errorf("%+v: %d calls", c, calls)
		}
	}
}

func TestErrorsAndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := lengths(10, 100)
		broken := errors.New("broken")
		if _, err := cache.Get(t.Context(), key(1), func(context.Context) (string, error) { return "x", broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
		if _, ok := cache.Known(key(1)); ok {
			t.Error("an error is remembered")
		}
		_, err := cache.Get(t.Context(), key(1), func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) })
		if !errors.Is(err, errLate) {
			t.Error(err)
		}
		if _, err := cache.Get(t.Context(), key(1), func(context.Context) (string, error) { return "a", nil }); err != nil {
			t.Error(err)
		}
		time.Sleep(59 * time.Second)
		if _, ok := cache.Known(key(1)); !ok {
			t.Error("the answer is forgotten too early")
		}
		time.Sleep(time.Second)
		if _, ok := cache.Known(key(1)); ok {
			t.Error("the answer is not forgotten")
		}
	})
}

// Those who come while a question is asked share the answer, and go on without a caller who ends.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := lengths(10, 100)
		var calls atomic.Int32
		ask := func(ctx context.Context) (string, error) {
			calls.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
				return "a", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		ending, end := context.WithCancel(t.Context())
		ended, all := make(chan error, 1), make(chan error, 5)
		go func() { _, err := cache.Get(ending, key(1), ask); ended <- err }()
		synctest.Wait()
		for range 5 {
			go func() { _, err := cache.Get(t.Context(), key(1), ask); all <- err }()
		}
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := cache.Get(late, key(1), ask); !errors.Is(err, errLate) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for range 5 {
			if err := <-all; err != nil {
				t.Error(err)
			}
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

func Example() {
	answers := remember.New(remember.Options[int]{
		Entries: 100, Bytes: 1 << 10, Size: func(int) int { return 8 }, Keep: func(int) time.Duration { return time.Minute }, Time: time.Second, Late: errLate,
	})
	for range 2 {
		n, err := answers.Get(context.Background(), sha256.Sum256([]byte("6*7")), func(context.Context) (int, error) {
			fmt.Println("asked")
			return 42, nil
		})
		fmt.Println(n, err)
	}
	// Output:
	// asked
	// 42 <nil>
	// 42 <nil>
}
