package storage

import (
	"context"
	"iter"
)

// Source is an Interface that can be copied completely, with its unreadable values and its retained history. A cache needs a
// Source as the storage below it. All methods may be called concurrently.
type Source interface {
	Interface
	// Oldest returns the oldest revision that State can still read and at which Follow can begin. It is the latest revision
	// when no history is retained. The revision may be compacted before the caller uses it.
	Oldest(ctx context.Context) (int64, error)
	// State reads everything that is stored at a revision; 0 is the latest. Errors: an *ExpiredError, a *FutureError.
	State(ctx context.Context, at int64) (State, error)
	// Follow delivers all changes after revision from, until ctx ends or the Following is closed. The error is an
	// *ExpiredError when these changes are no longer retained. A from in the future is accepted; Moves.Progress shows that it
	// is in the future.
	Follow(ctx context.Context, from int64) (Following, error)
	// Known returns the same as Revision if that needs no request. Otherwise ok is false.
	Known() (revision int64, ok bool)
	// Stat returns the current revision of a key by a linearizable read that transfers no value.
	Stat(ctx context.Context, key string) (Stat, error)
	// UpdateFrom is Update for a caller that already has a state of the object, current or not. change is called with that
	// state first. If the outcome stores nothing (an error, no change, or a dry run), UpdateFrom first checks that this state
	// is current. If it is not, change is called again with the current state.
	UpdateFrom(ctx context.Context, from Record, opts WriteOptions, change ChangeFunc) (Record, error)
}

// Entry is one stored value, readable or not.
type Entry struct {
	Record Record // of an unreadable value only Key and Revision are set
	// Unreadable is the reason why no record can be made of the value; nil for a record.
	Unreadable *UnreadableError
}

// State has everything that is stored at one revision.
type State struct {
	Revision int64 // the revision of the state
	// Entries are in key order. They are read in portions while they are walked, and can be walked once only. An error comes
	// last, such as an *ExpiredError when the state left the retained history meanwhile.
	Entries iter.Seq2[Entry, error]
}

// Stat is the current revision of a key.
type Stat struct {
	Revision int64 // the revision of the value; 0: the key has no value
	At       int64 // the store's revision at which this is true
}

// Move is one change of one key. For a deletion, Record has only the Key, and the Revision of the deletion.
type Move struct {
	Entry
	Deleted bool // the key was deleted
}

// Moves is the result of Following.Next: changes in order, and a progress mark like that of Changes.
type Moves struct {
	Moves []Move // in the order of their revisions
	// Progress is a revision at or below which nothing more will be delivered. It is never above the store's revision. A
	// Progress below from means that the store has not reached from yet, or was set back to an older state.
	Progress int64
}

// Following is a watch of a Source that delivers entries. Its rules for Next, RequestProgress and Close are those of [Feed].
// An unreadable value does not end it. Next returns an *ExpiredError where a Feed returns ErrCompacted. It may be a [Waker]
// too; the Following of a [Store] is one if the backend's feed is.
type Following interface {
	// Next waits for changes, or for a progress mark that was requested; see Feed.Next.
	Next(ctx context.Context) (Moves, error)
	// RequestProgress makes Next return soon with the progress that it has reached; see Feed.RequestProgress.
	RequestProgress()
	// Close ends the Following; a second Close does nothing.
	Close()
}
