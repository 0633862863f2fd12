package accounts

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// attempt is how long a controller works on one object at a time.
const attempt = 30 * time.Second

// controllerUser returns the user that a controller acts as. It has the name of the controller in Kubernetes.
func controllerUser(name string) *authn.User {
	return authn.ServiceAccount(metav1.NamespaceSystem, name)
}

// follow calls event for each selected object, then whole, and then event for each change, until ctx ends. After a watch has ended it
// begins again, so that whole is called for what may have been missed.
func follow[T runtime.Object](ctx context.Context, of *registry.Typed[T], o registry.ListOptions, log *zap.Logger, event func(registry.TypedEvent[T]), whole func()) {
	pauses := background.Doubling(retryLeast, retryMost)
	for ctx.Err() == nil {
		for e, err := range of.Watch(ctx, "", o) {
			switch {
			case err != nil:
				log.Debug("a watch of a controller of service accounts begins again", zap.Error(err))
			case e.Type == apiwatch.Bookmark:
				pauses = background.Doubling(retryLeast, retryMost)
				whole()
			default:
				event(e)
			}
		}
		background.Pause(ctx, pauses.Step())
	}
}
