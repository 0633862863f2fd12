package etcd

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
	"google.golang.org/grpc"
)

// Backend is a storage.Backend in an etcd cluster; make one with [Open]. It is also a storage.Compactor, Historian,
// Replayer, Stater, Healther, Readier and Raiser, and it supports TTL. All methods may be called concurrently.
type Backend struct {
	opts   Options
	layout layout

	small   *link // single keys, counts, commits
	large   *link // ranges
	watches *link

	callOptions []grpc.CallOption // of every request

	leases    leases
	sizes     sizes
	compacted atomic.Int64 // history below is known to be gone

	ctx    context.Context // ends with Close: the life of the compaction loop
	cancel context.CancelFunc

	mu     sync.RWMutex // guards the step from open to closed: what Close waits for begins under its read lock
	closed atomic.Bool  // written with mu held
	feeds  map[*feed]struct{}

	calls   sync.WaitGroup // what begin counts
	running sync.WaitGroup // goroutines of feeds, and the compaction loop
	once    sync.Once      // closes
	closing error          // what closing the connections said; set by once
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

// Open connects to an etcd. Before, it asks every endpoint who it is; one that answers is enough, but none may be an
// etcd older than 3.5.13 (whose progress notifications can be wrong, https://github.com/etcd-io/etcd/issues/17507) or
// of another cluster. Errors name the endpoint, the cause and what to do, and come as soon as the cause is clear: nothing
// listens there, it is no etcd, TLS does not fit, the user or password is wrong. An endpoint that does not answer
// at all is given up after Options.DialTimeout. Open writes nothing. ctx is for opening only; the caller closes the
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

// At opens an etcd with the zero Options when a server starts.
func At(endpoints ...string) storage.Opener { return With(Options{Endpoints: endpoints}) }

// With opens an etcd when a server starts.
func With(opts Options) storage.Opener {
	return func(ctx context.Context) (storage.Backend, error) {
		b, err := Open(ctx, opts)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Close implements storage.Backend. Reads under way fail with ErrClosed.
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

// begin counts a call that Close has to wait for; b.calls.Done ends it.
func (b *Backend) begin() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed.Load() {
		return storage.ErrClosed
	}
	b.calls.Add(1)
	return nil
}

// refuse returns why a call cannot be made, or that the backend is closed.
func (b *Backend) refuse(err error) error {
	if b.closed.Load() {
		return storage.ErrClosed
	}
	return err
}
