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
	"github.com/keelson-dev/keelson/server/audit"
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
// Server.Install calls Install once. Nothing that Install adds affects a request before Install returns. Then everything takes
// effect, the policy before the routes, so that no kind is served without the policy that guards it. If Install returns an error,
// everything that it added is removed, and the methods of the Host return an error from then on.
//
// Install starts background work with [Host.Go]. That work may use the Host as long as it runs, for example to serve and withdraw
// kinds that come and go. After Install has returned, each call of a method of the Host takes effect at once, as a whole. To make
// several changes in one step, install another extension.
type Extension interface {
	// Install adds the capability by the methods of h.
	Install(h *Host) error
}

// ExtensionFunc is a function that is an Extension. See the example of Server.Install.
type ExtensionFunc func(h *Host) error

// Install implements Extension.
func (f ExtensionFunc) Install(h *Host) error { return f(h) }

// Host has the methods by which an Extension changes the server that installs it. Only Server.Install provides a Host. A program
// that changes the policy of its server does so in an ExtensionFunc, or keeps the Host that the ExtensionFunc was called with:
//
//	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
//		return h.Authorize("example.com/readers", readers)
//	}))
//
// A Host may be used as long as the server lives, also while it serves. All methods may be called concurrently.
//
// # Names
//
// Authenticators, authorizers, plug-ins and not-found handlers, here called members, have names, which all extensions share. A
// member that is added under a name in use replaces the member of that name, even if another extension or Policy.Admission has
// added that one. Use names with a domain of the program, such as "example.com/limit". Removing a name that is not in use is not
// an error.
//
// # Readiness
//
// /readyz calls the method Ready(context.Context) error of each member that has this method, and names the members that are not
// ready:
//
//   - Until an authenticator is ready, requests with credentials of its kind are answered with 401.
//   - Until an authorizer that decides by stored objects is ready, it abstains. If it could deny, it denies with an error.
//   - Requests that a plug-in handles wait until the plug-in is ready for the first time. After ten seconds they are refused with
//     403.
//
// # One state for each request
//
// The server takes one state of the whole policy before it authenticates a request. It uses this state for authentication, flow
// control, audit, authorization, admission, and to decide whether an update may create an object. Each Install, and each later call of a
// method of the Host, affects a request as a whole or not at all. After a write of an object that decides about requests, such as
// a role, has been acknowledged, it applies to every request that begins on this server.
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
	h.i.run(h.i.hooks)
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

// Withdraw ends serving resources, in all their versions, whether Serve or Options.Groups added them. Watches of the resources
// end, other requests that have begun may finish or fail, and the names of kinds and resources become free. Stored objects stay
// in the storage. If Withdraw returns an error, nothing is withdrawn. If resources of two groups have the same objects, both must
// be withdrawn in one call. An extension should withdraw only resources that it has served itself. If Install calls Withdraw, the
// resources are served until Install returns. A kind that the same Install serves again needs a Group.Scheme of its own: see
// Replace.
func (h *Host) Withdraw(resources ...schema.GroupResource) error {
	return h.s.set.Withdraw(h.i.change, resources)
}

// Replace ends serving resources and serves groups, in one step: no request sees a state between. A resource that is not served
// is ignored. If it returns an error, nothing has changed. Watches of the resources end, as with Withdraw. Other requests that
// have begun finish with the kinds and handlers that they began with.
//
// If Install calls Replace, the change takes effect when Install returns. A request that was authenticated before the change, and
// reaches the resource after it, is answered with 429 and Retry-After. A kind that is served again needs a Group.Scheme of its
// own, since the server's scheme has the old kind until the old kind is withdrawn.
func (h *Host) Replace(resources []schema.GroupResource, groups ...Group) error {
	return h.s.set.Exchange(h.i.change, resources, described(groups))
}

// Delegate makes handler answer all requests of a group version, for example if another API server has that version: the requests
// below /apis/<group>/<version>, or /api/<version> for the core group, and the version's discovery document there. A second call
// for the same group version replaces the handler. A group version is either delegated or served by the server itself. Delegating
// one that is served, or serving one that is delegated, is refused with ErrServed, unless the same Install ends the other. /apis,
// /apis/<group> and OpenAPI list only what the server serves itself.
//
// The handler receives requests that have been authenticated, and authorized by their path. The server does no admission for
// them: the handler has to. A path that could be read in two ways, with "//", ".." or an encoded slash in it, is answered with
// 404, so that the path that the handler sees is the path that was authorized. authn.UserFrom returns the user from the request's
// context. The request has no credentials any more. kubectl reaches the resources of a delegated version only with --raw, since
// discovery does not list them.
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

// ShowVerbs makes discovery list only these verbs of a served resource, in all its versions, for example while its objects are
// being removed. Verbs that the resource does not have are left out. If ShowVerbs is called without verbs, discovery lists all
// verbs that the resource has again. ShowVerbs does not change which requests are answered.
func (h *Host) ShowVerbs(resource schema.GroupResource, verbs ...string) error {
	return h.s.set.ShowVerbs(h.i.change, resource, verbs)
}

// Authenticate adds an authenticator, or replaces the authenticator of that name, for all requests that come afterwards. The
// authenticators that Authenticate has added are called in the order of kube-apiserver (see authn.Live), for requests that are not of
// Policy.Users or the administrator, and before Policy.Authenticator.
// Their users become members of system:authenticated. If a has a method Ready(context.Context) error, /readyz calls it as the
// check "authenticator-" and the name. Until a is ready, a must return an error for credentials of its kind, so that no request
// with such a credential is taken for one of system:anonymous. The reasons of 401 answers are in Observe.Logger. The users of tokens
// are remembered: see Policy.TokenCache. Watches that have begun are not ended when an authenticator is replaced or removed.
func (h *Host) Authenticate(name string, a authn.Authenticator) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authenticate %q: %w", name, authn.ErrMember)
	}
	return h.i.do(func(m *members) {
		_ = m.known.Set(name, a)
		h.s.checkMember(authenticatorCheck+name, a)
	})
}

// Tokens returns an authenticator of the bearer tokens that the server accepts at the time of each call: those of authenticators
// that are made by authn.BearerToken and added by Authenticate, of Policy.Users and of the administrator. Their users are members of
// system:authenticated. It is for extensions that tell other servers whose token they have received.
func (h *Host) Tokens() authn.TokenAuthenticator { return h.s.policy }

// Audiences returns Policy.Audiences, which must not be changed.
func (h *Host) Audiences() []string { return h.s.opts.Policy.Audiences }

// Authorize adds an authorizer, or replaces the authorizer of that name, for all requests that come afterwards. A new authorizer
// is called after those that exist already, and cannot deny what one of them allows. An authorizer that has to deny before others
// allow must be the first part of Policy.Authorizer. Without Policy.Authorizer, replace the authorizer of the name
// MastersAuthorizer, for example by authz.Union(deny, authz.Masters()).
//
// An authorizer that decides by stored objects reads the objects from Readers. It may be an authz.Pinner, so that all decisions
// about a request use one state of the objects. Until the objects are loaded the authorizer must abstain. If it is one that can
// deny, it must return authz.Deny with an error instead. If a has a method Ready(context.Context) error, /readyz calls it as the
// check "authorizer-" and the name.
//
// Package github.com/keelson-dev/keelson/server/builtin/rbac has an authorizer by roles and bindings that are stored, and package
// github.com/keelson-dev/keelson/authz/rbac has one by roles that are given in Go.
func (h *Host) Authorize(name string, a authz.Authorizer) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.Authorize %q: %w", name, authz.ErrMember)
	}
	return h.i.do(func(m *members) {
		m.authorize(name, a)
		h.s.checkMember(authorizerCheck+name, a)
	})
}

// Authorizer returns the authorizer of all requests, for extensions and programs that ask what a user may do, or why: see authz.Explain,
// authz.SubjectsOf and authz.RulesOf. With the context of a request, or a registry.Call, it decides as for that request, and otherwise
// by the policy of now.
func (h *Host) Authorizer() authz.Authorizer { return pinned{h.s.policy} }

// AuthorizeByDefault is Authorize for rules that every server has that installs the extension, such as that service accounts may read
// the keys of the server, unless the program has rules of its own. It has no effect with Policy.Authorizer, after ReplaceDefaultRules,
// and if Authorize has added an authorizer of that name.
func (h *Host) AuthorizeByDefault(name string, a authz.Authorizer) error {
	if name == "" || a == nil {
		return fmt.Errorf("server: Host.AuthorizeByDefault %q: %w", name, authz.ErrMember)
	}
	return h.i.do(func(m *members) {
		if m.authorizeByDefault(name, a) {
			h.s.checkMember(authorizerCheck+name, a)
		}
	})
}

// ReplaceDefaultRules removes, in one step, DefaultAuthorizer and the authorizers that AuthorizeByDefault has added or will add, for an
// extension with rules that an administrator can change, such as stored roles. MastersAuthorizer and Policy.Authorizer stay.
func (h *Host) ReplaceDefaultRules() error {
	return h.i.do(func(m *members) {
		for _, name := range m.replaceDefaults() {
			h.s.checkMember(authorizerCheck + name)
		}
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
			_ = m.plugins.Set(timed(untilReady(p)))
			h.s.checkMember(admissionCheck+p.Name, p.Mutator, p.Validator)
		}
	})
}

// Control replaces the flow controller. The first one is that of Limits.MaxReadsInFlight and MaxWritesInFlight. nil admits every
// request. Each request is released by the controller that admitted it. The old and the new controller do not share their counts,
// so that the limits of both add up until the old requests have ended.
func (h *Host) Control(c flowcontrol.Controller) error {
	return h.i.do(func(m *members) { m.turns = c })
}

// Audit adds audit backends, or replaces those of the same names. If it returns an error, none is added. They record the requests
// that are authenticated from now on. A sink that has a goroutine or a file, such as an audit.Batch, belongs to the extension, which
// has to close it in OnClose.
func (h *Host) Audit(backends ...audit.Backend) error {
	for _, b := range backends {
		if err := b.Check(); err != nil {
			return fmt.Errorf("server: Host.Audit: %w", err)
		}
	}
	backends = slices.Clone(backends)
	return h.i.do(func(m *members) {
		for _, b := range backends {
			_ = m.audit.Set(b)
			h.s.watchSink(b)
			h.s.checkMember(auditCheck+b.Name, b.Sink)
		}
	})
}

// RemoveAudit removes the audit backend of that name, if there is one.
func (h *Host) RemoveAudit(name string) error {
	return h.i.do(func(m *members) {
		m.audit.Remove(name)
		h.s.checkMember(auditCheck + name)
	})
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
		m.authorize(name, nil)
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
// for authenticators, authorizers and controllers. A strategy reads objects of other kinds by its registry.Call, and an admission
// plug-in by its admission.Request:
//
//	airport, err := runtime.Read[*Airport](call).Get(call, "", flight.Spec.To, runtime.Freshness{})
func (h *Host) Readers() runtime.Readers { return h.s.policy.readers }

// CollectGarbage declares that a garbage collector handles the objects of all kinds from now on. A DELETE with the policy Orphan
// or Foreground then leaves the finalizers of that policy on the object: see
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (h *Host) CollectGarbage() error {
	return h.i.do(func(*members) { h.s.collects.Store(true) })
}

// Catalogue returns the list of the kinds that the server serves, with access to their objects.
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

// URL returns where clients reach the server: Serving.URL, or https:// and the address of the listener. It is "" until Run or Serve is
// called if Serving.URL is empty, and if the server is mounted in a program (Server.Handler).
func (h *Host) URL() string {
	if url := h.s.url.Load(); url != nil {
		return *url
	}
	return h.s.opts.Serving.URL
}

// CredentialsDir returns Serving.Credentials, the directory in which the server keeps its keys, or "" if it keeps none.
func (h *Host) CredentialsDir() string { return h.s.opts.Serving.Credentials }

// Limits returns the limits of the server, with defaults in place of zeros. A field whose default is that of another package,
// such as MaxBodyBytes, may still be 0, which means that default.
func (h *Host) Limits() Limits { return h.s.opts.Limits }

// Bytes returns the budget of Limits.Bytes, in which an extension counts memory that it takes on behalf of clients.
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

// NotFound adds a function, or replaces the function of that name, for authorized requests that would otherwise be answered with
// 404, because there is no such resource, delegate or path, and no such document of discovery or OpenAPI. The function answers
// the request and returns true, or returns false if the request is not for it. The functions are called in the order in which
// they were added, until one returns true. A function must write nothing before it returns false, because that would be sent
// before the 404. A path that could be read in two ways (see Delegate) is answered with 404 without a call of the functions.
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

// Start adds hooks, which run in the background after Install has returned. If Start returns an error, none is added: a name is taken,
// or a hook would wait for a hook that no extension has added, or for itself.
func (h *Host) Start(all ...Hook) error {
	return h.i.start(slices.Clone(all))
}

// BeforeStop adds a function that Run, Serve and Shutdown call when the server begins to end, while it still serves. They wait for all of these
// functions, for at most Limits.RequestTimeout, after which ctx ends. An error is logged. A function that has not returned a second after the end of ctx is named in the log, and
// goes on while the server ends without it. The name is for the log.
func (h *Host) BeforeStop(name string, f func(ctx context.Context) error) error {
	if name == "" || f == nil {
		return fmt.Errorf("server: Host.BeforeStop %q: want a name and a function", name)
	}
	return h.i.do(func(*members) {
		hooks := &h.s.hooks
		hooks.mu.Lock()
		defer hooks.mu.Unlock()
		hooks.stops = append(hooks.stops, stopHook{name, f})
	})
}

// Go runs work in the background. work must return soon after ctx ends. The server waits for work before it closes the storage.
// work begins at once, also during Install; if Install fails, ctx ends. If the server has ended already, or Install has failed,
// Go calls work with a context that has ended, and returns after work.
func (h *Host) Go(work func(ctx context.Context)) { h.i.begin(work) }

// OnClose makes the server call f when the server ends. At that time the last request has been answered, or its time is over, and
// all work that [Host.Go] started has returned. The caches and the storage are still open. The function that was added last is
// called first. f is for closing things that requests need until they end. If the server has ended already, f is called at once.
// If Install fails, f is called after Install.
func (h *Host) OnClose(f func()) {
	h.i.onClose(f)
}

// Install implements Extension: installing a group serves it.
func (g Group) Install(h *Host) error { return h.Serve(g) }
