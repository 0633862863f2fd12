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

// Extension adds a capability to a server. Install is called once, by Server.Install. Until it returns nothing that it adds can
// be seen by a request; then all of it can, policy before routes, so that no kind is served without what guards it. With an
// error nothing of it is left, and the methods of the host return an error. What Install starts is given to Host.Go, and may use
// the host, too, as long as it runs: to serve and withdraw kinds that come and go, for one. After Install each call of a method
// is seen at once, as a whole; several changes that belong together are another extension.
type Extension interface {
	Install(h *Host) error
}

// ExtensionFunc is a function that is an Extension: see the example of Server.Install.
type ExtensionFunc func(h *Host) error

// Install implements Extension.
func (f ExtensionFunc) Install(h *Host) error { return f(h) }

// Host is what an Extension may do to the server that installs it. Only Server.Install gives one out: a program that changes
// the policy of its server does so in an ExtensionFunc, or keeps the Host that the function was given. It may be used as long
// as the server lives. All methods may be called concurrently.
//
// The names of authenticators, authorizers, plug-ins and not-found handlers are shared by all extensions: one that is added under a name that
// exists takes the place of the other, whoever has added that, and so replaces a plug-in of the server's own. Names with a domain
// of the program's, such as "example.com/limit", are nobody else's. To remove what is not there is no error.
type Host struct {
	s *Server
	i *installation
}

// Install adds an extension, at any time before the server ends, also while it serves. It is how a program comes to a Host,
// whose methods are the live policy of the server: see ExtensionFunc.
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

// Scheme is the server's; kinds may be registered in it.
func (h *Host) Scheme() *runtime.Scheme { return h.s.scheme }

// SharesStorage reports whether other processes may write to the storage of the server, so that work which only one of them should
// do needs an election.
func (h *Host) SharesStorage() bool {
	k, ok := storage.As[storage.Knower](h.s.backend)
	if !ok {
		return true
	}
	_, known := k.Known()
	return !known
}

// Serve adds groups, or resources to groups served already. Either all of them are served afterwards, or none and
// the error says why: ErrServed among others, of a resource that is.
func (h *Host) Serve(groups ...Group) error {
	return h.s.set.Exchange(h.i.change, nil, described(groups))
}

// Withdraw ends serving resources, in all their versions, whether Serve or Options.Groups brought them: their watches
// end, requests under way end as they can, and their kinds and names become free. Stored objects stay where they are.
// Either all are withdrawn, or none and the error says why. What an extension serves is that extension's to withdraw. During
// Install they are served until that returns, so that a kind that is to come back has a Group.Scheme of its own: see Replace.
func (h *Host) Withdraw(resources ...schema.GroupResource) error {
	return h.s.set.Withdraw(h.i.change, resources)
}

// Replace ends serving resources, of which some may not be served, and serves groups, in one step: no request comes
// between, and if anything is wrong all stays as it was. Watches of the resources end, as do those of Withdraw; other
// requests under way finish with what they began with. Called during Install, it takes effect when Install returns. A request that
// was authenticated before that and reaches the resource after it is answered with 429 and Retry-After. Kinds that come back have
// a Group.Scheme of their own, for those in the server's scheme are known there until they are withdrawn.
func (h *Host) Replace(resources []schema.GroupResource, groups ...Group) error {
	return h.s.set.Exchange(h.i.change, resources, described(groups))
}

// Delegate has a handler answer all requests of a group version, such as one of an API server behind this one: those below
// /apis/<group>/<version>, or /api/<version> for the core group, and the version's discovery document there. It replaces the
// handler that was given before. A group version is either delegated or served by the server itself: where one is, the other is
// refused with ErrServed, unless the same Install withdraws it. What /apis, /apis/<group> and OpenAPI list is what the server
// serves itself.
//
// The handler gets what has been authenticated, and authorized by its path, as any other request; admission is up to the handler. A
// path that could be read in two ways, with "//", ".." or an encoded slash in it, is answered with 404, so that the handler finds in
// it what was authorized. The user is authn.UserFrom of the request's context; the credential is not passed on. Since discovery does
// not list a delegated version, kubectl finds its resources by --raw only.
func (h *Host) Delegate(gv schema.GroupVersion, handler http.Handler) error {
	if len(validation.IsDNS1123Subdomain(gv.Group)) > 0 && gv.Group != "" || len(validation.IsDNS1035Label(gv.Version)) > 0 || handler == nil {
		return fmt.Errorf("server: Host.Delegate %q: want a group version such as example.com/v1, and a handler", gv)
	}
	return h.s.set.Delegate(h.i.change, gv, handler)
}

// RemoveDelegate ends the delegation of a group version, if it is delegated. Requests under way finish.
func (h *Host) RemoveDelegate(gv schema.GroupVersion) error {
	return h.s.set.Delegate(h.i.change, gv, nil)
}

// ShowVerbs has discovery show these verbs of a served resource and no others, in all its versions, for objects that are
// on their way out for one. Verbs that the resource does not have are left out; no verbs at all are those that it has.
// Requests are answered as before.
func (h *Host) ShowVerbs(resource schema.GroupResource, verbs ...string) error {
	return h.s.set.ShowVerbs(h.i.change, resource, verbs)
}

// Authenticate adds an authenticator, or replaces the one of that name, for all requests that come afterwards. It is asked
// before that of the options, in kube-apiserver's order: see authn.Live. Its users become members of system:authenticated. If
// it has a method Ready(context.Context) error, /readyz asks it as the check "authenticator-" and the name; until it is ready it
// returns an error for the credentials that it is for, so that nobody is taken for system:anonymous.
func (h *Host) Authenticate(name string, a authn.Authenticator) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authenticate %q: %w", name, authn.ErrMember)
	}
	return h.i.do(func(m *members) {
		_ = m.known.Set(name, a)
		h.s.checkMember(authenticatorCheck+name, a)
	})
}

// Authorize adds an authorizer, or replaces the one of that name, for all requests that come afterwards. It is asked after
// those there are, and cannot deny what one of them allows: to deny comes first in the authorizer of Policy.Authorizer, or in
// that of the name MastersAuthorizer, such as authz.Union(deny, authz.Masters()). One that goes by stored objects reads
// them from Readers. It may be an authz.Pinner, so that all decisions about a request are made by one state of the objects.
// Until they are loaded it abstains, or, if it could deny, returns authz.Deny with an error; if it has a method
// Ready(context.Context) error, /readyz asks it as the check "authorizer-" and the name.
func (h *Host) Authorize(name string, a authz.Authorizer) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authorize %q: %w", name, authz.ErrMember)
	}
	return h.i.do(func(m *members) {
		_ = m.may.Set(name, a)
		h.s.checkMember(authorizerCheck+name, a)
	})
}

// Admit adds admission plug-ins, or replaces those of their names, all of them in one step or, with an error, none. They judge
// every change from now on, to every kind, in the order of admission.Order. A plug-in that has a method
// Ready(context.Context) error, as its Mutator or its Validator, is asked by /readyz as the check "admission-" and its name, and
// waited for: while it is not ready for ten seconds, what it handles is refused with 403.
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

// Control replaces the flow controller, which is that of Limits before; nil admits everything. Requests are released where
// they were admitted. Two controllers do not know of each other, so that for a while their limits add up.
func (h *Host) Control(c flowcontrol.Controller) error {
	return h.i.do(func(m *members) { m.turns = c })
}

// RemoveAuthenticator takes away the authenticator that Authenticate has added by that name, if there is one.
func (h *Host) RemoveAuthenticator(name string) error {
	return h.i.do(func(m *members) {
		m.known.Remove(name)
		h.s.checkMember(authenticatorCheck + name)
	})
}

// RemoveAuthorizer takes away the authorizer of that name, if there is one: that of an extension, or one of MastersAuthorizer,
// OptionsAuthorizer and DefaultAuthorizer.
func (h *Host) RemoveAuthorizer(name string) error {
	return h.i.do(func(m *members) {
		m.may.Remove(name)
		h.s.checkMember(authorizerCheck + name)
	})
}

// RemovePlugin takes away the admission plug-in of that name, if there is one.
func (h *Host) RemovePlugin(name string) error {
	return h.i.do(func(m *members) {
		m.plugins.Remove(name)
		h.s.checkMember(admissionCheck + name)
	})
}

// Readers read the objects of all kinds that are served, also of those that the extension brings itself: for policy,
// plug-ins and controllers.
func (h *Host) Readers() runtime.Readers { return h.s.policy.readers }

// CollectGarbage says that a garbage collector looks after the objects of all kinds from now on, so that a DELETE leaves
// its finalizers on an object where the policy Orphan or Foreground asks for them: see
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (h *Host) CollectGarbage() error {
	return h.i.do(func(*members) { h.s.collects.Store(true) })
}

// Catalogue says what the server serves.
func (h *Host) Catalogue() *catalogue.Catalogue { return h.s.Catalogue() }

// Registry returns the registry of a stored resource that is served, for registry.For. It is good until the resource is
// withdrawn or replaced; what it returns after that are errors.
func (h *Host) Registry(resource schema.GroupResource) (*registry.Registry, error) {
	return h.s.set.Registry(h.i.change, resource)
}

// Check adds health checks.
func (h *Host) Check(checks ...Check) error {
	checks = slices.Clone(checks)
	return h.i.do(func(*members) { h.s.health.add(checks...) })
}

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

// NotFound adds a function, or replaces the one of that name, which is asked about requests, authorized ones, that would be answered
// with 404 since there is no such resource, delegate or path, nor such a document of discovery or OpenAPI. It answers the request and
// returns true, or returns false, having written nothing, when the request is not its own: then the next is asked, in the order in
// which they were added. What a function writes before it returns false is sent before the 404. A path that could be read in two
// ways, as for Delegate, is answered with 404 without asking.
func (h *Host) NotFound(name string, serve func(w http.ResponseWriter, r *http.Request) bool) error {
	if name == "" || serve == nil {
		return fmt.Errorf("server: Host.NotFound %q: want a name and a function", name)
	}
	return h.s.set.AddNotFound(h.i.change, router.NotFound{Name: name, Serve: serve})
}

// RemoveNotFound takes away the function of that name which NotFound has added, if there is one.
func (h *Host) RemoveNotFound(name string) error {
	return h.s.set.AddNotFound(h.i.change, router.NotFound{Name: name})
}

// Go runs work in the background until it returns, which it must soon after ctx ends; the server waits for it
// before it closes the storage. It begins at once, also during Install; if that fails, its context ends. After the end of the
// server, or when Install has failed, Go calls work itself, with a context that has ended.
func (h *Host) Go(work func(ctx context.Context)) { h.i.begin(work) }

// OnClose has the server call f when it ends: after the last request was answered, or had no more time, and all that was given
// to Go has returned, and before the caches and the storage are closed. What was given last is called first. It is for what
// requests need to the end. After the end f is called at once, and if Install fails, when it does.
func (h *Host) OnClose(f func()) {
	h.i.onClose(f)
}

// Install implements Extension: a server that installs a group serves it.
func (g Group) Install(h *Host) error { return h.Serve(g) }
