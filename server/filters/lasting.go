package filters

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

// Lasting knows the long-running requests ([request.IsLongRunning]), so that a server can end them when it ends. Make one with
// NewLasting. All methods may be called concurrently.
type Lasting struct {
	watches bool

	mu     sync.Mutex // guards all below
	known  map[*lasting]struct{}
	ending bool          // watches that begin end at once
	over   bool          // all requests that begin end at once
	idle   chan struct{} // closed when the last request has ended after End; nil: not asked for
}

// lasting is a request that has not ended.
type lasting struct {
	watch bool
	end   context.CancelFunc
	conn  net.Conn // that the handler has taken over; nil: none
}

// NewLasting returns a Lasting without requests. Without watches it does not know watches: a server that ends them in another way
// saves their cost.
func NewLasting(watches bool) *Lasting {
	return &Lasting{watches: watches, known: map[*lasting]struct{}{}}
}

// Filter passes all requests on. It belongs behind [RequestInfo].
func (l *Lasting) Filter() Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info := p.values.Info
		watch := info != nil && info.Verb == "watch"
		if !request.IsLongRunning(info) || watch && !l.watches {
			return true
		}
		ctx, end := context.WithCancel(p.r.Context())
		one := &lasting{watch: watch, end: end}
		defer l.leave(one)
		l.join(one)
		p.watch().seen().taken = func(conn net.Conn) { l.took(one, conn) }
		setContext(p.r, ctx)
		p.to(next)
		return false
	})
}

func (l *Lasting) join(one *lasting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[one] = struct{}{}
	if l.over || one.watch && l.ending {
		one.end()
	}
}

// took is called when the handler of a request has taken over its connection.
func (l *Lasting) took(one *lasting, conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.conn = conn
	if l.over {
		_ = conn.Close()
	}
}

func (l *Lasting) leave(one *lasting) {
	one.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, one)
	if len(l.known) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// EndWatches ends the watches cleanly, one after the other and evenly over the given time, so that their clients do not all connect
// to another server at once. Watches that begin from now on end at once. EndWatches returns when all have been told to end, or when
// ctx ends.
func (l *Lasting) EndWatches(ctx context.Context, over time.Duration) {
	l.mu.Lock()
	l.ending = true
	var left []*lasting
	for one := range l.known {
		if one.watch {
			left = append(left, one)
		}
	}
	l.mu.Unlock()
	if len(left) == 0 {
		return
	}
	tick := time.NewTicker(max(over/time.Duration(len(left)), time.Millisecond))
	defer tick.Stop()
	all, began := len(left), time.Now()
	for len(left) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		due := all
		if spent := time.Since(began); spent < over {
			due = int(float64(all) * float64(spent) / float64(over))
		}
		for len(left) > all-due {
			left[0].end()
			left = left[1:]
		}
	}
}

// End ends all requests that are left, and closes the connections that their handlers have taken over. It returns when the handlers
// have returned, or when ctx ends.
func (l *Lasting) End(ctx context.Context) {
	l.mu.Lock()
	l.over = true
	for one := range l.known {
		one.end()
		if one.conn != nil {
			_ = one.conn.Close()
		}
	}
	if len(l.known) == 0 {
		l.mu.Unlock()
		return
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
