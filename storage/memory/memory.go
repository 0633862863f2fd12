package memory

import (
	"context"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/tidwall/btree"
)

// Options are the options of a Backend. The zero Options is valid.
type Options struct {
	// Window is how long replaced states can be read and watched; 0 (or less) is five minutes.
	Window time.Duration
	// WindowBytes bounds the memory of the changes in the window, whatever their age; 0 (or less) is 64 MiB. The newest
	// change is always kept.
	WindowBytes int64
}

func (o Options) withDefaults() Options {
	if o.Window <= 0 {
		o.Window = 5 * time.Minute
	}
	if o.WindowBytes <= 0 {
		o.WindowBytes = 64 << 20
	}
	return o
}

// Backend is a storage.Backend in memory, which supports TTLs. It is also a storage.Compactor, Historian, Stater, Knower,
// Holder, Healther and Loader. Make one with [New].
type Backend struct {
	opts   Options
	closed chan struct{} // closed by Close

	mu       sync.RWMutex // guards all below, and the state of feeds
	done     bool         // Close was called
	loaded   bool         // Load was called
	revision int64        // revision of the latest commit
	items    btree.Map[string, *item]
	dead     int // number of items whose current version is a deletion
	log      changelog
	idle     idle
	expiry   expiry

	expiring sync.WaitGroup // counts the expiry timer, from when it is set until its run has ended
}

// New returns an empty backend, at revision 1.
func New(o Options) *Backend {
	return &Backend{
		opts:     o.withDefaults(),
		closed:   make(chan struct{}),
		revision: firstRevision,
		log:      changelog{floor: firstRevision},
	}
}

// Open returns an Opener that makes a new, empty backend each time.
func Open() storage.Opener {
	return func(context.Context) (storage.Backend, error) { return New(Options{}), nil }
}

// Close implements storage.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	if !b.done {
		b.done = true
		close(b.closed)
		b.disarm()
		b.items.Clear()
		b.expiry.due = nil
		b.idle.nudgeAll()
		b.log, b.idle = changelog{floor: b.revision}, idle{}
	}
	b.mu.Unlock()
	b.expiring.Wait()
	return nil
}

// Holds implements storage.Holder.
func (*Backend) Holds() bool { return true }

// Health implements storage.Healther. A backend in memory works until it is closed.
func (b *Backend) Health(context.Context) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.done {
		return storage.ErrClosed
	}
	return nil
}

// Known implements storage.Knower.
func (b *Backend) Known() (revision int64, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.revision, !b.done
}

// Oldest implements storage.Historian.
func (b *Backend) Oldest(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.done {
		return 0, storage.ErrClosed
	}
	return b.log.floor, nil
}
