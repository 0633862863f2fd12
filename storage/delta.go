package storage

import (
	"context"
	"errors"
	"iter"
	"slices"
)

// Differ is an Interface that can return what changed between two states. A cache is a Differ, because it keeps a log of the
// changes. All methods may be called concurrently.
type Differ interface {
	Interface
	// Changed returns the revision of the newest known change of the resource. A read with the Match Acknowledged shows that
	// change or a later state. Changed returns 0 while the state of the resource is not known. It takes no lock and sends no
	// request. Its result becomes smaller only when the store was set back to an older state.
	Changed() int64
	// Delta returns what changed after the revision since, up to the state that at accepts. since is the Revision of an
	// earlier Delta or Page of this Differ, or 0. The delta is a Reset when the changes since then are not known: since is 0,
	// is before the retained history, is from a time before the store was set back, or is after the state that at accepts.
	// The errors are those of List, except that an unreadable record in Moves is no error.
	Delta(ctx context.Context, since int64, at Read) (Delta, error)
}

// Delta is what changed in a resource between two states.
type Delta struct {
	Revision int64 // the revision of the later state
	// Reset means that Moves has all records of the later state, in key order.
	Reset bool
	// Moves has one Move for each key that changed: its last state, or its deletion. It may be walked more than once. It is
	// nil when Count is 0.
	Moves iter.Seq[Move]
	Count int // number of Moves
}

// Whole returns all records of a state that at accepts, as a Reset. If from is a [Source], the Moves include the unreadable
// records. For any other Interface an unreadable record is an error.
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

// wholeState is Whole for a state that has unreadable records. The caller has called List before, so at is not in the future.
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
