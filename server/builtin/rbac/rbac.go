package rbac

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authz"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/authz/rbac/bootstrap"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Name is the name of the authorizer. Its check in /readyz, "authorizer-rbac", reports whether it follows the stored roles and
// bindings.
const Name = "rbac"

// Options are the options of New. The zero Options is valid.
type Options struct {
	// Authorizer are the options of the authorizer. The extension calls the Hooks of Authorizer, and also logs the same errors to
	// Logger.
	Authorizer authzrbac.Options
	// Bootstrap are roles and bindings (of k8s.io/api/rbac/v1) that the server makes when it starts, if they are missing, and
	// completes: see package authz/rbac/bootstrap. nil is bootstrap.Kubernetes(), which are those of kube-apiserver. An empty
	// slice makes none. If there are any, they replace the server's default rules about discovery and the health paths.
	Bootstrap []runtime.Object
	// NoControllers leaves out the controller that fills in the rules of aggregated ClusterRoles. In Kubernetes it runs in
	// kube-controller-manager.
	NoControllers bool
	// Authorize adds the authorizer to the server; nil is Host.Authorize. It is for a program that asks it together with others.
	Authorize func(name string, a authz.Authorizer) error
	// Logger receives the errors of reading roles and bindings, and the objects that are ignored because they cannot be decoded.
	// With nil nothing is logged.
	Logger *zap.Logger
}

// New returns the extension. Install it once in a server, before or while the server serves.
func New(o Options) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return extension{o}
}

type extension struct{ opts Options }

// Install implements server.Extension.
func (e extension) Install(h *server.Host) error {
	o := e.opts.Authorizer
	failed, unreadable := o.Hooks.Failed, o.Hooks.Unreadable
	o.Hooks.Failed = func(err error) {
		e.opts.Logger.Error("roles and bindings cannot be read, and allow nothing", zap.Error(err))
		if failed != nil {
			failed(err)
		}
	}
	o.Hooks.Unreadable = func(err error) {
		e.opts.Logger.Error("some roles or bindings cannot be read, and allow nothing", zap.Error(err))
		if unreadable != nil {
			unreadable(err)
		}
	}
	a, err := authzrbac.New(h.Readers(), o)
	if err != nil {
		return err
	}
	guard := &escalation{roles: a}
	err = h.Serve(server.Group{Name: rbacv1.GroupName, Versions: []server.Version{{
		Name: "v1", Resources: []server.Resource{clusterRole(guard), clusterRoleBinding(guard), role(guard), roleBinding(guard)},
	}}})
	if errors.Is(err, server.ErrServed) {
		return fmt.Errorf("rbac: %w; install the extension once, and leave its kinds to it", err)
	}
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	authorize := h.Authorize
	if e.opts.Authorize != nil {
		authorize = e.opts.Authorize
	}
	if err := authorize(Name, a); err != nil {
		return err
	}
	return e.start(h)
}

// start adds the hooks.
func (e extension) start(h *server.Host) error {
	objects := e.opts.Bootstrap
	if objects == nil {
		objects = bootstrap.Kubernetes()
	}
	var before []string
	if len(objects) > 0 {
		w, err := wantedOf(objects)
		if err != nil {
			return fmt.Errorf("rbac: %w", err)
		}
		if err := startBootstrap(h, w, e.opts.Logger); err != nil {
			return fmt.Errorf("rbac: %w", err)
		}
		before = []string{HookName}
	}
	if e.opts.NoControllers {
		return nil
	}
	if err := startAggregation(h, before, e.opts.Logger); err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	return nil
}
