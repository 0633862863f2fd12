package filters

import (
	"context"
	"net/http"

	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/response"

	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitGroup counts the requests that have not ended, so that a server can wait for them when it ends. Long-running requests are
// not counted: the server ends them itself. All methods may be called concurrently.
type WaitGroup struct {
	count transport.Count
	idle  chan struct{} // closed when the last request has ended after Close
}

// NewWaitGroup returns a group without requests, open for new ones.
func NewWaitGroup() *WaitGroup { return &WaitGroup{idle: make(chan struct{})} }

// Filter counts requests. After Close it answers every new request, also a long-running one, with 503 and Retry-After, except
// requests for /healthz, /livez, /readyz, /metrics and paths below them: these say that the server ends, and pass without being
// counted.
func (g *WaitGroup) Filter() Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		counted := !request.IsLongRunning(info)
		entered := counted && g.count.Enter()
		switch {
		case entered || !counted && g.count.IsOpen():
		case observes(p.r.URL.Path):
			return true
		default:
			response.Error(p.w, p.r, errShuttingDown())
			return false
		}
		if !counted {
			return true
		}
		defer g.count.Leave()
		p.group = g
		p.to(next)
		return false
	})
}

// Close refuses new requests from now on. It may be called more than once.
func (g *WaitGroup) Close() { g.count.Close(func() { close(g.idle) }) }

// Wait returns nil when the group is closed and all requests have ended, or the error of ctx if that ends first. A request whose
// handler outlives its [Timeout] has not ended until the handler returns.
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

// hold counts a handler that outlives its request, until leave is called. A nil group counts nothing.
func (g *WaitGroup) hold() {
	if g != nil {
		g.count.Hold()
	}
}

// leave ends the count of hold.
func (g *WaitGroup) leave() {
	if g != nil {
		g.count.Leave()
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
