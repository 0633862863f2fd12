package etcd

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
	"google.golang.org/grpc"
)

// Backend is a storage.Backend in an etcd cluster, which supports TTLs; make one with [Open]. It is also a storage.Compactor,
// Historian, Replayer, Stater, Healther, Readier and Raiser. All methods may be called concurrently.
//
// A TTL is a lease (https://etcd.io/docs/v3.6/learning/api/#lease-api). As in kube-apiserver, many keys share one lease. A
// TTL is rounded up to seconds, and etcd makes no lease shorter than about two seconds. A key may live longer than its TTL,
// by up to a twentieth of it and at most Options.LeaseReuse. etcd deletes some seconds late, and the loss of its leader may
// double the time.
//
// A Backend has three connections, spread over the endpoints: for single keys, counts and commits; for ranges; and for
// watches. So a large range does not delay the others. Proxies in the environment are not used. Each watch has its own HTTP/2
// stream. If a reader is slow, etcd waits for it, so that the memory that this process uses for the stream is bounded.
type Backend struct {
	opts   Options
	layout layout

	small   *link // for single keys, counts, commits
	large   *link // for ranges
	watches *link

	callOptions []grpc.CallOption // of every request

	leases    leases
	sizes     sizes
	compacted atomic.Int64 // history below it is known to be compacted

	ctx    context.Context // ends with Close, as the compaction loop does
	cancel context.CancelFunc

	mu     sync.RWMutex // guards the change from open to closed: operations that Close waits for begin under its read lock
	closed atomic.Bool  // written with mu held
	feeds  map[*feed]struct{}

	calls   sync.WaitGroup // counted by begin
	running sync.WaitGroup // goroutines of feeds, and the compaction loop
	once    sync.Once      // closes
	closing error          // error of closing the connections; set by once
}

var (
	_ storage.Backend   = (*Backend)(nil)
	_ storage.Compactor = (*Backend)(nil)
	_ storage.Historian = (*Backend)(nil)
	_ storage.Replayer  = (*Backend)(nil)
	_ storage.Stater    = (*Backend)(nil)
	_ storage.Healther  = (*Backend)(nil)
	_ storage.Readier   = (*Backend)(nil)
	_ storage.Raiser    = (*Backend)(nil)
)

// Open connects to an etcd. First it reads the status of every endpoint. One endpoint that answers is enough. None may be an
// etcd older than 3.5.13 (whose progress notifications can be wrong, https://github.com/etcd-io/etcd/issues/17507) or of
// another cluster. Errors name the endpoint, the cause and what to do, and are returned as soon as the cause is clear: no
// process listens there, it is no etcd, TLS does not fit, the user or password is wrong. Open stops waiting for an endpoint
// that does not answer after Options.DialTimeout. Open writes nothing. ctx is for opening only; the caller closes the
// Backend.
func Open(ctx context.Context, opts Options) (*Backend, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	endpoints, config, err := parseEndpoints(opts)
	if err != nil {
		return nil, err
	}
	if err := examine(ctx, opts, endpoints, config); err != nil {
		return nil, err
	}
	b := &Backend{
		opts: opts, layout: newLayout(opts.Prefix), callOptions: callOptions(), leases: newLeases(opts), feeds: map[*feed]struct{}{},
		sizes: sizes{byTo: map[string]sizing{}},
	}
	if err := b.connect(ctx, endpoints, config); err != nil {
		return nil, err
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if opts.CompactionInterval > 0 {
		b.running.Go(b.compactor)
	}
	return b, nil
}

// At returns a storage.Opener for an etcd at the endpoints, with otherwise zero Options.
func At(endpoints ...string) storage.Opener { return With(Options{Endpoints: endpoints}) }

// With returns a storage.Opener for an etcd.
func With(opts Options) storage.Opener {
	return func(ctx context.Context) (storage.Backend, error) {
		b, err := Open(ctx, opts)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Close implements storage.Backend. Reads in progress fail with ErrClosed.
func (b *Backend) Close() error {
	b.once.Do(func() {
		b.mu.Lock()
		b.closed.Store(true)
		for f := range b.feeds {
			f.cancel(storage.ErrClosed)
		}
		b.mu.Unlock()
		b.cancel()
		b.calls.Wait()
		b.closing = b.disconnect()
		b.running.Wait()
	})
	return b.closing
}

// begin counts a call that Close has to wait for; b.calls.Done ends the call.
func (b *Backend) begin() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed.Load() {
		return storage.ErrClosed
	}
	b.calls.Add(1)
	return nil
}

// refuse returns err, or ErrClosed if the backend is closed.
func (b *Backend) refuse(err error) error {
	if b.closed.Load() {
		return storage.ErrClosed
	}
	return err
}
