package lifecycle

import (
	"context"

	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
)

// follow shows every namespace as it is, then the names of all of these to complete, and then every change, until ctx
// ends; when the watch ends it begins again.
func (l *Lifecycle) follow(ctx context.Context, event func(storage.Event), complete func(present map[string]bool)) {
	retry := doubling(systemLeast, systemMost)
	for ctx.Err() == nil {
		err := l.followOnce(ctx, event, func(present map[string]bool) { retry = doubling(systemLeast, systemMost); complete(present) })
		if ctx.Err() != nil {
			return
		}
		l.log.Debug("the watch of namespaces begins again", zap.Error(err))
		if !pause(ctx, retry.Step(), nil, nil) {
			return
		}
	}
}

func (l *Lifecycle) followOnce(ctx context.Context, event func(storage.Event), complete func(present map[string]bool)) error {
	w, err := l.registry.WatchRecords(as(ctx), storage.WatchOptions{Initial: true})
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
		for _, e := range events {
			switch {
			case e.Type != watch.Bookmark:
				if present != nil {
					present[e.Record.Key] = true
				}
				event(e)
			case e.InitialEnd:
				complete(present)
				present = nil
			}
		}
	}
}
