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

// Reader reads the objects of one kind, for policy, admission plug-ins and strategies. Most need Get and List alone; Changes and
// Changed are for who keeps an index of the objects. Where the objects are, in this
// server's storage or on another server, is the Reader's business.
//
// Objects that a Reader returns are shared: nobody changes them, and a caller that needs another object copies one. They
// are decoded once for all readers, in the hub version of the kind, with defaults and with resourceVersion set.
//
// A Reader skips authentication, authorization, admission and flow control. Its errors are apimachinery's StatusErrors
// (NotFound for an object that does not exist), the context's error, and [ErrNotReady]. All methods may be called
// concurrently.
//
// When the schema of a kind changes while it is served, a Reader goes on with what it has until the new objects are
// loaded: then Changed returns another Generation, and Changes since a revision of before returns all objects. When the kind
// is no longer served, every method returns an error that wraps ErrNotReady.
//
// Some kinds are not kept in memory: those without a cache, and those with a Storage of their own. Each read of such a kind asks
// the store, Ready says whether the store answers, and Changed is the revision of the whole store, which grows with writes to
// other kinds, or always 0. A Reader of another server goes on with what it has while that server cannot be reached; Ready
// then returns an error that does not wrap ErrNotReady. It does not learn of a schema that changes there: an object stays as
// that server sent it when the object was last written, or when all objects were loaded.
type Reader[T Object] interface {
	// Get returns one object. namespace is "" for a cluster-scoped kind, and is not for any other.
	Get(ctx context.Context, namespace, name string, at Freshness) (T, error)
	// List returns the objects that q chooses, in the order in which a LIST shows them: that of their keys. The slice is the
	// caller's own.
	List(ctx context.Context, q Query) (Listed[T], error)
	// Changes returns what has changed after the revision since, up to the state that at asks for: of each object that
	// changed, its last state. since is the Revision of an earlier Listed or Changes; 0, a revision too long ago, and one
	// that was returned with objects of another Generation return all objects and say so in Reset. It does not wait for
	// changes. An error that wraps [ErrUnreadable] comes with the changes: an object that cannot be read is Deleted in
	// them. It is returned once for each such object: a caller that can do without these objects goes on, any other fails.
	Changes(ctx context.Context, since int64, at Freshness) (Changes[T], error)
	// Changed returns the newest change to the kind that is known: a Cached read shows it, or a later one. It costs next
	// to nothing, so that an index of the objects can be checked against it at every request.
	//
	// An index is current if Changed returns what it returned before the index was read, and if the Revision of that is not
	// 0. It is 0 as long as nothing is loaded, also while the objects are loaded anew: then nothing is known of changes,
	// those acknowledged by this server included, and a Cached read says what is current. It may become smaller, when the
	// store was set back to an older state: only equality says that nothing has changed. (A store that was set back and has
	// come to the very revision of before between two looks is not noticed.) An index of several kinds keeps the value of
	// each kind: the highest Revision may be the same while another one has changed.
	Changed() LastChange
	// Ready returns nil when Cached reads can be answered from memory, and otherwise why they cannot. It has the objects
	// loaded if nothing has yet, and does not wait for that.
	Ready(ctx context.Context) error
}

// LastChange says which change to a kind is the newest one that is known. In the zero LastChange none is.
type LastChange struct {
	// Revision is that of the newest write to the kind.
	Revision int64
	// Generation differs when the objects were made anew although none was written: by another schema, with other defaults
	// or of another Go type. It is no revision, and only equality of two Generations of one kind has a meaning.
	Generation int64
}

// ErrNotReady is wrapped by the errors of a Reader whose objects are not loaded, or not any more, or whose kind is not served.
var ErrNotReady = errors.New("the objects cannot be read yet")

// ErrUnreadable is wrapped by errors about objects whose stored bytes cannot be decoded.
var ErrUnreadable = errors.New("stored objects cannot be read")

// Freshness says which states of the store a read may show. The zero Freshness is Cached.
//
//   - Cached: a state that includes every write to the kind which this server has acknowledged before the call. Writes
//     of other servers are shown after their event has arrived. It is answered from memory.
//   - [AtLeast]: a state at that revision or later. It waits for that state, and times out as a request would.
//   - [Live]: the most recent state of the store, by a linearizable read.
//   - [Exactly]: the state at that revision, for which it waits like AtLeast. It is for kinds whose objects mean something
//     only together, which are read at one revision: the highest Revision that Changed returns for each of them, if that
//     is 0 for none. A state that is not retained any more is a StatusError with the reason Expired.
//
// A Reader of another server has Cached and AtLeast from what it has watched so far: writes of this server to that other
// one are shown after their event has arrived.
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

// AtLeast asks for a state at a revision or later.
func AtLeast(revision int64) Freshness { return Freshness{atLeast, revision} }

// Exactly asks for the state at a revision.
func Exactly(revision int64) Freshness { return Freshness{exactly, revision} }

// Live asks for the most recent state.
func Live() Freshness { return Freshness{mode: live} }

// IsLive reports whether f is Live.
func (f Freshness) IsLive() bool { return f.mode == live }

// AtLeast returns the revision that f asks for with the function AtLeast, and whether it does.
func (f Freshness) AtLeast() (revision int64, ok bool) { return f.revision, f.mode == atLeast }

// Exactly returns the revision that f asks for with the function Exactly, and whether it does.
func (f Freshness) Exactly() (revision int64, ok bool) { return f.revision, f.mode == exactly }

// String is for errors and logs.
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

// Query chooses objects. The zero Query chooses all, Cached.
type Query struct {
	// Namespace is where the objects are; "" is every namespace.
	Namespace string
	// Labels and Fields choose by labels and by selectable fields; nil chooses all. A query for one value of an indexed
	// field or label (IndexFields and IndexLabels of the kind) costs what it finds, any other a look at every object.
	Labels labels.Selector
	Fields fields.Selector
	At     Freshness
}

// Listed is the objects that a Query chose, in one state.
type Listed[T Object] struct {
	Revision int64 // of the state
	Items    []T
}

// Changes is what happened to a kind between two states.
type Changes[T Object] struct {
	Revision int64 // of the later state: since of the next call
	// Reset says that what happened is not known: All are all objects, and what the caller knows besides is gone.
	Reset bool
	// All has one entry for each object that changed, in no particular order; the slice is the caller's own.
	All []Change[T]
}

// Change is the last state of an object. Deleted says that there is none; Object is then the zero T.
type Change[T Object] struct {
	Namespace, Name string
	Object          T
	Deleted         bool
}

// Readers gives the Readers of the kinds of one server. A server, the call of a registry and the request of an admission
// plug-in are Readers. It may be asked concurrently, and costs next to nothing.
type Readers interface {
	// Reader returns the Reader of a kind, in whatever version that is named; its objects are of the hub version: of the
	// kind's Go type, or *unstructured.Unstructured. It never returns nil; of a kind that is not served the Reader's methods
	// return errors that wrap ErrNotReady, until it is served.
	Reader(kind schema.GroupVersionKind) Reader[Object]
	// KindOf returns the hub of the kind whose Go type is t, a struct; ok is false if none is served.
	KindOf(t reflect.Type) (kind schema.GroupVersionKind, ok bool)
}

// Read returns the Reader of the kind whose Go type, that of its hub version, is T:
//
//	airport, err := runtime.Read[*Airport](call).Get(ctx, "", "muc", runtime.Freshness{})
//
// It never returns nil: what is wrong is the error of each method.
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

// ReadKind returns the Reader of a kind that is known only at run time; see Readers.Reader for the Go type of its objects.
func ReadKind(from Readers, kind schema.GroupVersionKind) Reader[Object] {
	if from == nil {
		return noReader[Object]{fmt.Errorf("reader of %s: there is nothing to read from: %w", kind, ErrNotReady)}
	}
	return from.Reader(kind)
}

// TypedReader returns r for objects of the Go type T. An object of another type is an error.
func TypedReader[T Object](r Reader[Object]) Reader[T] { return typedReader[T]{r} }

type typedReader[T Object] struct{ of Reader[Object] }

// typed returns obj as T; the zero T for nil.
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

// noReader is a Reader that cannot read.
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
