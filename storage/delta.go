package storage

import (
	"context"
	"errors"
	"iter"
	"slices"
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

// Whole returns all records of the state that at asks for, as a Reset. Of a [Source] its Moves have the unreadable records,
// too; of any other Interface an unreadable record is an error.
func Whole(ctx context.Context, from Interface, at Read) (Delta, error) {
	page, err := from.List(ctx, ListOptions{At: at})
	var unreadable *UnreadableError
	if source, ok := from.(Source); ok && errors.As(err, &unreadable) {
		return wholeState(ctx, source, at)
	}
	if err != nil {
		return Delta{}, err
	}
	return Delta{Revision: page.Revision, Reset: true, Count: page.Count, Moves: func(yield func(Move) bool) {
		for r := range page.Records {
			if !yield(Move{Entry: Entry{Record: r}}) {
				return
			}
		}
	}}, nil
}

// wholeState is Whole for a state that has unreadable records. A List has shown that at is not in the future.
func wholeState(ctx context.Context, from Source, at Read) (Delta, error) {
	var revision int64 // the latest
	if at.Match == Exact {
		revision = at.Revision
	}
	state, err := from.State(ctx, revision)
	if err != nil {
		return Delta{}, err
	}
	var all []Move
	for e, err := range state.Entries {
		if err != nil {
			return Delta{}, err
		}
		all = append(all, Move{Entry: e})
	}
	return Delta{Revision: state.Revision, Reset: true, Count: len(all), Moves: slices.Values(all)}, nil
}
