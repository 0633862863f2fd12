package builtin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/election"
	"github.com/keelson-dev/keelson/server/builtin/internal/garbage"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the options of New. The zero Options installs everything.
type Options struct {
	// NoControllers leaves out the garbage collector and the controller that deletes the objects of a deleted namespace. A
	// deleted namespace then stays Terminating. In Kubernetes these controllers run in kube-controller-manager, not in
	// kube-apiserver.
	NoControllers bool
	// AllowMissingNamespaces allows creates in namespaces that do not exist. Creates in a namespace that is being deleted are
	// still refused. Set it on all servers of a storage, or on none.
	AllowMissingNamespaces bool
	// NoNamespaceAdmission leaves out the admission plug-in NamespaceLifecycle: objects may be created in namespaces that do not
	// exist or are being deleted, and the system namespaces may be deleted. Set it on all servers of a storage, or on none.
	NoNamespaceAdmission bool
	// EventTTL is how long an event is kept after its last write; 0 means an hour.
	EventTTL time.Duration
	// Identity is the name of this server in the Lease of the elected server. It must be unique among the servers that share a
	// storage. "" means the name of the host and a random part.
	Identity string
	// Logger receives failures that are tried again, and the results of elections. With nil nothing is logged.
	Logger *zap.Logger
}

// New returns the extension. Install it once in a server, before or while the server serves, and before a server.Types with the
// same kinds, which leaves out kinds that are served already. Its controllers end with the server.
func New(o Options) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return extension{o}
}

type extension struct{ opts Options }

// Install implements server.Extension.
func (e extension) Install(h *server.Host) error {
	if e.opts.EventTTL < 0 {
		return fmt.Errorf("builtin: Options.EventTTL is %s; it must not be negative; 0 is an hour", e.opts.EventTTL)
	}
	finalizer := &lifecycle.Finalizer{}
	coreEvents, events := Events(e.opts.EventTTL)
	err := h.Serve(
		server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{Namespace(finalizer), ConfigMap(), Secret(), coreEvents}}}},
		server.Group{Name: coordinationv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{Lease()}}}},
		events,
	)
	if errors.Is(err, server.ErrServed) {
		return fmt.Errorf("builtin: %w; install the extension once, before what serves its kinds too, and leave them to it", err)
	}
	if err != nil {
		return fmt.Errorf("builtin: %w", err)
	}
	namespaces, err := lifecycle.Install(h, finalizer, lifecycle.Options{AllowMissingNamespaces: e.opts.AllowMissingNamespaces, NoAdmission: e.opts.NoNamespaceAdmission, Logger: e.opts.Logger})
	if err != nil {
		return fmt.Errorf("builtin: %w", err)
	}
	if e.opts.NoControllers {
		return nil
	}
	recorded, err := typed[*corev1.Event](h, schema.GroupResource{Resource: "events"}, collectorName)
	if err != nil {
		return err
	}
	invalid := newInvalidOwners(recorded, e.opts.Logger)
	collector, err := garbage.New(garbage.Options{Catalogue: h.Catalogue().As(account(collectorName)), Logger: e.opts.Logger, Hooks: garbage.Hooks{Invalid: invalid.note}})
	if err != nil {
		return fmt.Errorf("builtin: %w", err)
	}
	leases, err := typed[*coordinationv1.Lease](h, schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}, LeaseName)
	if err != nil {
		return err
	}
	if err := h.CollectGarbage(); err != nil {
		return fmt.Errorf("builtin: %w", err)
	}
	work := func(ctx context.Context) {
		var running sync.WaitGroup
		running.Go(func() { e.run(ctx, "namespace-controller", namespaces.Run) })
		running.Go(func() { e.run(ctx, collectorName, collector.Run) })
		running.Go(func() { invalid.run(ctx) })
		running.Wait()
	}
	if !h.SharesStorage() {
		h.Go(work)
		return nil
	}
	h.Go(func(ctx context.Context) {
		opts := election.Options{Namespace: metav1.NamespaceSystem, Name: LeaseName, Identity: e.opts.Identity, Logger: e.opts.Logger}
		if err := election.Run(ctx, leases, opts, work); err != nil {
			e.opts.Logger.Error("no controller runs here", zap.Error(err))
		}
	})
	return nil
}

// LeaseName is the name of the Lease in kube-system by which servers with a shared storage elect the one that runs the
// controllers.
const LeaseName = "keelson-controllers"

// typed returns a typed registry of a kind of this extension, for a controller.
func typed[T runtime.Object](h *server.Host, resource schema.GroupResource, controller string) (*registry.Typed[T], error) {
	reg, err := h.Registry(resource)
	if err != nil {
		return nil, fmt.Errorf("builtin: %w", err)
	}
	out, err := registry.For[T](reg, account(controller))
	if err != nil {
		return nil, fmt.Errorf("builtin: %w", err)
	}
	return out, nil
}

// collectorName is the name of the garbage collector in Kubernetes.
const collectorName = "generic-garbage-collector"

// account returns the user that a controller acts as. It has the name of the controller in Kubernetes.
func account(controller string) *authn.User {
	return authn.ServiceAccount(metav1.NamespaceSystem, controller)
}

// run runs a controller.
func (e extension) run(ctx context.Context, name string, controller func(context.Context) error) {
	if err := controller(ctx); err != nil && !errors.Is(err, context.Canceled) {
		e.opts.Logger.Error("a controller ended", zap.String("controller", name), zap.Error(err))
	}
}
