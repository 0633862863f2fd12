package lifecycle

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaceKind     = schema.GroupKind{Kind: "Namespace"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	accessReviews     = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}
)

// SystemNamespaces returns the namespaces that always exist, in the order in which they are created.
func SystemNamespaces() []string {
	return append(immortalNamespaces(), corev1.NamespaceNodeLease)
}

// immortalNamespaces returns the namespaces that cannot be deleted.
func immortalNamespaces() []string {
	return []string{metav1.NamespaceSystem, metav1.NamespacePublic, metav1.NamespaceDefault}
}

// firstAttempt is the maximum time that Install waits for the storage.
const firstAttempt = 3 * time.Second

// Options are the options of Install. With the zero Options the package behaves as kube-apiserver.
type Options struct {
	// AllowMissingNamespaces allows creates in namespaces that do not exist. Creates in a namespace that is being deleted are
	// still refused. Set it on all servers of a storage, or on none.
	AllowMissingNamespaces bool
	// NoAdmission leaves out the admission plug-in: objects may be created in namespaces that do not exist or are being
	// deleted, and the system namespaces may be deleted. Set it on all servers of a storage, or on none.
	NoAdmission bool
	// Logger receives failures that are tried again, and panics of the program's code. With nil nothing is logged.
	Logger *zap.Logger
}

// Lifecycle manages the namespaces of a server. Install makes one.
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
	passes    chan struct{} // holds a token for each pass or sweep over the content of a namespace
	panics    *background.Panics
}

// controller returns the user of the namespace controller, with its name in Kubernetes.
func controller() *authn.User {
	return authn.ServiceAccount(metav1.NamespaceSystem, "namespace-controller")
}

// as returns a call about namespaces by the controller.
func as(ctx context.Context) *registry.Call { return registry.NewCall(ctx, controller(), "") }

func loudness(failures int) zapcore.Level {
	if failures+1 == loudFrom {
		return zap.WarnLevel
	}
	return zap.DebugLevel
}
