package filters

import (
	"context"
	"net/http"
	"sync"

	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitGroup counts the requests under way, so that a server can let them finish before it ends. Long-running ones
// are not counted: they end when their server tells them. All methods may be called concurrently.
type WaitGroup struct {
	mu     sync.Mutex // guards all below
	n      int
	closed bool
	idle   chan struct{} // closed when n is 0 after Close; made by Close
}

// NewWaitGroup returns a group without requests, open for new ones.
func NewWaitGroup() *WaitGroup { return &WaitGroup{idle: make(chan struct{})} }

// Filter counts requests. After Close it answers every new one, long-running ones included, with 503 and
// Retry-After.
func (g *WaitGroup) Filter() Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		counted := !request.IsLongRunning(info)
		if !g.enter(counted) {
			WriteStatus(p.w, p.r, errShuttingDown())
			return false
		}
		if !counted {
			return true
		}
		defer g.leave()
		p.group = g
		p.to(next)
		return false
	})
}

// Close refuses new requests from now on. It may be called more than once.
func (g *WaitGroup) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.settle()
	}
}

// Wait returns when the group is closed and no request is under way, or with the error of ctx when it ends first.
// Handlers that outlived their [Timeout] are under way until they return.
func (g *WaitGroup) Wait(ctx context.Context) error {
	select {
	case <-g.idle:
		return nil
	default:
	}
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter reports whether a request may pass, and counts it if asked.
func (g *WaitGroup) enter(count bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if count {
		g.n++
	}
	return true
}

// hold counts what an entered request leaves behind. A nil group counts nothing.
func (g *WaitGroup) hold() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

// leave takes back an enter or a hold.
func (g *WaitGroup) leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	g.settle()
}

// settle closes idle when the last request has left a closed group; mu is held. n cannot grow from 0 once the group
// is closed, so that this happens once.
func (g *WaitGroup) settle() {
	if g.closed && g.n == 0 {
		close(g.idle)
	}
}

type groupKey struct{}

// groupOf returns the group that counts a request, or nil.
func groupOf(ctx context.Context) *WaitGroup {
	g, _ := ctx.Value(groupKey{}).(*WaitGroup)
	return g
}

func errShuttingDown() error {
	err := apierrors.NewServiceUnavailable("apiserver is shutting down")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}
