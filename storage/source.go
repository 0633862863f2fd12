package storage

import (
	"context"
	"iter"
)

// Source is an Interface of which a complete copy can be kept, with what cannot be read in it and with the history
// that is retained: what a cache asks of the storage below it. All methods may be called concurrently.
type Source interface {
	Interface
	// Oldest is the oldest revision that State can still read and from which Follow can begin; the latest, when no
	// history is retained. It may be gone by the time it is used.
	Oldest(ctx context.Context) (int64, error)
	// State reads all that is stored at a revision; 0 is the latest. Errors: an *ExpiredError, a *FutureError.
	State(ctx context.Context, at int64) (State, error)
	// Follow delivers all that happens after revision from, until ctx ends or it is closed. Errors: an *ExpiredError
	// when that is no longer retained. A from in the future is accepted; see Progress for how that is found out.
	Follow(ctx context.Context, from int64) (Following, error)
	// Known is Revision where that takes no asking; false where it does.
	Known() (revision int64, ok bool)
	// Stat tells which revision of a key is current, by a linearizable read that transfers no value.
	Stat(ctx context.Context, key string) (Stat, error)
	// UpdateFrom is Update for a caller that has a state of the object already, current or not. It is the state that
	// change is asked about first. An answer that stores nothing, be it an error, no change or a dry run, is only
	// believed when that state is found to be the current one; else change is asked again about what is.
	UpdateFrom(ctx context.Context, from Record, opts WriteOptions, change ChangeFunc) (Record, error)
}

// Entry is what is stored under one key.
type Entry struct {
	Record Record // of what cannot be read only Key and Revision are set
	// Unreadable says why no record can be made of it; nil for a record.
	Unreadable *UnreadableError
}

// State is all that is stored at one revision.
type State struct {
	Revision int64
	// Entries are in key order, and read in portions while they are walked, once. An error, such as an
	// *ExpiredError when the state went out of the retained history meanwhile, is the last.
	Entries iter.Seq2[Entry, error]
}

// Stat says what is current under a key.
type Stat struct {
	Revision int64 // of the value; 0: there is none
	At       int64 // the store's revision at which that is true
}

// Move is one change of one key. Of a deletion Record has Key and Revision only, that of the deletion.
type Move struct {
	Entry
	Deleted bool
}

// Moves is what Following.Next delivers: changes in order, and a progress mark as that of Changes.
type Moves struct {
	Moves []Move
	// Progress is a revision at or below which nothing more will be delivered. It is never above the store's
	// revision: one below from says that the store is not there yet, or not any more.
	Progress int64
}

// Following is a Feed of entries, with the same rules for Next, RequestProgress and Close. It does not end when it
// meets what cannot be read. Next returns an *ExpiredError where a Feed has ErrCompacted. It may be a [Waker] too; that of
// a [Store] is one where the backend's feed is.
type Following interface {
	Next(ctx context.Context) (Moves, error)
	RequestProgress()
	Close()
}
