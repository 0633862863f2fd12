package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/util/wait"
)

// callOptions make a request wait for a connection within its time, and leave limits on sizes to etcd.
func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(math.MaxInt32),
	}
}

// idempotent tells whether a request may be repeated when its outcome is unknown.
type idempotent bool

// connectTime is how long a request waits for a lost connection. It is long enough to find another member, and short enough
// to report that there is none.
const connectTime = 2 * time.Second

// call makes a request on a connection, within timeout and the time of ctx.
func (b *Backend) call(ctx context.Context, operation string, timeout time.Duration, l *link, again idempotent, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.opts.Hooks.Requested == nil {
		return b.attempt(ctx, timeout, l, again, do)
	}
	begun := time.Now()
	err := b.attempt(ctx, timeout, l, again, do)
	b.opts.Hooks.Requested(operation, time.Since(begun), err)
	return err
}

// Attempts after the first wait longer each time. A request that was refused because of an old token is repeated at once, a
// few times.
const (
	firstPause  = 20 * time.Millisecond
	longPause   = time.Second
	maxRefusals = 3
)

func (b *Backend) attempt(ctx context.Context, timeout time.Duration, l *link, again idempotent, do func(context.Context) error) error {
	limited := ctx
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > timeout {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var cause error
	for pauses, refusals := doubling(firstPause, longPause), 0; ; {
		err := l.reached(limited)
		if err == nil {
			err = do(limited)
		}
		if err == nil {
			return nil
		}
		if code(err) == codes.DeadlineExceeded {
			untilDone(limited)
		}
		if cause == nil || limited.Err() == nil {
			cause = err
		}
		switch {
		case b.closed.Load() && code(err) == codes.Canceled:
			return storage.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errUnreached) && limited.Err() == nil:
			return fmt.Errorf("%w: %v", storage.ErrUnavailable, err)
		case isRefused(err) && refusals < maxRefusals:
			refusals++
			continue
		case limited.Err() != nil:
			return fmt.Errorf("%w: no answer within %v: %v", storage.ErrUnavailable, timeout, text(cause))
		case !bool(again) || !errors.Is(translate(err), storage.ErrUnavailable):
			return translate(err)
		}
		sleep(limited, pauses.Step()) // if limited ends meanwhile, do fails at once with the reason
	}
}

// doubling returns the pauses between attempts, which double each time within bounds.
func doubling(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least, Factor: 2, Steps: math.MaxInt, Cap: most}
}

// errUnreached is wrapped by the error of reached.
var errUnreached = errors.New("etcd cannot be reached")

// reached waits until a lost connection is restored.
func (l *link) reached(ctx context.Context) error {
	conn := l.ActiveConnection()
	state := conn.GetState()
	if state == connectivity.Ready {
		return nil
	}
	limit := connectTime
	if deadline, ok := ctx.Deadline(); ok { // leave some time to find out the cause
		limit = min(limit, time.Until(deadline)*3/4)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ; state != connectivity.Ready && state != connectivity.Shutdown; state = conn.GetState() {
		if state == connectivity.Idle {
			conn.Connect()
		}
		if !conn.WaitForStateChange(within, state) {
			return l.unreached(ctx)
		}
	}
	return nil
}

// unreached finds out from gRPC why there is no connection: it makes a request that does not wait for one.
func (l *link) unreached(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime/10)
	defer cancel()
	_, err := l.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err == nil {
		return nil // there is a connection now
	}
	return fmt.Errorf("%w: %s", errUnreached, text(err))
}

// untilDone waits for the end of a context that is about to end. etcd has the deadline too, and its error may come first.
func untilDone(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 100*time.Millisecond {
		<-ctx.Done()
	}
}

// sleep reports whether the time has passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *Backend) readWithin(ctx context.Context, operation string, timeout time.Duration, l *link, req *pb.RangeRequest) (res *pb.RangeResponse, err error) {
	if b.closed.Load() {
		return nil, storage.ErrClosed
	}
	err = b.call(ctx, operation, timeout, l, true, func(ctx context.Context) (err error) {
		res, err = l.kv.Range(ctx, req, b.callOptions...)
		return err
	})
	return res, err
}
