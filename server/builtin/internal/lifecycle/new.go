package lifecycle

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
)

func install(h *server.Host, f *Finalizer, o Options) (*Lifecycle, error) {
	r, err := h.Registry(namespaceResource)
	if err != nil {
		return nil, err
	}
	l := &Lifecycle{
		gate:      &gate{namespaces: r, allowMissing: o.AllowMissingNamespaces || o.NoAdmission},
		registry:  r,
		finalizer: f,
		catalogue: h.Catalogue().As(controller()),
		log:       o.Logger,
		passes:    make(chan struct{}, maxPasses),
		system:    system{kick: make(chan struct{}, 1)},
		following: make(chan struct{}),
	}
	if l.log == nil {
		l.log = zap.NewNop()
	}
	l.panics = background.NewPanics(l.log, "work on namespaces panicked")
	if l.typed, err = registry.For[*corev1.Namespace](r, authn.System()); err != nil {
		return nil, err
	}
	if l.status, err = r.Status(); err != nil {
		return nil, err
	}
	if !o.NoAdmission {
		err := h.Admit(admission.Plugin{
			Name: "NamespaceLifecycle", Mutator: l.gate,
			Handles: admission.Handles{Operations: []admission.Operation{admission.Create, admission.Delete}},
		})
		if err != nil {
			return nil, err
		}
	}
	if err := h.Check(server.Check{Name: "namespaces", ReadyOnly: true, Check: l.system.check}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), firstAttempt)
	defer cancel()
	if err := l.makeSystem(ctx); err != nil {
		l.log.Warn("system namespaces could not be made yet", zap.Error(err))
	}
	h.Go(l.keep)
	select { // so that every namespace is watched in which this server admits creates
	case <-l.following:
	case <-ctx.Done():
	}
	return l, nil
}

// Install starts to manage the namespaces of the server. It opens the finalizer, adds the admission plug-in before all others,
// and adds the health check "namespaces", which fails until the system namespaces exist. It creates the system namespaces and
// begins to watch all namespaces. It waits for that some seconds at most; after that the work goes on in the background.
//
// The kind Namespace of the core group must be served: cluster-scoped, with status.phase as a selectable field, with the
// subresource finalize, and with HoldsContent in its Strategy. The content of deleted namespaces stays until Run is called.
func Install(h *server.Host, f *Finalizer, o Options) (*Lifecycle, error) {
	l, err := install(h, f, o)
	if err != nil {
		return nil, fmt.Errorf("lifecycle of namespaces: %w", err)
	}
	return l, nil
}
