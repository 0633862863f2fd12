package background

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// Batch is events of a watch that came together. The slice is good until seen returns.
type Batch struct {
	Events []storage.Event
	// Present has the keys of all records there are, with the last of the first events of a watch; nil otherwise.
	Present map[string]bool
}

// Follow shows to seen every record as it is, and then every change, until ctx ends. When the watch ends, or cannot be opened,
// ended is called with the error, and a new watch begins after a pause of retry, with all records.
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
