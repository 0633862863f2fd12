package storage

import (
	"context"
	"iter"
	"time"
)

// Backend keeps bytes under keys. All methods may be called concurrently. Keys are non-empty, contain no NUL
// byte and are ordered bytewise. A backend must:
//
//   - give every commit a revision of its own, strictly increasing, from one counter for all keys, which is
//     positive even while the store is empty;
//   - make commits linearizable, and durable before anybody sees them: no reader, watcher or answer shows a
//     commit that a crash could still take back, unless the backend was opened to be weaker;
//   - never give a revision that was shown to another state: what a weaker backend has lost in a crash leaves a gap
//     in the revisions, and reads and watches from within it are ErrCompacted;
//   - answer Get and Range at any retained revision, and say [ErrCompacted] below the window (an [*ExpiredError]
//     is one, and tells the oldest revision);
//   - deliver to a watch every change after its start, in order, exactly once.
//
// Slices that a backend returns are shared and must not be changed; slices given to it are its own from then on.
// After Close every method returns ErrClosed. Any method may return ErrUnavailable when the store cannot be asked.
//
// Optional powers are further interfaces: [Compactor], [Historian], [Replayer], [Stater], [Knower], [Holder], [Healther], [Readier], [Loader], [Raiser].
type Backend interface {
	// Get returns the value of key at a revision; 0 is the latest. A missing key is no error: Found is false,
	// and Revision still says when that was true. Errors: ErrCompacted, ErrFuture, ErrClosed.
	Get(ctx context.Context, key string, at int64) (GetResult, error)
	// Range returns the values of the keys in [From, To), in key order. Errors as Get.
	Range(ctx context.Context, r Range) (RangeResult, error)
	// Commit changes one key if it is still at the expected revision, and returns when the change is durable.
	// A key found at another revision is ErrConflict and the result's Current tells what is there (Found false:
	// nothing). After ErrNoSpace and ErrTooLarge the commit has not happened; after ErrUnavailable, ErrClosed or a
	// context error it may have happened or not, or may still happen.
	Commit(ctx context.Context, c Commit) (CommitResult, error)
	// Watch follows the keys that begin with Prefix; "" is every key. Errors: ErrCompacted when changes after From are no longer
	// retained, ErrClosed. A From in the future is accepted: only later changes are delivered. The watch ends
	// with ctx or Close, whichever is first.
	Watch(ctx context.Context, w WatchRange) (Feed, error)
	// Close ends all watches with ErrClosed, waits for commits under way, and releases what the backend holds.
	// A second Close does nothing.
	Close() error
}

// KV is one key's value at one revision.
type KV struct {
	Key      string
	Value    []byte
	Revision int64 // of the commit that wrote it
	Stale    bool  // the value should be rewritten by the next update, even one that changes nothing
	Expiring bool  // the value was committed with a TTL
}

// GetResult answers Get.
type GetResult struct {
	KV       KV
	Found    bool
	Revision int64 // the store's revision at which this is true
}

// Range names an interval of keys. The bounds may be any strings, a NUL byte in them included; To "" means no
// upper bound, and an interval whose To is not after From is empty.
type Range struct {
	From, To string
	At       int64 // revision; 0 is the latest
	Limit    int   // at most this many values; 0 is all
	// Bytes, if positive, ends the values with the one by which they have so many bytes together, keys aside; Count is greater
	// than their number if others follow.
	Bytes int64
	// CountOnly asks for Count alone.
	CountOnly bool
	// Uncounted says that of a Count above the number of values nobody needs to know how far it is above, which may save much.
	Uncounted bool
}

// Full reports whether no more values are asked for by r than so many, of so many bytes.
func (r Range) Full(values int, bytes int64) bool {
	return r.CountOnly || r.Limit > 0 && values >= r.Limit || r.Bytes > 0 && values > 0 && bytes >= r.Bytes
}

// Enough reports whether r asks for no more than so many values and the Count, of which there are more than values. values are
// all that r asks for if there are others.
func (r Range) Enough(values int, bytes, count int64) bool {
	return r.Uncounted && !r.CountOnly && count > int64(values) && r.Full(values, bytes)
}

// RangeResult answers Range.
type RangeResult struct {
	KVs      []KV
	Count    int64 // keys in the whole interval, those beyond Limit included; see Uncounted
	Revision int64 // the store's revision at which this is true (At, when At was given)
}

// AnyRevision as Commit.Expect changes the key whatever is there.
const AnyRevision = -1

// Commit is one change of one key.
type Commit struct {
	Key    string
	Expect int64  // the revision the key must be at; 0: must be absent; AnyRevision: no condition
	Value  []byte // ignored when Delete
	// Delete removes the key. Removing an absent key is ErrConflict, but with Expect AnyRevision it succeeds and
	// changes nothing: no watch sees it.
	Delete bool
	// TTL > 0 asks that the key be deleted that long after the commit, give or take some seconds. A backend
	// without the power refuses with ErrUnsupported.
	TTL time.Duration
}

// CommitResult answers Commit: Revision is the new one, or with ErrConflict Current is what was found, true at
// Revision.
type CommitResult struct {
	Revision int64
	Current  KV
	Found    bool
}

// WatchRange says what a Feed follows: changes after revision From to keys with Prefix.
type WatchRange struct {
	Prefix string
	From   int64 // deliver changes with a greater revision
	// Prev asks for the previous value of every change.
	Prev bool
}

// Change is one commit as a watch shows it.
type Change struct {
	Key      string
	Value    []byte // nil when Deleted
	Revision int64
	Deleted  bool
	Stale    bool
	Expiring bool
	Prev     *KV // the value before, when asked for; nil for a created key
}

// Changes is what Next delivers: changes in order, and a progress mark.
type Changes struct {
	Changes []Change
	// Progress is a revision at or below which nothing more will be delivered. It is never above the store's
	// revision, so below From while a feed waits for a future From, and below
	// what it was before when the store was set back to an older state: then it may come unasked.
	Progress int64
}

// Feed is a watch. One goroutine at a time may call Next; RequestProgress and Close may be called by others. A Feed may
// be a [Waker] too.
type Feed interface {
	// Next waits for changes and returns at least one, or none and a progress mark when one was requested. The
	// slice is the caller's, the values are shared. It never splits the changes of one revision. Errors:
	// ErrCompacted when the reader was too slow for the window, ErrClosed after Close of the feed or the
	// backend, the context's error. After an error other than a context's the feed is over. A store that cannot
	// be asked for a while is no error: Next waits, and goes on where it was.
	Next(ctx context.Context) (Changes, error)
	// RequestProgress makes a current or later Next return soon with the progress it has reached, even if
	// nothing changed. It does not wait.
	RequestProgress()
	// Close ends the feed; a second Close does nothing.
	Close()
}

// Waker is a [Feed], or a [Following], whose reader need not wait in Next: it can go away, and is called when there is
// something to read. So what follows a store that is quiet costs no goroutine. A reader's whole loop is
//
//	for !w.Wake(again) { // again runs this loop once more
//		got, err := feed.Next(ctx)
//		...
//	}
type Waker interface {
	// Wake returns false when Next would return now, and forgets f. Else it returns true, and f is called once, in a
	// goroutine of its own, when Next will return without waiting: with changes, a progress mark that was requested,
	// or the error with which the feed is over. That is at the latest when the feed is closed, the backend is, or the
	// context given to Watch ends; so who waits for f to be called waits in vain only for a feed that nobody ends.
	//
	// Wake is for who calls Next: it must not be called during a Next, and when it has returned true neither may be
	// called before f is. RequestProgress and Close may be called at any time; they do not wait for f, which may run
	// after they have returned. No lock is held when f is called: it may wait, and call all that a reader may. Its
	// goroutine is the caller's to wait for: nobody else does. Its labels for profiles (runtime/pprof) may be those of a writer.
	// What the caller did before Wake happens before f.
	Wake(f func()) bool
}

// Compactor is a Backend whose history can be cut: afterwards reads below revision and watches from below it say
// ErrCompacted; reads at it and watches from it work.
type Compactor interface {
	// Compact forgets history below revision; values current at revision stay. Errors: ErrCompacted when that
	// has been compacted already, ErrFuture.
	Compact(ctx context.Context, revision int64) error
}

// Historian is a Backend that can tell how far back its history goes.
type Historian interface {
	// Oldest is the oldest revision at which Get and Range, and from which Watch, work now.
	Oldest(ctx context.Context) (int64, error)
}

// Replayer is a Backend of which a watch takes long to deliver what happened before it began.
type Replayer interface {
	// Replay is how many revisions before the latest a watch may begin that is to catch up soon.
	Replay() int64
}

// Stater is a Backend that can tell the revision of a key without its value.
type Stater interface {
	// Stat returns the revision of key's value, 0 when it is missing, and the store's revision at which that is
	// true: what Get says of the latest state.
	Stat(ctx context.Context, key string) (Stat, error)
}

// Knower is a Backend in this process: it knows its revision without asking anybody.
type Knower interface {
	// Known is the store's revision now, as Get and Range tell it; false after Close.
	Known() (revision int64, ok bool)
}

// Holder is a Backend that may have the values in memory, and return those very bytes.
type Holder interface {
	// Holds reports whether it does. It is always the same.
	Holds() bool
}

// Healther is a Backend that can tell whether it works.
type Healther interface {
	// Health returns nil or the reason that commits or reads would fail now.
	Health(ctx context.Context) error
}

// Readier is a Backend that can be alive and yet not ready to serve all requests.
type Readier interface {
	// Ready returns nil or the reason that requests should go to another server now.
	Ready(ctx context.Context) error
}

// Loader is a Backend that can begin with the content of another one and keep its revisions.
type Loader interface {
	// Load stores kvs, which come in key order, each at its own revision, and makes revision, which is at or above
	// them all, the store's: history below it is compacted. Nobody else uses the backend meanwhile. One that was
	// ever written to is ErrNotEmpty, and unchanged. After another error, one of kvs included, the content is
	// incomplete: a durable backend refuses to be opened again.
	Load(ctx context.Context, revision int64, kvs iter.Seq2[KV, error]) error
}

// Raiser is a Backend whose revision can be raised without changing a value.
type Raiser interface {
	// Raise makes the store's revision greater than revision and compacts the history below the new one. It needs
	// an empty commit for each revision in between; if these are more than limit, it does nothing and returns a
	// *RaiseError.
	Raise(ctx context.Context, revision, limit int64) error
}

// Opener opens a Backend when a server starts. The opener's caller closes the backend.
type Opener func(ctx context.Context) (Backend, error)

// Opened is an Opener of a backend that is open already. It gives the same backend each time, and whoever opens
// it closes it: use it with one server.
func Opened(b Backend) Opener {
	return func(context.Context) (Backend, error) { return b, nil }
}

// Unwrapper is a Backend around another one. It has the powers of that besides its own: see As.
type Unwrapper interface {
	// Unwrap returns the Backend around which this is one.
	Unwrap() Backend
}

// As returns a power of a Backend, such as Stater: b itself if it has the power, or else what b is around. false says that
// neither has it. A wrapper that changes what a power would show has that power itself.
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
