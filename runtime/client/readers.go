package client

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ReadersOptions refines NewReaders. The zero ReadersOptions is usable.
type ReadersOptions struct {
	// Scheme says which kinds have Go types, and which versions convert to one another. nil: objects are
	// *unstructured.Unstructured. The objects of a kind that the Scheme does not know are unstructured, too.
	Scheme *runtime.Scheme
	// MaxObjects and MaxBytes bound what is kept of one kind: objects, and bytes of their JSON. 0 is 100,000 objects and
	// 256 MiB. A kind with more is not kept: its reads fail with ErrNotReady until it has less.
	MaxObjects, MaxBytes int
	// MaxKinds bounds the kinds that are read; 0 is 1,000. The reads of any other kind fail with ErrNotReady.
	MaxKinds int
	// Changes is how many changes of one kind are kept for Changes and Exactly; 0 is 1,000. ChangesBytes bounds the JSON of the
	// objects that are kept only for these; 0 is 16 MiB.
	Changes, ChangesBytes int
	// PageSize is how many objects a page of a list has; 0 is 500. Pages that are longer than the Client's MaxAnswer are asked
	// for again with half the objects.
	PageSize int
	// Pages lists in pages also where the server offers to send the objects at the beginning of the watch.
	Pages bool
	// Wait bounds how long a read waits for the first objects, and for a revision; 0 is 10 seconds.
	Wait time.Duration
	// Refresh is how long a read waits for a revision until the server is asked for a list, since a watch of a kind that does
	// not change says nothing. 0 is 100 milliseconds.
	Refresh time.Duration
	// Stale is how long the server may be away until Ready says so. 0 is 30 seconds; a negative duration is at once.
	Stale time.Duration
	// BackoffMin and BackoffMax bound the pause before what failed is tried again: it doubles from failure to failure.
	// 0 is 100 milliseconds and 30 seconds.
	BackoffMin, BackoffMax time.Duration
	// Hooks are called for what happens to the readers.
	Hooks ReaderHooks
}

// ReaderHooks are functions that Readers call synchronously; any of them may be nil. They must return fast, must not call the
// Reader, and may be called concurrently.
type ReaderHooks struct {
	// Retry is called when a list or watch failed, which is tried again after a pause.
	Retry func(kind schema.GroupVersionKind, err error, after time.Duration)
	// Loaded is called when a list or the beginning of a watch has brought all objects.
	Loaded func(kind schema.GroupVersionKind, revision int64, objects int)
}

func (o ReadersOptions) withDefaults() ReadersOptions {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&o.MaxObjects, 100_000}, {&o.MaxBytes, 256 << 20}, {&o.MaxKinds, 1000},
		{&o.Changes, 1000}, {&o.ChangesBytes, 16 << 20}, {&o.PageSize, 500},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Wait, 10 * time.Second}, {&o.Refresh, 100 * time.Millisecond},
		{&o.BackoffMin, 100 * time.Millisecond}, {&o.BackoffMax, 30 * time.Second},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	o.BackoffMax = max(o.BackoffMax, o.BackoffMin)
	if o.Stale == 0 {
		o.Stale = 30 * time.Second
	}
	if o.Hooks.Retry == nil {
		o.Hooks.Retry = func(schema.GroupVersionKind, error, time.Duration) {}
	}
	if o.Hooks.Loaded == nil {
		o.Hooks.Loaded = func(schema.GroupVersionKind, int64, int) {}
	}
	return o
}

// Readers are the Readers of another server. All methods may be called concurrently. Make Readers with [NewReaders], and close
// them before their Client.
type Readers struct {
	client *Client
	opts   ReadersOptions
	life   context.Context
	end    context.CancelFunc

	mu     sync.Mutex // guards closed and kinds
	closed bool
	kinds  map[schema.GroupVersionKind]*reader
	runs   sync.WaitGroup // Add under mu, while not closed
}

var _ runtime.Readers = (*Readers)(nil)

// NewReaders returns Readers of the server of a Client. Nothing is asked of the server until a kind is read.
func NewReaders(c *Client, o ReadersOptions) *Readers {
	r := &Readers{client: c, opts: o.withDefaults(), kinds: map[schema.GroupVersionKind]*reader{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Close ends all lists and watches, waits for their goroutines, and forgets the objects: reads fail with ErrNotReady. Calling
// it again has no effect. It does not close the Client.
func (r *Readers) Close() {
	r.mu.Lock()
	r.closed = true
	kinds := r.kinds
	r.kinds = nil
	r.mu.Unlock()
	r.end()
	r.runs.Wait()
	for _, one := range kinds {
		one.forget(fmt.Errorf("the readers are closed"))
	}
}

// Reader implements runtime.Readers. A kind of the Scheme is read in the version of its hub where the server serves it, and
// otherwise in another version of the Scheme; a kind that the Scheme does not know in the version that is named. Lists and
// watches begin with the first call of a method of the Reader, and go on until Close.
func (r *Readers) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	if r.opts.Scheme != nil {
		if hub, ok := r.opts.Scheme.Hub(kind.GroupKind()); ok {
			kind = hub
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, ok := r.kinds[kind]; ok {
		return one
	}
	one := newReader(r, kind)
	switch {
	case r.closed:
		one.forget(fmt.Errorf("the readers are closed"))
		one.started.Do(func() {})
	case len(r.kinds) >= r.opts.MaxKinds:
		one.forget(fmt.Errorf("%d other kinds are read; raise ReadersOptions.MaxKinds", len(r.kinds)))
		one.started.Do(func() {})
	default:
		r.kinds[kind] = one
	}
	return one
}

// KindOf implements runtime.Readers with the kinds of the Scheme.
func (r *Readers) KindOf(t reflect.Type) (kind schema.GroupVersionKind, ok bool) {
	if r.opts.Scheme == nil || t == nil || t.Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, false
	}
	obj, ok := reflect.New(t).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	k := r.opts.Scheme.KindOf(obj)
	if k == nil {
		return schema.GroupVersionKind{}, false
	}
	return r.opts.Scheme.Hub(k.GVK.GroupKind())
}

// pauses are how long to wait before what failed is tried again: between half of what doubles from failure to failure and all
// of it.
func (o *ReadersOptions) pauses() wait.Backoff {
	return wait.Backoff{Duration: o.BackoffMin / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: o.BackoffMax / 2}
}
