package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// ErrDropped is the error of a Batch whose buffer is full. The events are lost.
var ErrDropped = errors.New("audit buffer is full")

// BatchOptions are options of a [Batch]. The zero values stand for the defaults, which are those of kube-apiserver for webhooks.
type BatchOptions struct {
	// Buffer is how many events wait, those that are being delivered excluded; 0 is 10,000. Further events are lost.
	Buffer int
	// BufferBytes bounds the memory of all events that wait or are being delivered, in bytes, of which an event without objects
	// has about a thousand; 0 is 64 MiB. Each event counts twice, since a delivery encodes it. Further events are lost. kube-apiserver
	// has no such bound.
	BufferBytes int
	// MaxSize is how many events are delivered together, at most; 0 is 400.
	MaxSize int
	// MaxWait is how long the first event of a delivery waits for others; 0 is 30 s.
	MaxWait time.Duration
	// QPS bounds how many deliveries begin in a second, on average, and Burst how many may begin at once. 0 is 10 and 15; a
	// negative QPS sets no bound.
	QPS   float64
	Burst int
	// Parallel is how many deliveries may run at the same time; 0 is 1, which keeps the events in order.
	Parallel int
	// Failed is called with the error of a delivery and the number of its events. It may be nil, and is called concurrently if
	// Parallel is more than 1.
	Failed func(err error, events int)
}

func (o BatchOptions) withDefaults() BatchOptions {
	o.Buffer, o.BufferBytes = cmp.Or(o.Buffer, 10_000), cmp.Or(o.BufferBytes, 64<<20)
	o.MaxSize, o.MaxWait = cmp.Or(o.MaxSize, 400), cmp.Or(o.MaxWait, 30*time.Second)
	o.QPS, o.Burst = cmp.Or(o.QPS, 10), cmp.Or(o.Burst, 15)
	o.Parallel = cmp.Or(o.Parallel, 1)
	if o.Failed == nil {
		o.Failed = func(error, int) {}
	}
	return o
}

func (o BatchOptions) validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"Buffer", o.Buffer}, {"BufferBytes", o.BufferBytes}, {"MaxSize", o.MaxSize}, {"MaxWait", int(o.MaxWait)}, {"Burst", o.Burst}, {"Parallel", o.Parallel}} {
		if n.value < 0 {
			return fmt.Errorf("audit: BatchOptions.%s is negative", n.name)
		}
	}
	return nil
}

// Batch is a Sink that keeps events and delivers them to another Sink later, several at a time. Requests do not wait for it. Make
// one with [NewBatch], and end it with [Batch.Close].
type Batch struct {
	sink  Sink
	opts  BatchOptions
	limit *rate.Limiter // nil: none

	mu      sync.Mutex // guards the fields below
	waiting []*Event   // events that no delivery has taken
	bytes   int        // of the events that wait or are being delivered
	closed  bool

	lost atomic.Pointer[func(err error, events int)] // of OnFailure

	changed chan struct{} // has an element after waiting grew to a full delivery, from nothing, or closed was set
	stop    context.CancelFunc
	done    chan struct{} // closed when all is over
}

// NewBatch returns a Batch in front of a sink.
func NewBatch(sink Sink, o BatchOptions) (*Batch, error) {
	if sink == nil {
		return nil, errors.New("audit: a Batch needs a Sink")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	b := &Batch{sink: sink, opts: o.withDefaults(), changed: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	if b.opts.QPS > 0 {
		b.limit = rate.NewLimiter(rate.Limit(b.opts.QPS), b.opts.Burst)
	}
	go b.run(ctx)
	return b, nil
}

// OnFailure sets a function that is called as BatchOptions.Failed is, besides it. A server sets one for the sinks of its backends that
// have this method, to count and log the lost events.
func (b *Batch) OnFailure(f func(err error, events int)) { b.lost.Store(&f) }

// Record implements Sink. It does not wait. The error wraps [ErrDropped] if the buffer has no room, or if the Batch is closed.
func (b *Batch) Record(_ context.Context, events ...*Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, e := range events {
		size := memory(e)
		if b.closed || len(b.waiting) >= b.opts.Buffer || b.bytes+size > b.opts.BufferBytes {
			return fmt.Errorf("%w: %d events are lost", ErrDropped, len(events)-i)
		}
		b.waiting = append(b.waiting, e)
		b.bytes += size
		if len(b.waiting) == 1 || len(b.waiting) == b.opts.MaxSize {
			b.wake()
		}
	}
	return nil
}

func (b *Batch) wake() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Close delivers the events that wait, and returns when all deliveries have ended. If ctx ends before, the rest is lost, the
// context of running deliveries ends, and Close returns an error. Events that are recorded after Close are lost.
func (b *Batch) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
	defer b.stop()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
	}
	b.stop()
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.waiting); n > 0 {
		return fmt.Errorf("audit: %d events are lost: %w", n, ctx.Err())
	}
	return ctx.Err()
}

// run delivers events until the Batch is closed or ctx ends.
func (b *Batch) run(ctx context.Context) {
	defer close(b.done)
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	places := make(chan struct{}, b.opts.Parallel)
	for b.collect(ctx) {
		if b.limit != nil && b.limit.Wait(ctx) != nil {
			return
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		events := b.take()
		deliveries.Go(func() {
			defer func() { <-places }()
			b.deliver(ctx, events)
		})
	}
}

// collect waits until there are events to deliver. It returns false if there will be none.
func (b *Batch) collect(ctx context.Context) bool {
	var over <-chan time.Time // when the first event has waited long enough
	for {
		b.mu.Lock()
		n, closed := len(b.waiting), b.closed
		b.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return false
		case closed || n >= b.opts.MaxSize:
			return n > 0
		case n > 0 && over == nil:
			timer := time.NewTimer(b.opts.MaxWait)
			defer timer.Stop()
			over = timer.C
		}
		select {
		case <-over:
			return true
		case <-b.changed:
		case <-ctx.Done():
		}
	}
}

// take returns the events of the next delivery.
func (b *Batch) take() []*Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(b.waiting), b.opts.MaxSize) {
		if bytes += memory(b.waiting[n]); n > 0 && bytes > maxDelivery {
			break
		}
		n++
	}
	events := b.waiting[:n:n]
	b.waiting = slices.Clone(b.waiting[n:])
	return events
}

// maxDelivery bounds the memory of the events of a delivery, in bytes, if there is more than one.
const maxDelivery = 8 << 20

func (b *Batch) deliver(ctx context.Context, events []*Event) {
	if err := b.sink.Record(ctx, events...); err != nil {
		b.opts.Failed(err, len(events))
		if f := b.lost.Load(); f != nil {
			(*f)(err, len(events))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		b.bytes -= memory(e)
	}
}

// memory returns about how many bytes an event takes until it is delivered: in memory, and once more encoded.
func memory(e *Event) int {
	n := 500 + len(e.RequestURI) + len(e.UserAgent) + len(e.RequestObject) + len(e.ResponseObject) + e.User.size() + e.ImpersonatedUser.size()
	for _, ip := range e.SourceIPs {
		n += len(ip)
	}
	for key, value := range e.Annotations {
		n += len(key) + len(value)
	}
	if o := e.ObjectRef; o != nil {
		n += len(o.Name) + len(o.Namespace) + len(o.UID) + len(o.ResourceVersion)
	}
	if s := e.ResponseStatus; s != nil {
		n += len(s.Message)
		if s.Details != nil {
			for _, c := range s.Details.Causes {
				n += len(c.Field) + len(c.Message) + len(c.Type)
			}
		}
	}
	return 2 * n
}

// size returns the bytes of the texts of a user, and of what refers to them.
func (u *UserInfo) size() int {
	if u == nil {
		return 0
	}
	const reference = 16
	n := len(u.Username) + len(u.UID)
	for _, g := range u.Groups {
		n += len(g) + reference
	}
	for key, values := range u.Extra {
		n += len(key) + 2*reference
		for _, v := range values {
			n += len(v) + reference
		}
	}
	return n
}
