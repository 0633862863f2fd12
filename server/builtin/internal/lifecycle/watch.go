package lifecycle

import (
	"context"

	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
)

// follow calls event for every namespace, then complete with the names of all of them, and then event for every change, until ctx
// ends. When the watch ends it starts again.
func (l *Lifecycle) follow(ctx context.Context, event func(storage.Event), complete func(present map[string]bool)) {
	open := func(ctx context.Context) (storage.Watch, error) {
		return l.registry.WatchRecords(as(ctx), storage.WatchOptions{Initial: true})
	}
	seen := func(b background.Batch) {
		for _, e := range b.Events {
			if e.Type != watch.Bookmark {
				event(e)
			}
		}
		if b.Present != nil {
			complete(b.Present)
		}
	}
	background.Follow(ctx, background.Doubling(systemLeast, systemMost), open, seen, func(err error) {
		l.log.Debug("the watch of namespaces begins again", zap.Error(err))
	})
}
