package runtime

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader reads the objects of one kind, for policy, admission plug-ins and strategies. Most callers need only Get and List;
// Changes and Changed are for callers that keep an index of the objects. The objects may be in the storage of this server or on
// another server.
//
// The objects that a Reader returns are shared and must not be changed; a caller that needs a different object copies one. They
// are decoded once for all readers, in the hub version of the kind, with defaults and resourceVersion set.
//
// A Reader skips authentication, authorization, admission and flow control. Its errors are apimachinery's StatusErrors (NotFound
// for an object that does not exist), the context's error, and [ErrNotReady]. All methods may be called concurrently.
//
// If the schema of a kind changes while it is served, a Reader returns the objects that it has until the new ones are loaded.
// Then Changed returns another Generation, and Changes since an earlier revision returns all objects. After the kind is no longer
// served, every method that returns an error returns one that wraps ErrNotReady.
//
// Some kinds are not kept in memory: kinds without a cache, and kinds with a Storage of their own. Each read of such a kind reads
// the store. Ready then returns nil if the store answers. Changed returns either the revision of the whole store, which also
// grows with writes to other kinds, or always 0.
//
// A Reader of another server returns the objects that it has while that server cannot be reached; Ready then returns an error
// that does not wrap ErrNotReady. The Reader does not detect that a schema changed on that server: an object stays as that server
// sent it when the object was last written, or when all objects were loaded.
type Reader[T Object] interface {
	// Get returns one object. namespace is "" for a cluster-scoped kind, and is not empty for any other kind.
	Get(ctx context.Context, namespace, name string, at Freshness) (T, error)
	// List returns the objects that q selects, in the order of their keys, as in a LIST request. The slice is the caller's own.
	List(ctx context.Context, q Query) (Listed[T], error)
	// Changes returns the last state of each object that changed after the revision since, up to the state that at selects. since
	// is the Revision of an earlier Listed or Changes. Changes returns all objects, with Reset set, if since is 0, is too long
	// ago, or was returned with objects of another Generation. Changes does not wait for changes.
	//
	// An error that wraps [ErrUnreadable] is returned together with the changes: an object that cannot be decoded is Deleted in
	// them. This error is returned once for each such object. A caller that can do without these objects goes on; any other
	// caller fails.
	Changes(ctx context.Context, since int64, at Freshness) (Changes[T], error)
	// Changed returns the newest known change to the kind: a Cached read shows that change, or a later state. A call costs next
	// to nothing, so that an index of the objects can be checked at every request.
	//
	// An index is current if Changed returns the same LastChange as before the index was read, and if its Revision is not 0. The
	// Revision is 0 as long as no objects are loaded, also while all objects are loaded again. Then no changes are known, not
	// even those that this server has acknowledged, and only a Cached read returns the current state. The Revision may become
	// smaller if the store was set back to an older state, so only equality proves that nothing has changed. (Changed does not
	// show that a store was set back if it has reached the same revision again between two calls.) An index of several kinds
	// keeps the LastChange of each kind: the highest Revision may stay the same while another kind has changed.
	Changed() LastChange
	// Ready returns nil if Cached reads can be answered from memory, and otherwise an error with the reason. If the objects are
	// not loaded yet, Ready starts to load them and does not wait.
	Ready(ctx context.Context) error
}

// LastChange describes the newest known change to a kind. The zero LastChange means that no change is known.
type LastChange struct {
	// Revision is the revision of the newest write to the kind.
	Revision int64
	// Generation changes when all objects were decoded again although none was written: with another schema, other defaults or
	// another Go type. It is not a revision: two Generations of one kind can only be compared for equality.
	Generation int64
}

// ErrNotReady is wrapped by the errors of a Reader whose objects are not yet loaded, or no longer loaded, or whose kind is not
// served.
var ErrNotReady = errors.New("the objects cannot be read yet")

// ErrUnreadable is wrapped by errors about objects whose stored bytes cannot be decoded.
var ErrUnreadable = errors.New("stored objects cannot be read")

// Freshness selects the states of the store that a read may show. The zero Freshness is Cached.
//
//   - Cached: a state that includes every write to the kind which this server acknowledged before the call. Writes of other
//     servers are included once their event has arrived. The read is answered from memory if the kind is kept there: see
//     [Reader].
//   - [AtLeast]: a state at the given revision or later. The read waits for that state, and times out as a request would.
//   - [Live]: the most recent state of the store, by a linearizable read.
//   - [Exactly]: the state at the given revision. The read waits for it as with AtLeast. It is for several kinds whose objects
//     only have a meaning together and must be read at one revision: call Changed for each kind, and use the highest Revision.
//     For a kind whose Revision is 0, use the Revision of a Cached read instead. If the state is no longer retained, the read
//     returns a StatusError with the reason Expired.
//
// In a Reader of another server, Cached and AtLeast refer to the events that have arrived from that server. A write that this
// server makes on that server is shown once its event has arrived.
type Freshness struct {
	mode     freshness
	revision int64
}

type freshness int

const (
	cached freshness = iota
	atLeast
	exactly
	live
)

// AtLeast returns the Freshness of a state at a revision or later.
func AtLeast(revision int64) Freshness { return Freshness{atLeast, revision} }

// Exactly returns the Freshness of the state at a revision.
func Exactly(revision int64) Freshness { return Freshness{exactly, revision} }

// Live returns the Freshness of the most recent state.
func Live() Freshness { return Freshness{mode: live} }

// IsLive reports whether f was made by Live.
func (f Freshness) IsLive() bool { return f.mode == live }

// AtLeast returns the revision of a Freshness that was made by the function AtLeast; ok is false for any other.
func (f Freshness) AtLeast() (revision int64, ok bool) { return f.revision, f.mode == atLeast }

// Exactly returns the revision of a Freshness that was made by the function Exactly; ok is false for any other.
func (f Freshness) Exactly() (revision int64, ok bool) { return f.revision, f.mode == exactly }

// String returns f in words, for errors and logs.
func (f Freshness) String() string {
	switch f.mode {
	case atLeast:
		return fmt.Sprintf("at least %d", f.revision)
	case exactly:
		return fmt.Sprintf("exactly %d", f.revision)
	case live:
		return "live"
	}
	return "cached"
}

// Query selects objects. The zero Query selects all objects, with Cached freshness.
type Query struct {
	// Namespace is the namespace of the objects; "" selects every namespace.
	Namespace string
	// Labels and Fields select by labels and by selectable fields; nil selects all objects. The cost of a query for one value of
	// an indexed field or label (IndexFields and IndexLabels of server.KindOptions) grows with the number of objects found; any
	// other query examines every object.
	Labels labels.Selector
	Fields fields.Selector
	// At is the freshness of the state that is read.
	At Freshness
}

// Listed holds the objects that a Query selected, in one state.
type Listed[T Object] struct {
	Revision int64 // the revision of the state
	Items    []T   // the objects that were selected
}

// Changes holds the changes to a kind between two states.
type Changes[T Object] struct {
	Revision int64 // the revision of the later state: pass it as since in the next call
	// Reset means that the single changes are not known: All holds all objects, and every other object that the caller has no
	// longer exists.
	Reset bool
	// All has one entry for each object that changed, in no particular order; the slice is the caller's own.
	All []Change[T]
}

// Change is the last state of an object that changed.
type Change[T Object] struct {
	Namespace, Name string // name the object
	Object          T      // the zero T if Deleted is set
	Deleted         bool   // the object no longer exists
}

// Readers returns the Readers of the kinds of one server. A server, the call of a registry and the request of an admission
// plug-in implement it. Its methods may be called concurrently, and cost next to nothing.
type Readers interface {
	// Reader returns the Reader of a kind; any version of the kind may be named. The objects are of the hub version: they have
	// the kind's Go type, or are *unstructured.Unstructured. Reader never returns nil. While a kind is not served, the methods of
	// its Reader return errors that wrap ErrNotReady.
	Reader(kind schema.GroupVersionKind) Reader[Object]
	// KindOf returns the hub of the kind whose Go type is the struct t; ok is false if no such kind is served.
	KindOf(t reflect.Type) (kind schema.GroupVersionKind, ok bool)
}

// Read returns the Reader of the kind whose hub version has the Go type T:
//
//	airport, err := runtime.Read[*Airport](call).Get(ctx, "", "muc", runtime.Freshness{})
//
// Read never returns nil: if there is no such kind, every method of the Reader returns the error.
func Read[T Object](from Readers) Reader[T] {
	t := reflect.TypeFor[T]()
	if from == nil {
		return noReader[T]{fmt.Errorf("reader of %v: there is nothing to read from: %w", t, ErrNotReady)}
	}
	if t.Kind() != reflect.Pointer {
		return noReader[T]{fmt.Errorf("reader of %v: want a pointer to the kind's Go type; a kind without one is read by ReadKind", t)}
	}
	kind, ok := from.KindOf(t.Elem())
	if !ok {
		return noReader[T]{fmt.Errorf("reader of %v: no kind of that Go type is served: %w", t, ErrNotReady)}
	}
	return TypedReader[T](from.Reader(kind))
}

// ReadKind returns the Reader of a kind that is known only at run time. [Readers].Reader describes the Go type of its objects.
func ReadKind(from Readers, kind schema.GroupVersionKind) Reader[Object] {
	if from == nil {
		return noReader[Object]{fmt.Errorf("reader of %s: there is nothing to read from: %w", kind, ErrNotReady)}
	}
	return from.Reader(kind)
}

// TypedReader returns a Reader with the objects of r as Go type T. Its methods return an error for an object of another type.
func TypedReader[T Object](r Reader[Object]) Reader[T] { return typedReader[T]{r} }

type typedReader[T Object] struct{ of Reader[Object] }

// typed returns obj as T, and the zero T if obj is nil.
func typed[T Object](obj Object) (T, error) {
	t, ok := obj.(T)
	if !ok && obj != nil {
		return t, fmt.Errorf("reader of %v: the objects of the kind are %T", reflect.TypeFor[T](), obj)
	}
	return t, nil
}

func (r typedReader[T]) Get(ctx context.Context, namespace, name string, at Freshness) (T, error) {
	obj, err := r.of.Get(ctx, namespace, name, at)
	if err != nil {
		var none T
		return none, err
	}
	return typed[T](obj)
}

func (r typedReader[T]) List(ctx context.Context, q Query) (Listed[T], error) {
	l, err := r.of.List(ctx, q)
	if err != nil {
		return Listed[T]{}, err
	}
	out := Listed[T]{Revision: l.Revision, Items: make([]T, len(l.Items))}
	for i, obj := range l.Items {
		if out.Items[i], err = typed[T](obj); err != nil {
			return Listed[T]{}, err
		}
	}
	return out, nil
}

func (r typedReader[T]) Changes(ctx context.Context, since int64, at Freshness) (Changes[T], error) {
	c, unreadable := r.of.Changes(ctx, since, at)
	if unreadable != nil && !errors.Is(unreadable, ErrUnreadable) {
		return Changes[T]{}, unreadable
	}
	out := Changes[T]{Revision: c.Revision, Reset: c.Reset, All: make([]Change[T], len(c.All))}
	for i, one := range c.All {
		obj, err := typed[T](one.Object)
		if err != nil {
			return Changes[T]{}, err
		}
		out.All[i] = Change[T]{Namespace: one.Namespace, Name: one.Name, Object: obj, Deleted: one.Deleted}
	}
	return out, unreadable
}

func (r typedReader[T]) Changed() LastChange             { return r.of.Changed() }
func (r typedReader[T]) Ready(ctx context.Context) error { return r.of.Ready(ctx) }

// noReader is a Reader whose methods return err.
type noReader[T Object] struct{ err error }

func (r noReader[T]) Get(context.Context, string, string, Freshness) (none T, err error) {
	return none, r.err
}
func (r noReader[T]) List(context.Context, Query) (Listed[T], error) { return Listed[T]{}, r.err }
func (r noReader[T]) Changes(context.Context, int64, Freshness) (Changes[T], error) {
	return Changes[T]{}, r.err
}
func (r noReader[T]) Changed() LastChange         { return LastChange{} }
func (r noReader[T]) Ready(context.Context) error { return r.err }
