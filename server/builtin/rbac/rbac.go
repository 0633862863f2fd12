package rbac

import (
	"errors"
	"fmt"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Name is that of the authorizer, and of the check in /readyz that says whether it follows the stored roles and bindings.
const Name = "rbac"

// Options refines New. The zero Options is fine.
type Options struct {
	// Authorizer refines the authorizer. Its Hooks are called besides what Logger gets.
	Authorizer authzrbac.Options
	// Logger gets why roles and bindings cannot be read; nil is silent.
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
	failed := o.Hooks.Failed
	o.Hooks.Failed = func(err error) {
		e.opts.Logger.Error("requests are decided by roles and bindings as they were", zap.Error(err))
		if failed != nil {
			failed(err)
		}
	}
	a, err := follow(h, o)
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
	h.Check(server.Check{Name: Name, ReadyOnly: true, Check: a.Ready})
	return decide(h, a)
}

// What the extension needs of a Host besides Serve and Check is in follow and decide.

// follow makes the authorizer of the objects that the server has.
func follow(h *server.Host, o authzrbac.Options) (*authzrbac.Authorizer, error) {
	return authzrbac.New(h.Readers(), o)
}

// decide has the server ask the authorizer from now on: after the kinds are served, for it only allows, and has nothing to
// allow by before.
func decide(h *server.Host, a *authzrbac.Authorizer) error { return h.Authorize(Name, a) }
