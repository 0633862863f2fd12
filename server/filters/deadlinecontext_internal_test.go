package filters

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// both has a deadlineContext and a context of package context, which must always behave alike.
type both struct {
	parent       context.Context
	cancelParent context.CancelCauseFunc
	lazy         *deadlineContext
	real         context.Context
	cancel       context.CancelFunc
	children     [2]context.Context // a child of each; nil before they are made
	ended        bool               // end was called; the parent may get another cause afterwards
}

type nameKey struct{}

func newBoth(t *testing.T, parent, after time.Duration) *both {
	b := &both{}
	ctx, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), nameKey{}, "x"))
	b.cancelParent, b.parent = cancelParent, ctx
	if parent > 0 {
		var cancel context.CancelFunc
		b.parent, cancel = context.WithTimeout(ctx, parent)
		t.Cleanup(cancel)
	}
	p := begin(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(b.parent))
	at := time.Now().Add(after)
	b.lazy = p.ends(at)
	b.real, b.cancel = context.WithDeadline(b.parent, at)
	return b
}

func (b *both) compare(t *testing.T, done bool) {
	t.Helper()
	at, _ := b.lazy.Deadline()
	if want, _ := b.real.Deadline(); !at.Equal(want) {
		t.Fatalf("deadline %v, want %v", at, want)
	}
	if got, want := b.lazy.Err(), b.real.Err(); !errors.Is(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("error %v, want %v", got, want)
	}
	if got, want := context.Cause(b.lazy), context.Cause(b.real); !b.ended && got != want {
		t.Fatalf("cause %v, want %v", got, want)
	}
	if b.lazy.Value(nameKey{}) != "x" {
		t.Fatal("the value of the parent is lost")
	}
	if !done {
		return
	}
	closed := func(c context.Context) bool {
		select {
		case <-c.Done():
			return true
		default:
			return false
		}
	}
	if got, want := closed(b.lazy), closed(b.real); got != want {
		t.Fatalf("done: %v, want %v", got, want)
	}
	if b.children[0] != nil {
		if got, want := b.children[0].Err(), b.children[1].Err(); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Fatalf("the error of a child is %v, want %v", got, want)
		}
	}
}

// A deadlineContext behaves like a context of package context, in whatever order its methods are called.
func TestDeadlineContextIsAsOthersAre(t *testing.T) {
	t.Parallel()
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			b := newBoth(t, time.Duration(rand.IntN(2)*rand.IntN(100))*time.Millisecond, time.Duration(rand.IntN(100))*time.Millisecond)
			b.compare(t, false) // a late call returns one of two reasons, not always the first
			for range 12 {
				switch rand.IntN(8) {
				case 0:
					b.cancelParent(errors.New("why"))
				case 1:
					b.lazy.end()
					b.cancel()
					b.ended = true
				case 2:
					if b.children[0] == nil {
						var one, other context.CancelFunc
						b.children[0], one = context.WithCancel(b.lazy)
						b.children[1], other = context.WithCancel(b.real)
						t.Cleanup(one)
						t.Cleanup(other)
					}
				default:
					time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
				}
				synctest.Wait()
				b.compare(t, rand.IntN(6) == 0)
			}
			b.lazy.end()
			b.cancel()
			b.ended = true
			b.cancelParent(nil)
			synctest.Wait()
			b.compare(t, true)
		})
	}
}
