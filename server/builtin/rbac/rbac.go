package rbac

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authz"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
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
	err = h.Serve(server.Group{Name: rbacv1.GroupName, Versions: []server.Version{{
		Name: "v1", Resources: []server.Resource{ClusterRole(), ClusterRoleBinding(), Role(), RoleBinding()},
	}}})
	if errors.Is(err, server.ErrServed) {
		return fmt.Errorf("rbac: %w; install the extension once, and leave its kinds to it", err)
	}
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	if e.opts.Authorize != nil {
		return e.opts.Authorize(Name, a)
	}
	return h.Authorize(Name, a)
}
