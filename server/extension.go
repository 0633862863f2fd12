package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Extension adds a capability to a server. Install is called once, by Server.Install. Until it returns nothing that it adds can
// be seen by a request; then all of it can, policy before routes, so that no kind is served without what guards it. With an
// error nothing of it is left. What Install starts is given to Host.Go, and may use the host, too, as long as it runs: to
// serve and withdraw kinds that come and go, for one, which then is seen at once.
type Extension interface {
	Install(h *Host) error
}

// ExtensionFunc is a function that is an Extension.
type ExtensionFunc func(h *Host) error

// Install implements Extension.
func (f ExtensionFunc) Install(h *Host) error { return f(h) }

// Host is what an Extension may do to the server that installs it. All methods may be called concurrently.
type Host struct {
	s *Server
	i *installation
}

// Install adds an extension. It may be called at any time before the server ends, also while it serves.
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
	installed = true
	return h.i.publish()
}

// Scheme is the server's; kinds may be registered in it.
func (h *Host) Scheme() *runtime.Scheme { return h.s.scheme }

// Backend is the server's storage. It is closed by the server, after everything given to Go has returned.
func (h *Host) Backend() storage.Backend { return h.s.backend }

// Serve adds groups, or resources to groups served already. Either all of them are served afterwards, or none and
// the error says why: ErrServed among others, of a resource that is.
func (h *Host) Serve(groups ...Group) error { return h.s.replace(h.i, nil, groups) }

// Withdraw ends serving resources, in all their versions, whether Serve or Options.Groups brought them: their watches
// end, requests under way end as they can, and their kinds and names become free. Stored objects stay where they are.
// Either all are withdrawn, or none and the error says why. What an extension serves is that extension's to withdraw.
func (h *Host) Withdraw(resources ...schema.GroupResource) error { return h.s.withdraw(h.i, resources) }

// Replace ends serving resources, of which some may not be served, and serves groups, in one step: no request comes
// between, and if anything is wrong all stays as it was. Watches of the resources end, as do those of Withdraw; other
// requests under way finish with what they began with. Kinds that come back have a Group.Scheme of their own, for those in
// the server's scheme are known there until they are withdrawn.
func (h *Host) Replace(resources []schema.GroupResource, groups ...Group) error {
	return h.s.replace(h.i, resources, groups)
}

// ShowVerbs has discovery show these verbs of a served resource and no others, in all its versions, for objects that are
// on their way out for one. Verbs that the resource does not have are left out; no verbs at all are those that it has.
// Requests are answered as before.
func (h *Host) ShowVerbs(resource schema.GroupResource, verbs ...string) error {
	return h.s.showVerbs(resource, verbs)
}

// Authenticate adds an authenticator, or replaces the one of that name, for all requests that come afterwards. It is asked
// before that of the options, in kube-apiserver's order: see authn.Live. Its users become members of system:authenticated.
func (h *Host) Authenticate(name string, a authn.Authenticator) error {
	return h.member("Authenticate", name, authn.ErrMember, name != "" && a != nil, func() { _ = h.s.policy.known.Set(name, a) })
}

// Authorize adds an authorizer, or replaces the one of that name, for all requests that come afterwards. It is asked after
// those there are. One that goes by stored objects is an authz.Pinner, and abstains until they are loaded; if it has a
// method Ready(context.Context) error, /readyz asks it as the check "authorizer-" and the name.
func (h *Host) Authorize(name string, a authz.Authorizer) error {
	return h.member("Authorize", name, authz.ErrMember, name != "" && a != nil, func() {
		_ = h.s.policy.may.Set(name, a)
		h.s.checkMember("authorizer-"+name, a)
	})
}

// Admit adds admission plug-ins, or replaces those of their names. They judge every change from now on, to every kind, in
// the order of admission.Order. A plug-in that has a method Ready(context.Context) error, as its Mutator or its Validator, is
// asked by /readyz as the check "admission-" and its name, and waited for: while it is not ready for ten seconds, what it
// handles is refused with 403.
func (h *Host) Admit(plugins ...admission.Plugin) error {
	for _, p := range plugins {
		err := h.member("Admit", p.Name, admission.ErrPlugin, p.Name != "" && (p.Mutator != nil || p.Validator != nil), func() {
			_ = h.s.policy.plugins.Set(untilReady(p))
			h.s.checkMember("admission-"+p.Name, p.Mutator, p.Validator)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Audit adds an audit sink, or replaces the one of that name.
func (h *Host) Audit(name string, sink audit.Sink) error {
	return h.member("Audit", name, audit.ErrMember, name != "" && sink != nil, func() { _ = h.s.policy.sinks.Set(name, sink) })
}

// Control replaces the flow controller, which is that of Limits before; nil admits everything. Requests are released where
// they were admitted.
func (h *Host) Control(c flowcontrol.Controller) {
	h.i.do(func() { h.s.policy.turns.Set(c) })
}

// Remove takes away the authenticators, authorizers, admission plug-ins and audit sinks of that name.
func (h *Host) Remove(name string) {
	h.i.do(func() {
		p := h.s.policy
		p.known.Remove(name)
		p.may.Remove(name)
		p.plugins.Remove(name)
		p.sinks.Remove(name)
		h.s.health.remove("authorizer-" + name)
		h.s.health.remove("admission-" + name)
	})
}

// member sets a member of the policy now, or when the extension is installed.
func (h *Host) member(what, name string, wrong error, ok bool, set func()) error {
	if !ok {
		return fmt.Errorf("server: Host.%s %q: %w", what, name, wrong)
	}
	h.i.do(set)
	return nil
}

// Readers read the objects of all kinds that are served, also of those that the extension brings itself: for policy,
// plug-ins and controllers.
func (h *Host) Readers() runtime.Readers { return h.s.policy.readers }

// CollectGarbage says that a garbage collector looks after the objects of all kinds from now on, so that a DELETE leaves
// its finalizers on an object where the policy Orphan or Foreground asks for them: see
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (h *Host) CollectGarbage() { h.i.do(func() { h.s.collects.Store(true) }) }

// Catalogue says what the server serves.
func (h *Host) Catalogue() *Catalogue { return h.s.Catalogue() }

// Registry returns the registry of a stored resource that is served, for registry.For. It is good until the resource is
// withdrawn or replaced; what it returns after that are errors.
func (h *Host) Registry(resource schema.GroupResource) (*registry.Registry, error) {
	return h.s.registryOf(resource)
}

// Check adds health checks.
func (h *Host) Check(checks ...Check) { h.i.do(func() { h.s.health.add(checks...) }) }

// Metrics takes collectors whose metrics /metrics is to show with those of the server.
func (h *Host) Metrics() prometheus.Registerer { return h.s.metrics.Registerer() }

// Handle serves a fixed path ("/debug/state") and, when it ends with "/", all below it, behind the filter chain. Paths
// of the API and those the server has itself are refused.
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

// Go runs work in the background until it returns, which it must soon after ctx ends; the server waits for it
// before it closes the storage. It begins at once, also during Install; if that fails, its context ends.
func (h *Host) Go(work func(ctx context.Context)) { h.i.begin(work) }

// OnClose has the server call f when it ends: after the last request was answered, or had no more time, and all that was given
// to Go has returned, and before the caches and the storage are closed. What was given last is called first. It is for what
// requests need to the end. After the end f is called at once, and if Install fails, when it does.
func (h *Host) OnClose(f func()) {
	h.i.onClose(f)
}

// onClose has f called when the server ends, or now if it has.
func (s *Server) onClose(f func()) {
	s.mu.Lock()
	late := s.ended
	if !late {
		s.closers = append(s.closers, f)
	}
	s.mu.Unlock()
	if late {
		f()
	}
}
