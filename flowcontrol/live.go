package flowcontrol

import (
	"context"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authz"
)

// Live is a controller that is replaced while requests are served: each request is released where it was admitted. Two
// controllers do not know of each other, so that for a while their limits add up; one that can be reconfigured is better
// not replaced. The zero Live lets everything pass. All methods may be called concurrently; a Live must not be copied.
type Live struct{ now atomic.Pointer[Controller] }

// Set replaces the controller for all requests that come afterwards; nil lets everything pass.
func (l *Live) Set(c Controller) {
	if c == nil {
		l.now.Store(nil)
		return
	}
	l.now.Store(&c)
}

// Admit implements Controller.
func (l *Live) Admit(ctx context.Context, a authz.Attributes) (func(), error) {
	if c := l.now.Load(); c != nil {
		return (*c).Admit(ctx, a)
	}
	return func() {}, nil
}
