package storage

import (
	"context"
	"iter"
	"time"
)

// Backend stores bytes under keys. All methods may be called concurrently. Keys are non-empty, contain no NUL byte and are
// ordered bytewise. A backend must:
//
//   - give every commit its own revision from one strictly increasing counter for all keys; the counter is positive even
//     while the store is empty;
//   - make commits linearizable, and durable before anybody sees them: no read, watch or result shows a commit that a crash
//     could still take back, unless the backend was opened in a weaker mode;
//   - never give a revision that was shown to another state: commits that a weaker backend lost in a crash leave a gap in the
//     revisions, and reads and watches at a revision within the gap fail with ErrCompacted;
//   - serve Get and Range at any retained revision, and return [ErrCompacted] below the window (an [*ExpiredError] is an
//     ErrCompacted, and has the oldest revision);
//   - deliver to a watch every change after its start, in order, exactly once.
//
// Slices that a backend returns are shared and must not be changed. Slices given to a backend belong to it from then on.
// After Close every method returns ErrClosed. Any method may return ErrUnavailable when the store cannot be reached.
//
// A backend may implement further interfaces for optional abilities: [Compactor], [Historian], [Replayer], [Stater],
// [Knower], [Holder], [Healther], [Readier], [Sizer], [Loader], [Raiser].
type Backend interface {
	// Get returns the value of key at a revision; 0 is the latest. A missing key is no error: Found is false, and Revision is
	// the revision at which the key was missing. Errors: ErrCompacted, ErrFuture, ErrClosed.
	Get(ctx context.Context, key string, at int64) (GetResult, error)
	// Range returns the values of the keys in [From, To), in key order. Its errors are those of Get.
	Range(ctx context.Context, r Range) (RangeResult, error)
	// Commit changes one key if it is still at the expected revision, and returns when the change is durable. If the key is
	// at another revision, the error is ErrConflict and the result's Current is the value found (Found is false if there is
	// none). After ErrNoSpace and ErrTooLarge the commit has not happened. After ErrUnavailable, ErrClosed or a context error
	// the commit may have happened, may not have happened, or may still happen.
	Commit(ctx context.Context, c Commit) (CommitResult, error)
	// Watch follows the keys that begin with Prefix; "" is every key. Errors: ErrCompacted when changes after From are no
	// longer retained, ErrClosed. A From in the future is accepted: only later changes are delivered. The watch ends when ctx
	// ends or at Close, whichever is first.
	Watch(ctx context.Context, w WatchRange) (Feed, error)
	// Close ends all watches with ErrClosed, waits for commits in progress, and releases the resources of the backend. A
	// second Close does nothing.
	Close() error
}

// KV is one key's value at one revision.
type KV struct {
	Key      string // the key, as the backend stores it
	Value    []byte // shared; must not be changed
	Revision int64  // the revision of the commit that wrote the value
	Stale    bool   // the value should be rewritten by the next update, even one that changes nothing
	Expiring bool   // the value was committed with a TTL
}

// GetResult is the result of Get.
type GetResult struct {
	KV       KV    // the value, if Found
	Found    bool  // whether the key has a value
	Revision int64 // the store's revision at which this result is true
}

// Range is an interval of keys to read. The bounds may be any strings, including strings with a NUL byte. To "" means no
// upper bound. An interval whose To is not after From is empty.
type Range struct {
	From, To string // the interval [From, To)
	At       int64  // the revision to read at; 0 is the latest
	Limit    int    // at most this many values; 0 is all
	// Bytes, if positive, limits the total size of the values without their keys. The last value returned is the one with
	// which the total reaches Bytes. If more values follow, Count is greater than the number of values.
	Bytes int64
	// CountOnly asks for Count without values.
	CountOnly bool
	// Uncounted means that the caller does not need an exact Count. If Count is above the number of values returned, it may
	// be any such number. This may save the backend much work.
	Uncounted bool
}

// Full reports whether a result with this number of values and bytes is all that r asks for.
func (r Range) Full(values int, bytes int64) bool {
	return r.CountOnly || r.Limit > 0 && values >= r.Limit || r.Bytes > 0 && values > 0 && bytes >= r.Bytes
}

// Enough reports whether a backend may return a result with this number of values and bytes before it has counted all keys.
// count is the number of keys found so far. The conditions are that r is Uncounted, that the result is Full, and that count
// is greater than values.
func (r Range) Enough(values int, bytes, count int64) bool {
	return r.Uncounted && !r.CountOnly && count > int64(values) && r.Full(values, bytes)
}

// RangeResult is the result of Range.
type RangeResult struct {
	KVs      []KV  // the values, in key order
	Count    int64 // number of keys in the whole interval, including those beyond Limit; see Uncounted
	Revision int64 // the store's revision at which this result is true (At, when At was given)
}

// AnyRevision as Commit.Expect makes the commit unconditional: the key is changed at whatever revision it is.
const AnyRevision = -1

// Commit is one change of one key.
type Commit struct {
	Key    string // the key to change
	Expect int64  // the revision that the key must be at; 0: the key must be absent; AnyRevision: no condition
	Value  []byte // the new value; ignored when Delete is set
	// Delete removes the key. Removing an absent key is ErrConflict. With Expect AnyRevision it succeeds and changes nothing:
	// no watch sees it.
	Delete bool
	// TTL > 0 asks that the key be deleted that long after the commit, within some seconds. A backend that cannot do this
	// returns ErrUnsupported.
	TTL time.Duration
}

// CommitResult is the result of Commit. Revision is the new revision. With ErrConflict, Current is the value that was found,
// and Revision is the revision at which it is current.
type CommitResult struct {
	Revision int64 // the revision of the commit, or with ErrConflict that of Current's state
	Current  KV    // with ErrConflict: the value found
	Found    bool  // with ErrConflict: whether the key has a value
}

// WatchRange selects what a Feed follows: changes after revision From to keys with Prefix.
type WatchRange struct {
	Prefix string // only keys that begin with it; "" is every key
	From   int64  // deliver changes with a greater revision
	// Prev asks for the previous value of every change.
	Prev bool
}

// Change is the change of one key by one commit, as a watch delivers it.
type Change struct {
	Key      string // the key that was changed
	Value    []byte // the new value; nil when Deleted
	Revision int64  // the revision of the commit
	Deleted  bool   // the key was deleted
	Stale    bool   // as KV.Stale
	Expiring bool   // as KV.Expiring
	Prev     *KV    // the previous value, if the watch asked for it; nil for a created key
}

// Changes is the result of Feed.Next: changes in order, and a progress mark.
type Changes struct {
	Changes []Change // in the order of their revisions
	// Progress is a revision at or below which nothing more will be delivered. It is never above the store's revision. So it
	// is below From while a feed waits for a future From. It is below an earlier Progress when the store was set back to an
	// older state; in that case it may come without a request.
	Progress int64
}

// Feed is a watch of a Backend. Only one goroutine at a time may call Next. RequestProgress and Close may be called by other
// goroutines meanwhile. A Feed may be a [Waker] too.
type Feed interface {
	// Next waits for changes and returns at least one, or none and a progress mark when one was requested. The slice belongs
	// to the caller; the values are shared. Next never splits the changes of one revision. Errors: ErrCompacted when the
	// reader was too slow for the window, ErrClosed after Close of the feed or the backend, the context's error. After any
	// error other than a context's error the feed has ended. It is no error when the store cannot be reached for a while:
	// Next waits, and continues where it was.
	Next(ctx context.Context) (Changes, error)
	// RequestProgress makes a current or later Next return soon with the progress that it has reached, even if nothing
	// changed. RequestProgress does not wait.
	RequestProgress()
	// Close ends the feed; a second Close does nothing.
	Close()
}

// Waker is a [Feed] or a [Following] whose reader need not wait in Next. The reader can return, and is called when there is
// something to read. So a reader of a store without changes costs no goroutine. A reader's whole loop is
//
//	for !w.Wake(again) { // again runs this loop once more
//		got, err := feed.Next(ctx)
//		...
//	}
type Waker interface {
	// Wake returns false, and drops f, when Next would return now. Otherwise it returns true, and f is called once, in its
	// own goroutine, when Next will return without waiting. Next then returns changes, a progress mark that was requested, or
	// the error that ended the feed. f is called at the latest when the feed is closed, the backend is closed, or the context
	// given to Watch ends. If none of these ever happens, f is never called.
	//
	// Wake is for the goroutine that calls Next, and must not be called during a Next. After Wake has returned true, neither
	// Wake nor Next may be called before f is called. RequestProgress and Close may be called at any time. They do not wait
	// for f, which may run after they have returned. No lock is held when f is called: f may wait, and may call every method
	// that a reader may call. Nothing waits for the goroutine of f; the caller of Wake must do that if needed. The
	// goroutine's labels for profiles (runtime/pprof) may be those of a writer. Everything that the caller did before it
	// called Wake happens before f, in the sense of the Go memory model.
	Wake(f func()) bool
}

// Compactor is a Backend whose history can be removed. After Compact, reads below revision and watches from below it return
// ErrCompacted. Reads at revision and watches from it work.
type Compactor interface {
	// Compact removes the history below revision. Values that are current at revision stay. Errors: ErrCompacted when that
	// history has been compacted already, ErrFuture.
	Compact(ctx context.Context, revision int64) error
}

// Historian is a Backend that can report its oldest retained revision.
type Historian interface {
	// Oldest returns the oldest revision at which Get and Range work now, and from which Watch works now.
	Oldest(ctx context.Context) (int64, error)
}

// Replayer is a Backend whose watches take long to deliver changes that are older than the watch.
type Replayer interface {
	// Replay returns how many revisions before the latest one a watch may begin so that it still catches up soon.
	Replay() int64
}

// Stater is a Backend that can read the revision of a key without its value.
type Stater interface {
	// Stat returns the revision of key's value, 0 if the key is missing, and the store's revision at which this is true. The
	// result is the same as that of Get at the latest state.
	Stat(ctx context.Context, key string) (Stat, error)
}

// Knower is a Backend that can return its revision without a request, because it is in this process.
type Knower interface {
	// Known returns the store's current revision, the same that Get and Range return. ok is false after Close.
	Known() (revision int64, ok bool)
}

// Holder is a Backend that may have all values in memory and return the same slices in each read.
type Holder interface {
	// Holds reports whether the backend has all values in memory and returns the same slices. The result never changes.
	Holds() bool
}

// Healther is a Backend that can report whether it works.
type Healther interface {
	// Health returns nil, or the reason why commits or reads would fail now.
	Health(ctx context.Context) error
}

// Readier is a Backend that can be alive and still not ready to serve all requests.
type Readier interface {
	// Ready returns nil, or the reason why requests should be sent to another server now.
	Ready(ctx context.Context) error
}

// Sizer is a Backend that can report how many bytes it uses and how many it may use.
type Sizer interface {
	// Size returns how many bytes the backend uses, and how many it may use; limit is negative if that is not known. Both are
	// 0 after Close. Size is called for metrics, and must be fast.
	Size() (used, limit int64)
}

// Loader is a Backend that can be filled with the content of another Backend and keeps its revisions.
type Loader interface {
	// Load stores kvs, which come in key order, each at its own revision. revision is at or above all of them and becomes the
	// store's revision; the history below it is compacted. Nobody else may use the backend meanwhile. A backend that was ever
	// written to returns ErrNotEmpty and stays unchanged. After another error, including an error from kvs, the content is
	// incomplete; a durable backend then refuses to be opened again.
	Load(ctx context.Context, revision int64, kvs iter.Seq2[KV, error]) error
}

// Raiser is a Backend whose revision can be raised without changing a value.
type Raiser interface {
	// Raise makes the store's revision greater than revision and compacts the history below the new revision. It makes an
	// empty commit for each revision in between. If that would take more than limit commits, it does nothing and returns a
	// *RaiseError.
	Raise(ctx context.Context, revision, limit int64) error
}

// Opener opens a Backend when a server starts. The caller of the Opener closes the backend.
type Opener func(ctx context.Context) (Backend, error)

// Opened returns an Opener for a backend that is already open. The Opener returns the same backend each time, and its caller
// closes that backend: use it with one server only.
func Opened(b Backend) Opener {
	return func(context.Context) (Backend, error) { return b, nil }
}

// Unwrapper is a Backend that wraps another one. It has the optional abilities of the wrapped Backend besides its own: see
// As.
type Unwrapper interface {
	// Unwrap returns the wrapped Backend.
	Unwrap() Backend
}

// As returns b as an interface for an optional ability, such as Stater. If b does not implement the interface, As looks at
// the Backend that b wraps, and so on. ok is false if none of them implements it. A wrapper that changes what such an
// interface would return must implement the interface itself.
func As[T any](b Backend) (power T, ok bool) {
	for b != nil {
		if power, ok = b.(T); ok {
			return power, true
		}
		u, wraps := b.(Unwrapper)
		if !wraps {
			break
		}
		b = u.Unwrap()
	}
	return power, false
}
