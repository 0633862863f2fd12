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

// ReadersOptions are the options of [NewReaders]. The zero ReadersOptions is usable.
type ReadersOptions struct {
	// Scheme has the Go types of kinds and the conversions between versions. Without a Scheme, objects are
	// *unstructured.Unstructured, and so are the objects of kinds that are not in the Scheme.
	Scheme *runtime.Scheme
	// MaxObjects and MaxBytes limit what is kept of one kind: objects, and bytes of their JSON. 0 means 100,000 objects and 256
	// MiB. A larger kind is not kept: its reads fail with ErrNotReady until it is smaller.
	MaxObjects, MaxBytes int
	// MaxKinds limits the kinds that are read; 0 means 1,000. Reads of any further kind fail with ErrNotReady.
	MaxKinds int
	// Changes limits the changes of one kind that are kept for the method Changes and for Exactly; 0 means 1,000. ChangesBytes
	// limits the JSON of objects that are kept only for these changes; 0 means 16 MiB.
	Changes, ChangesBytes int
	// PageSize is the number of objects in a page of a list; 0 means 500. If a page is longer than the Client's MaxAnswer, it is
	// requested again with half the objects.
	PageSize int
	// Pages makes the Readers list in pages even if the server can send the objects at the beginning of the watch.
	Pages bool
	// Wait limits the time that a read waits for the first objects or for a revision; 0 means 10 seconds.
	Wait time.Duration
	// Refresh is the time that a read waits for a revision before the objects are listed again, because a watch without changes
	// sends no events. 0 means 100 milliseconds.
	Refresh time.Duration
	// Stale is the time that the server may be unreachable before Ready returns an error. 0 means 30 seconds; a negative duration
	// means at once.
	Stale time.Duration
	// BackoffMin and BackoffMax are the bounds of the pause after a failure, which doubles with each failure. 0 means 100
	// milliseconds and 30 seconds.
	BackoffMin, BackoffMax time.Duration
	// Hooks are called for events in the readers.
	Hooks ReaderHooks
}

// ReaderHooks are functions that Readers call synchronously; any of them may be nil. They must return quickly, must not call the
// Reader, and may be called concurrently.
type ReaderHooks struct {
	// Retry is called when a list or watch has failed and will be tried again after a pause.
	Retry func(kind schema.GroupVersionKind, err error, after time.Duration)
	// Loaded is called when a list or the beginning of a watch has delivered all objects.
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

// Readers are the Readers of the kinds of another server. Use [NewReaders] to make Readers, and close them before their Client.
// All methods may be called concurrently. The client needs permission to list and watch each resource in all namespaces, to get
// it for Live, and to discover its group version.
//
// The first call of a method of a Reader starts one goroutine, which lists and watches the kind, and waits for the objects, which
// are decoded once. After that:
//
//   - Cached reads are answered from memory. While the server cannot be reached or the objects are listed again, they return the
//     old objects. If that takes longer than ReadersOptions.Stale, Ready returns an [*OutageError]: the objects are available,
//     but may be out of date. A caller that must not use old objects calls Ready.
//   - AtLeast waits for the watch, at most ReadersOptions.Wait. The watch of a kind that does not change may send nothing for
//     about a minute, so a read that waits makes the Reader list the objects again, which costs a list.
//   - Exactly is answered from a log of changes with a limited size. States from before the last list are Expired.
//   - Live sends a request to the server, and decodes the objects of the answer: they are not the objects in memory.
//   - Changes uses the log too. The log is kept when the objects are listed again, so that no deletion is lost.
//   - The Revision that Changed returns may be later than the newest change, and may grow without a change, because a list shows
//     what has changed but not when. After the first list the Revision is that of the list. After a later list that found changes
//     it is that of the later list. After dropped objects were loaded again it grows even if they are the same. An index that is
//     compared with Changed is then rebuilt without need. Changed never misses a change that the Reader has received.
//   - Field selectors other than metadata.name and metadata.namespace are evaluated by the server, whatever the freshness. With
//     Exactly they are an error.
//
// If the storage of a server is replaced, its revisions may become lower. The Readers follow: revisions then go back, and Changes
// since an older revision returns Reset. A kind that is no longer served, or is larger than ReadersOptions.MaxObjects or
// MaxBytes, is dropped: its reads fail with runtime.ErrNotReady until that changes. Reads also fail with runtime.ErrNotReady if
// an error occurs before the first objects are loaded.
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

// NewReaders returns Readers of the server of a Client. They send no requests until a kind is read.
func NewReaders(c *Client, o ReadersOptions) *Readers {
	r := &Readers{client: c, opts: o.withDefaults(), kinds: map[schema.GroupVersionKind]*reader{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Close ends all lists and watches, waits for their goroutines, and drops the objects: later reads fail with ErrNotReady. A
// second call has no effect. Close does not close the Client.
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

// Reader implements runtime.Readers. A kind of the Scheme is read in its hub version if the server serves it, and otherwise in
// another version of the Scheme. A kind that is not in the Scheme is read in the given version. Lists and watches begin with the
// first call of a method of the Reader, and go on until Close.
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

// pauses returns the pauses after failures: a random part, at least half, of a duration that doubles with each failure.
func (o *ReadersOptions) pauses() wait.Backoff {
	return wait.Backoff{Duration: o.BackoffMin / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: o.BackoffMax / 2}
}
