package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/internal/router"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Extension adds a capability to a server: groups, policy, paths, health checks, metrics and background work. Package
// github.com/keelson-dev/keelson/server/builtin has extensions of this library.
//
// Server.Install calls Install once. Requests see nothing of what it adds until it returns. Then they see all of it, policy
// before routes, so that no kind is served without the policy that guards it. If Install returns an error, nothing that it added
// is left, and the methods of the host return an error from then on.
//
// Install starts background work with [Host.Go]. That work may use the host as long as it runs, for example to serve and withdraw
// kinds that come and go. After Install has returned, each call of a method takes effect at once, as a whole. To make several
// changes in one step, install another extension.
type Extension interface {
	// Install adds the capability by the methods of h.
	Install(h *Host) error
}

// ExtensionFunc is a function that is an Extension. See the example of Server.Install.
type ExtensionFunc func(h *Host) error

// Install implements Extension.
func (f ExtensionFunc) Install(h *Host) error { return f(h) }

// Host has the methods by which an Extension changes the server that installs it. Only Server.Install provides one. A program
// that changes the policy of its server does so in an ExtensionFunc, or keeps the Host that this function was called with:
//
//	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
//		return h.Authorize("example.com/readers", readers)
//	}))
//
// A Host may be used as long as the server lives, also while it serves. All methods may be called concurrently.
//
// # Names
//
// The names of authenticators, authorizers, plug-ins and not-found handlers are shared by all extensions. A member that is added
// under a name in use replaces the member of that name, whichever extension has added it, and also a plug-in of the server
// itself. Use names with a domain of the program, such as "example.com/limit". Removing a name that is not in use is not an
// error.
//
// # Readiness
//
// /readyz calls the method Ready(context.Context) error of each member that has it, and names the members that are not ready:
//
//   - Until an authenticator is ready, requests with the credentials that it is for are answered with 401.
//   - Until an authorizer that decides by stored objects is ready, it abstains. If it could deny, it denies with an error.
//   - Requests that a plug-in handles wait until it is ready, for at most ten seconds. Then they are refused with 403.
//
// # One state for each request
//
// A request uses one state of the whole policy, which is taken before the request is authenticated. It is used for
// authentication, flow control, authorization, admission, and for whether an update may create an object. A request sees each
// Install, and each later call of a method of the Host, as a whole or not at all. A write that has been
// acknowledged counts in the decisions about every request that begins afterwards on this server.
type Host struct {
	s *Server
	i *installation
}

// Install adds an extension, at any time before the server ends, also while it serves. It is the only way for a program to get a
// Host, whose methods change the live policy of the server: see ExtensionFunc.
func (s *Server) Install(e Extension) error {
	if err := s.life.Err(); err != nil {
		return errors.New("server: Install: the server has ended")
	}
	if e == nil {
		return errors.New("server: Install: the extension is nil")
	}
	h := &Host{s, newInstallation(s)}
	installed := false
	defer func() { // also when Install panics
		if !installed {
			h.i.abandon()
		}
	}()
	if err := e.Install(h); err != nil {
		return err
	}
	if err := h.i.publish(); err != nil {
		return err
	}
	installed = true
	return nil
}

// Scheme returns the scheme of the server. Kinds may be registered in it.
func (h *Host) Scheme() *runtime.Scheme { return h.s.scheme }

// SharesStorage reports whether other processes may write to the storage of the server. If they may, work that only one process
// should do needs an election.
func (h *Host) SharesStorage() bool {
	k, ok := storage.As[storage.Knower](h.s.backend)
	if !ok {
		return true
	}
	_, known := k.Known()
	return !known
}

// Serve adds groups, or adds resources to groups that are served already. If it returns an error, nothing is added. The error
// wraps ErrServed if a resource is served already.
func (h *Host) Serve(groups ...Group) error {
	return h.s.set.Exchange(h.i.change, nil, described(groups))
}

// Withdraw ends serving resources, in all their versions, whether Serve or Options.Groups added them. Their watches end, other
// requests that have begun may finish or fail, and their kinds and names become free. Stored objects stay in the storage. If
// Withdraw returns an error, nothing is withdrawn. An extension should withdraw only resources that it has served itself. During
// Install the resources are served until Install returns; a kind that is to be served again then needs a Group.Scheme of its own:
// see Replace.
func (h *Host) Withdraw(resources ...schema.GroupResource) error {
	return h.s.set.Withdraw(h.i.change, resources)
}

// Replace ends serving resources, some of which may not be served, and serves groups, in one step: no request sees a state
// between. If it returns an error, nothing has changed. Watches of the resources end, as with Withdraw. Other requests that have
// begun finish with the kinds and handlers that they began with.
//
// During Install it takes effect when Install returns. A request that was authenticated before that, and reaches the resource
// after it, is answered with 429 and Retry-After. A kind that is served again needs a Group.Scheme of its own, since the server's
// scheme has the old kind until that is withdrawn.
func (h *Host) Replace(resources []schema.GroupResource, groups ...Group) error {
	return h.s.set.Exchange(h.i.change, resources, described(groups))
}

// Delegate has a handler answer all requests of a group version, such as one of an API server behind this one: the requests below
// /apis/<group>/<version>, or /api/<version> for the core group, and the version's discovery document there. It replaces the
// handler that was given before. A group version is either delegated or served by the server itself. While it is one, the other
// is refused with ErrServed, unless the same Install withdraws the first. /apis, /apis/<group> and OpenAPI list only what the
// server serves itself.
//
// The handler receives requests that have been authenticated, and authorized by their path. It does admission itself. A path that
// could be read in two ways, with "//", ".." or an encoded slash in it, is answered with 404, so that the path that the handler
// sees is the path that was authorized. The user is authn.UserFrom of the request's context; the credential is not passed on.
// kubectl reaches the resources of a delegated version only with --raw, since discovery does not list them.
func (h *Host) Delegate(gv schema.GroupVersion, handler http.Handler) error {
	if len(validation.IsDNS1123Subdomain(gv.Group)) > 0 && gv.Group != "" || len(validation.IsDNS1035Label(gv.Version)) > 0 || handler == nil {
		return fmt.Errorf("server: Host.Delegate %q: want a group version such as example.com/v1, and a handler", gv)
	}
	return h.s.set.Delegate(h.i.change, gv, handler)
}

// RemoveDelegate ends the delegation of a group version, if it is delegated. Requests that have begun finish.
func (h *Host) RemoveDelegate(gv schema.GroupVersion) error {
	return h.s.set.Delegate(h.i.change, gv, nil)
}

// ShowVerbs has discovery list only these verbs of a served resource, in all its versions, for example while its objects are
// being removed. Verbs that the resource does not have are left out. Without verbs discovery lists all verbs that the resource
// has. Requests are answered as before.
func (h *Host) ShowVerbs(resource schema.GroupResource, verbs ...string) error {
	return h.s.set.ShowVerbs(h.i.change, resource, verbs)
}

// Authenticate adds an authenticator, or replaces the authenticator of that name, for all requests that come afterwards. It is
// called before the authenticator of the options, in the order of kube-apiserver: see authn.Live. Its users become members of
// system:authenticated. If a has a method Ready(context.Context) error, /readyz calls it as the check "authenticator-" and the
// name. Until a is ready, it must return an error for the credentials that it is for, so that no such request is taken for one of
// system:anonymous.
func (h *Host) Authenticate(name string, a authn.Authenticator) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authenticate %q: %w", name, authn.ErrMember)
	}
	return h.i.do(func(m *members) {
		_ = m.known.Set(name, a)
		h.s.checkMember(authenticatorCheck+name, a)
	})
}

// Authorize adds an authorizer, or replaces the authorizer of that name, for all requests that come afterwards. It is called
// after those that are there already, and cannot deny what one of them allows. An authorizer that denies first has to be part of
// Policy.Authorizer, or of the authorizer of the name MastersAuthorizer, such as authz.Union(deny, authz.Masters()).
//
// An authorizer that decides by stored objects reads them from Readers. It may be an authz.Pinner, so that all decisions about a
// request use one state of the objects. Until the objects are loaded it must abstain or, if it could deny, return authz.Deny with
// an error. If it has a method Ready(context.Context) error, /readyz calls it as the check "authorizer-" and the name.
//
// Package github.com/keelson-dev/keelson/server/builtin/rbac has an authorizer by roles and bindings that are stored, and package
// github.com/keelson-dev/keelson/authz/rbac has one by roles that are given in Go.
func (h *Host) Authorize(name string, a authz.Authorizer) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authorize %q: %w", name, authz.ErrMember)
	}
	return h.i.do(func(m *members) {
		_ = m.may.Set(name, a)
		h.s.checkMember(authorizerCheck+name, a)
	})
}

// Admit adds admission plug-ins, or replaces those of the same names. If it returns an error, none is added. The plug-ins judge
// every change of every kind from now on, in the order of admission.Order. If the Mutator or the Validator of a plug-in has a
// method Ready(context.Context) error, /readyz calls it as the check "admission-" and the name. Requests that the plug-in handles
// wait until it is ready for the first time. After ten seconds they are refused with 403.
func (h *Host) Admit(plugins ...admission.Plugin) error {
	for _, p := range plugins {
		if err := p.Check(); err != nil {
			return fmt.Errorf("server: Host.Admit: %w", err)
		}
	}
	plugins = slices.Clone(plugins)
	return h.i.do(func(m *members) {
		for _, p := range plugins {
			_ = m.plugins.Set(untilReady(p))
			h.s.checkMember(admissionCheck+p.Name, p.Mutator, p.Validator)
		}
	})
}

// Control replaces the flow controller, which at first is the one that Limits describe. nil admits every request. Each request is
// released by the controller that admitted it. The old and the new controller do not share their counts, so that the limits of
// both add up until the old requests have ended.
func (h *Host) Control(c flowcontrol.Controller) error {
	return h.i.do(func(m *members) { m.turns = c })
}

// RemoveAuthenticator removes the authenticator that Authenticate has added by that name, if there is one.
func (h *Host) RemoveAuthenticator(name string) error {
	return h.i.do(func(m *members) {
		m.known.Remove(name)
		h.s.checkMember(authenticatorCheck + name)
	})
}

// RemoveAuthorizer removes the authorizer of that name, if there is one: that of an extension, or MastersAuthorizer,
// OptionsAuthorizer or DefaultAuthorizer.
func (h *Host) RemoveAuthorizer(name string) error {
	return h.i.do(func(m *members) {
		m.may.Remove(name)
		h.s.checkMember(authorizerCheck + name)
	})
}

// RemovePlugin removes the admission plug-in of that name, if there is one.
func (h *Host) RemovePlugin(name string) error {
	return h.i.do(func(m *members) {
		m.plugins.Remove(name)
		h.s.checkMember(admissionCheck + name)
	})
}

// Readers returns readers of the objects of all kinds that are served, and of the kinds that the extension itself adds. They are
// for policy, plug-ins and controllers. A strategy or a plug-in reads another kind by its call:
//
//	airport, err := runtime.Read[*Airport](call).Get(call, "", flight.Spec.To, runtime.Freshness{})
func (h *Host) Readers() runtime.Readers { return h.s.policy.readers }

// CollectGarbage declares that a garbage collector handles the objects of all kinds from now on. A DELETE with the policy Orphan
// or Foreground then leaves the finalizers of that policy on the object: see
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (h *Host) CollectGarbage() error {
	return h.i.do(func(*members) { h.s.collects.Store(true) })
}

// Catalogue returns the catalogue of what the server serves.
func (h *Host) Catalogue() *catalogue.Catalogue { return h.s.Catalogue() }

// Registry returns the registry of a resource that is served, for registry.For. It returns an error for a resource whose Storage
// is not a *registry.Registry. It can be used until the resource is withdrawn or replaced. After that its methods return errors.
func (h *Host) Registry(resource schema.GroupResource) (*registry.Registry, error) {
	return h.s.set.Registry(h.i.change, resource)
}

// Check adds health checks.
func (h *Host) Check(checks ...Check) error {
	checks = slices.Clone(checks)
	return h.i.do(func(*members) { h.s.health.add(checks...) })
}

// Metrics returns a registerer for collectors whose metrics /metrics shows with those of the server.
func (h *Host) Metrics() prometheus.Registerer { return h.s.metrics.Registerer() }

// Limits returns the limits of the server, with the defaults in place of zeros where this package has the default.
func (h *Host) Limits() Limits { return h.s.opts.Limits }

// Bytes returns the budget of Limits.Bytes, for memory that an extension takes on behalf of clients.
func (h *Host) Bytes() *flowcontrol.Budget { return h.s.bytes }

// Handle serves a fixed path ("/debug/state"), behind the filter chain. If path ends with "/", it also serves all paths below it.
// Paths of the API, and paths that the server serves itself, are refused.
func (h *Host) Handle(path string, handler http.Handler) error {
	if !strings.HasPrefix(path, "/") || path == "/" || strings.ContainsAny(path, "{}*") {
		return fmt.Errorf("server: path %q: want an absolute path other than / and without patterns", path)
	}
	for _, taken := range []string{"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz", "/metrics"} {
		if path == taken || strings.HasPrefix(path, taken+"/") {
			return fmt.Errorf("server: path %q: the server serves %s itself; choose another path, or add to it by Serve, Check or Metrics", path, taken)
		}
	}
	if handler == nil {
		return fmt.Errorf("server: path %q: the handler is nil", path)
	}
	return h.i.handle(path, handler)
}

// NotFound adds a function, or replaces the function of that name, for authorized requests that would be answered with 404,
// because there is no such resource, delegate or path, and no such document of discovery or OpenAPI. The function answers the
// request and returns true, or writes nothing and returns false if the request is not for it. Then the next function is called,
// in the order in which they were added. Anything that a function writes before it returns false is sent before the 404. A path
// that could be read in two ways, as for Delegate, is answered with 404 without a call of the functions.
func (h *Host) NotFound(name string, serve func(w http.ResponseWriter, r *http.Request) bool) error {
	if name == "" || serve == nil {
		return fmt.Errorf("server: Host.NotFound %q: want a name and a function", name)
	}
	return h.s.set.AddNotFound(h.i.change, router.NotFound{Name: name, Serve: serve})
}

// RemoveNotFound removes the function that NotFound has added by that name, if there is one.
func (h *Host) RemoveNotFound(name string) error {
	return h.s.set.AddNotFound(h.i.change, router.NotFound{Name: name})
}

// Go runs work in the background. work must return soon after ctx ends. The server waits for it before it closes the storage.
// work begins at once, also during Install; if Install fails, ctx ends. After the end of the server, or after Install has failed,
// Go calls work itself, with a context that has ended.
func (h *Host) Go(work func(ctx context.Context)) { h.i.begin(work) }

// OnClose has the server call f when it ends. At that time the last request has been answered, or its time is over, and all work
// that [Host.Go] started has returned. The caches and the storage are still open. The function that was added last is called
// first. f is for closing things that requests need until they end. After the end of the server f is called at once. If Install
// fails, f is called then.
func (h *Host) OnClose(f func()) {
	h.i.onClose(f)
}

// Install implements Extension: installing a group serves it.
func (g Group) Install(h *Host) error { return h.Serve(g) }
