package accounts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// work is a set of keys of objects that wait for work. A key is in it once, and leaves it when the work finds that the object does not exist
// any more: while work fails, it has at most one key for each object that exists. All methods may be called concurrently.
type work[K comparable] struct {
	wake chan struct{} // capacity 1; has a value if keys were added

	mu   sync.Mutex // guards keys
	keys map[K]struct{}
}

const (
	retryLeast = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

func newWork[K comparable]() *work[K] {
	return &work[K]{wake: make(chan struct{}, 1), keys: map[K]struct{}{}}
}

// add adds a key. It does not block.
func (w *work[K]) add(key K) {
	w.mu.Lock()
	w.keys[key] = struct{}{}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take removes all keys and returns them.
func (w *work[K]) take() map[K]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.keys
	w.keys = map[K]struct{}{}
	return taken
}

// run calls do for each key, until ctx ends. Keys for which do fails are tried again after a pause, which grows with each round that
// fails, or together with new keys.
func (w *work[K]) run(ctx context.Context, do func(context.Context, K) error, log *zap.Logger) {
	pauses := background.Doubling(retryLeast, retryMost)
	panics := background.NewPanics(log, "work on service accounts panicked")
	for {
		var retry <-chan time.Time
		failed := w.round(ctx, do, panics, log)
		if failed {
			retry = time.After(pauses.Step())
		} else {
			pauses = background.Doubling(retryLeast, retryMost)
		}
		select {
		case <-w.wake:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// round calls do for each key, and adds those again for which it fails.
func (w *work[K]) round(ctx context.Context, do func(context.Context, K) error, panics *background.Panics, log *zap.Logger) (failed bool) {
	for key := range w.take() {
		err := guarded(ctx, do, key, panics)
		if err == nil || ctx.Err() != nil {
			continue
		}
		failed = true
		log.Debug("work on service accounts is tried again", zap.Any("of", key), zap.Error(err))
		w.mu.Lock()
		w.keys[key] = struct{}{}
		w.mu.Unlock()
	}
	return failed
}

// guarded calls do, and returns a panic of the program's plug-ins as an error.
func guarded[K any](ctx context.Context, do func(context.Context, K) error, key K, panics *background.Panics) (err error) {
	defer panics.Caught(&err)
	return do(ctx, key)
}

// typed returns a registry of a resource of the core group, for writes as a user.
func typed[T runtime.Object](h *server.Host, resource string, as *authn.User) (*registry.Typed[T], error) {
	reg, err := h.Registry(schema.GroupResource{Resource: resource})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	return registry.For[T](reg, as)
}
