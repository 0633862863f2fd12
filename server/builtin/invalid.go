package builtin

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/keelson-dev/keelson/server/builtin/internal/garbage"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// invalidOwners records an Event for each invalid owner reference, as the garbage collector of Kubernetes does. See "Owner
// references in object specifications" in https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
type invalidOwners struct {
	events *registry.Typed[*corev1.Event]
	queue  chan garbage.Invalid
	log    *zap.Logger
}

func newInvalidOwners(events *registry.Typed[*corev1.Event], log *zap.Logger) *invalidOwners {
	return &invalidOwners{events, make(chan garbage.Invalid, 64), log}
}

// note does not block. If there are more references than it can record, it only logs some of them.
func (o *invalidOwners) note(i garbage.Invalid) {
	select {
	case o.queue <- i:
	default:
	}
}

func (o *invalidOwners) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case i := <-o.queue:
			o.record(ctx, i)
		}
	}
}

func (o *invalidOwners) record(ctx context.Context, i garbage.Invalid) {
	defer func() {
		if v := recover(); v != nil { // a plug-in of the program panicked
			o.log.Error("recording an event panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	namespace := i.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := metav1.Now()
	_, err := o.events.Create(ctx, namespace, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: i.Name + ".", Namespace: namespace},
		Type:           corev1.EventTypeWarning,
		Reason:         "OwnerRefInvalidNamespace",
		Message:        i.Message,
		Source:         corev1.EventSource{Component: "garbage-collector-controller"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		InvolvedObject: corev1.ObjectReference{
			APIVersion: i.Kind.GroupVersion().String(), Kind: i.Kind.Kind, Namespace: i.Namespace, Name: i.Name, UID: i.UID,
		},
	})
	if err != nil {
		o.log.Debug("an event could not be recorded", zap.Error(err))
	}
}
