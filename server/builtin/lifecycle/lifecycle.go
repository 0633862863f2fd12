package lifecycle

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

var (
	namespaceKind     = schema.GroupKind{Kind: "Namespace"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	accessReviews     = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}
)

// SystemNamespaces are the namespaces that always exist, in the order in which they are made.
func SystemNamespaces() []string {
	return append(immortalNamespaces(), corev1.NamespaceNodeLease)
}

// immortalNamespaces are those that cannot be deleted.
func immortalNamespaces() []string {
	return []string{metav1.NamespaceSystem, metav1.NamespacePublic, metav1.NamespaceDefault}
}

// firstAttempt bounds how long Install waits for the storage.
const firstAttempt = 3 * time.Second

// Options refines Install. The zero Options is as kube-apiserver does it.
type Options struct {
	// AllowMissingNamespaces lets objects be created in namespaces that do not exist, as if there were no namespaces. In
	// one that is being deleted they are refused all the same. Set it on all servers of a storage, or on none.
	AllowMissingNamespaces bool
	// NoAdmission leaves out the admission plug-in: objects may be created in namespaces that do not exist or are being
	// deleted, and the system namespaces may be deleted. Set it on all servers of a storage, or on none.
	NoAdmission bool
	// Logger gets what fails and is tried again, and panics of the program's; nil is silent.
	Logger *zap.Logger
}

// Lifecycle looks after the namespaces of a server. Install makes one.
type Lifecycle struct {
	gate      *gate
	typed     *registry.Typed[*corev1.Namespace]
	registry  *registry.Registry
	status    *registry.StatusView
	finalizer *Finalizer
	catalogue *catalogue.Catalogue
	log       *zap.Logger
	system    system
	following chan struct{} // closed when keep has seen all namespaces once, or has ended
	passes    chan struct{} // holds a token for each pass, or sweep, over the content of a namespace
	panicked  atomic.Int64  // when a panic was last logged as an error, in seconds of Unix
}

// Install begins to look after the namespaces of the server: it opens the finalizer, adds the admission plug-in before all
// others and the health check "namespaces", which fails until the system namespaces exist, makes these and begins to
// follow all namespaces. It waits for that some seconds at most; from then on work in the background goes on with it.
//
// The kind Namespace of the core group must be served: cluster-scoped, with the field status.phase to select by, with the
// subresource finalize and with HoldsContent in its Strategy. The content of namespaces that are deleted stays until
// somebody calls Run.
func Install(h *server.Host, f *Finalizer, o Options) (*Lifecycle, error) {
	l, err := install(h, f, o)
	if err != nil {
		return nil, fmt.Errorf("lifecycle of namespaces: %w", err)
	}
	return l, nil
}

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
	select { // so that no namespace goes unseen which this server lets something into
	case <-l.following:
	case <-ctx.Done():
	}
	return l, nil
}

// controller is who empties namespaces, by the name that it has in Kubernetes.
func controller() *authn.User {
	return authn.ServiceAccount(metav1.NamespaceSystem, "namespace-controller")
}

// as returns a call of the controller's, about namespaces.
func as(ctx context.Context) *registry.Call { return registry.NewCall(ctx, controller(), "") }

// pause waits between attempts: for d, until one of the channels is closed or sent to, or until ctx ends, which it
// reports as false. The channels may be nil.
func pause(ctx context.Context, d time.Duration, changed, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// doubling is how long to wait before the next attempt: twice as long each time, within bounds.
func doubling(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least, Factor: 2, Steps: math.MaxInt, Cap: most}
}
