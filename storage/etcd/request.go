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

// callOptions let a request wait for a connection within its time, and leave limits of size to etcd.
func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(math.MaxInt32),
	}
}

// idempotent says whether a request may be made again when its outcome is unknown.
type idempotent bool

// connectTime is how long a request waits for a connection that is lost: long enough for another member to be found,
// and short enough to tell whoever waits that there is none.
const connectTime = 2 * time.Second

// call makes a request on a connection, within a time beside that of ctx.
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

// Attempts after the first wait a little longer each time. One that was refused for an old token is made again at
// once, a few times.
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
		sleep(limited, pauses.Step()) // if limited ends meanwhile, do fails at once, and says why
	}
}

// doubling is how long to wait before the next attempt: twice as long each time, within bounds.
func doubling(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least, Factor: 2, Steps: math.MaxInt, Cap: most}
}

// errUnreached is what reached says, with the cause.
var errUnreached = errors.New("etcd cannot be reached")

// reached waits for a connection that is lost.
func (l *link) reached(ctx context.Context) error {
	conn := l.ActiveConnection()
	state := conn.GetState()
	if state == connectivity.Ready {
		return nil
	}
	limit := connectTime
	if deadline, ok := ctx.Deadline(); ok { // some of the time is left to find out the cause
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

// unreached asks gRPC why there is no connection: a request that does not wait for one is told.
func (l *link) unreached(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime/10)
	defer cancel()
	_, err := l.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err == nil {
		return nil // there is one now
	}
	return fmt.Errorf("%w: %s", errUnreached, text(err))
}

// untilDone waits for the end of a context that is about to end: etcd knows the deadline, and its word may come
// first.
func untilDone(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 100*time.Millisecond {
		<-ctx.Done()
	}
}

// sleep reports whether it slept to the end.
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
