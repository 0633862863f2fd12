package background

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// Batch is a slice of events of a watch that came together. The slice is valid until seen returns.
type Batch struct {
	// Events are the events, in their order.
	Events []storage.Event
	// Present has the keys of all existing records, in the batch with the last of the initial events of a watch; it is nil in all
	// others.
	Present map[string]bool
}

// Follow calls seen with every record as it is, and then with every change, until ctx ends. When the watch ends, or cannot be
// opened, Follow calls ended with the error. After a pause of retry it opens a new watch, which begins with all records.
func Follow(ctx context.Context, retry wait.Backoff, open func(context.Context) (storage.Watch, error), seen func(Batch), ended func(error)) {
	pauses := retry
	for ctx.Err() == nil {
		err := followOnce(ctx, open, func(b Batch) {
			if b.Present != nil {
				pauses = retry
			}
			seen(b)
		})
		if ctx.Err() != nil {
			return
		}
		ended(err)
		Pause(ctx, pauses.Step())
	}
}

func followOnce(ctx context.Context, open func(context.Context) (storage.Watch, error), seen func(Batch)) error {
	w, err := open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	present := map[string]bool{}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if present != nil {
			end := slices.IndexFunc(events, func(e storage.Event) bool { return e.Type == watch.Bookmark && e.InitialEnd })
			first := events[:end+1]
			if end < 0 {
				first = events
			}
			for _, e := range first {
				if e.Type != watch.Bookmark {
					present[e.Record.Key] = true
				}
			}
			if end >= 0 {
				seen(Batch{Events: first, Present: present})
				present, events = nil, events[end+1:]
			}
		}
		if len(events) > 0 {
			seen(Batch{Events: events})
		}
	}
}
