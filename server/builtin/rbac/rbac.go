package rbac

import (
	"errors"
	"fmt"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Name is that of the authorizer. Its check in /readyz, "authorizer-rbac", says whether it follows the stored roles and
// bindings.
const Name = "rbac"

// Options refines New. The zero Options is fine.
type Options struct {
	// Authorizer refines the authorizer. Its Hooks are called besides what Logger gets.
	Authorizer authzrbac.Options
	// Logger gets why roles and bindings cannot be read, and which are left out because they cannot be decoded; nil is silent.
	Logger *zap.Logger
}

// New returns the extension. It is installed once in a server, before it serves or while it does.
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
	err = h.Serve(server.Group{Name: rbacv1.GroupName, Versions: []server.Version{{
		Name: "v1", Resources: []server.Resource{ClusterRole(), ClusterRoleBinding(), Role(), RoleBinding()},
	}}})
	if errors.Is(err, server.ErrServed) {
		return fmt.Errorf("rbac: %w; install the extension once, and leave its kinds to it", err)
	}
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	return h.Authorize(Name, a)
}
