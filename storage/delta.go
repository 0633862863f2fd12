package storage

import (
	"context"
	"iter"
)

// Differ is an Interface that knows what has changed between two states: a cache, which keeps a log of the changes. All
// methods may be called concurrently.
type Differ interface {
	Interface
	// Changed returns the revision of the newest change of the resource that is known: a read with the Match Acknowledged
	// shows that change, or a later state. It is 0 while the state of the resource is not known. It takes no lock and asks
	// nobody. It becomes smaller only when the store was set back to an older state.
	Changed() int64
	// Delta returns what has changed after the revision since, up to the state that at accepts. since is the Revision of
	// an earlier Delta or Page of this Differ, or 0. The delta is a Reset when what has changed since then is not known:
	// since is 0, is before the retained history, is of a time before the store was set back, or is after the state that
	// at accepts. Errors are those of List; an unreadable record is none where it is in Moves.
	Delta(ctx context.Context, since int64, at Read) (Delta, error)
}

// Delta is what has changed in a resource between two states.
type Delta struct {
	Revision int64 // of the later state
	// Reset says that Moves are all records of the later state, in key order.
	Reset bool
	// Moves has one Move for each key that changed: its last state, or its deletion. It may be walked more than once; it is
	// nil when Count is 0.
	Moves iter.Seq[Move]
	Count int // how many Moves there are
}
