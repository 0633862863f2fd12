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
	panics    *background.Panics
}

// controller is who empties namespaces, by the name that it has in Kubernetes.
func controller() *authn.User {
	return authn.ServiceAccount(metav1.NamespaceSystem, "namespace-controller")
}

// as returns a call of the controller's, about namespaces.
func as(ctx context.Context) *registry.Call { return registry.NewCall(ctx, controller(), "") }

func loudness(failures int) zapcore.Level {
	if failures+1 == loudFrom {
		return zap.WarnLevel
	}
	return zap.DebugLevel
}
