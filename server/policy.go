package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
)

// Names of the authorizers that a server has from the start.
const (
	// MastersAuthorizer allows everything to system:masters. It is called first.
	MastersAuthorizer = "system:masters"
	// OptionsAuthorizer is Policy.Authorizer. If Policy.Authorizer is set, a server has no MastersAuthorizer and no
	// DefaultAuthorizer, and all its other authorizers are those of extensions.
	OptionsAuthorizer = "options"
	// DefaultAuthorizer lets everybody read the health paths and /version, and lets authenticated users read discovery and
	// OpenAPI.
	DefaultAuthorizer = "default"
)

// policy is the live policy of a server: authentication, audit, authorization, admission and flow control. A request uses one state of
// it, which has all of a change or nothing of it. policy is the admission.Source of every request, and safe for concurrent use.
type policy struct {
	callers   []authn.Authenticator      // called in order: Policy.Users, the administrator, the members, and Policy.Authenticator
	tokens    []authn.TokenAuthenticator // those of callers that are not members, for AuthenticateToken
	whole     authn.Authenticator        // what authenticates requests: this policy, or what Policy.WrapAuthenticator made of it
	anonymous bool                       // a request in which no credential is found is one of system:anonymous
	readers   runtime.Readers

	mu      sync.Mutex // guards members, and is held while now is replaced
	members members
	now     atomic.Pointer[state]
}

// members are the members of the policy by their names, and the flow controller.
type members struct {
	known   authn.Live
	may     authz.Live
	plugins admission.Live
	turns   flowcontrol.Controller // nil admits everything
	audit   audit.Live

	defaults []string // names of the authorizers that rules of the program replace
	replaced bool     // the program has such rules
}

// state is the whole policy at one time. It is immutable, except for last.
type state struct {
	installed int64               // extensions that have been installed
	known     authn.Authenticator // the members; adds the group system:authenticated to their users
	members   authn.Current       // known, without the group
	may       authz.Authorizer    // a Pinner
	plugins   admission.Chain
	turns     flowcontrol.Controller
	audit     audit.Backends
	last      atomic.Pointer[admission.Policy] // the policy that Policy returned last
}

// change lets f change the members, and publishes the result in one step. installs is true if the change installs an extension.
// It returns how many extensions have been installed.
func (p *policy) change(installs bool, f func(m *members)) (installed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.members)
	if before := p.now.Load(); before != nil {
		installed = before.installed
	}
	if installs {
		installed++
	}
	m := &p.members
	known := m.known.Now()
	p.now.Store(&state{
		installed: installed, known: authn.AuthenticatedGroup(known), members: known, may: m.may.Now(), plugins: m.plugins.Now(), turns: m.turns, audit: m.audit.Now(),
	})
	return installed
}

// Policy implements admission.Source. It returns the same value while nothing changes.
func (p *policy) Policy(ctx context.Context) *admission.Policy {
	s := p.now.Load()
	may := s.may
	if pinner, ok := may.(authz.Pinner); ok {
		may = pinner.Pin(ctx)
	}
	if last := s.last.Load(); last != nil && last.Authorizer == may {
		return last
	}
	next := &admission.Policy{Authorizer: may, Plugins: s.plugins, Readers: p.readers, Installed: s.installed, State: s}
	s.last.Store(next)
	return next
}

// taken returns the state that the request of ctx uses, or the current state if the request has none.
func (p *policy) taken(ctx context.Context) *state {
	if taken := request.PolicyFrom(ctx); taken != nil {
		if s, ok := taken.State.(*state); ok {
			return s
		}
	}
	return p.now.Load()
}

// Authenticate implements authn.Authenticator: the server's own users are looked up before the members are called, so that their
// tokens are not sent to a webhook. A request with a wrong credential, or with a bearer token that no authenticator reads, is never
// taken for one without a credential. A response of authn.Anonymous counts only if no authenticator finds a credential and none fails.
func (p *policy) Authenticate(r *http.Request) (*authn.Response, error) {
	resp, err := authn.FirstUser(r, p.callers)
	if resp == nil && err == nil && p.anonymous {
		return authn.Anonymous().Authenticate(r)
	}
	return resp, err
}

// Strip removes the headers that an authenticator of the options reads.
func (p *policy) Strip(h http.Header) http.Header {
	for _, a := range p.callers {
		h = authn.Strip(a, h)
	}
	return h
}

// AuthenticateToken implements authn.TokenAuthenticator, for all users with tokens.
func (p *policy) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	all := authn.UnionTokens(append(slices.Clip(p.tokens), p.taken(ctx).members)...)
	return authn.AuthenticatedTokens(all).AuthenticateToken(ctx, token)
}

// authenticateByMembers authenticates a request by the members.
func (p *policy) authenticateByMembers(r *http.Request) (*authn.Response, error) {
	return p.taken(r.Context()).known.Authenticate(r)
}

// withoutCredentials returns the headers of a request without the credentials that an authenticator reads. What
// Policy.WrapAuthenticator has made of this policy need not have a method Strip.
func (p *policy) withoutCredentials(r *http.Request) http.Header {
	own := p.Strip(p.taken(r.Context()).members.Strip(r.Header))
	return authn.Strip(p.whole, own)
}

// pinned authorizes by the policy that the request uses, or by the current one if there is no request.
type pinned struct{ policy *policy }

func (p pinned) of(ctx context.Context) authz.Authorizer {
	taken := request.PolicyFrom(ctx)
	if taken == nil || taken.Authorizer == nil {
		taken = p.policy.Policy(ctx)
	}
	return taken.Authorizer
}

// Authorize implements authz.Authorizer.
func (p pinned) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	return p.of(ctx).Authorize(ctx, a)
}

// Explain implements authz.Explainer.
func (p pinned) Explain(ctx context.Context, a authz.Attributes) authz.Explanation {
	return authz.Explain(ctx, p.of(ctx), a)
}

// SubjectsFor implements authz.SubjectResolver.
func (p pinned) SubjectsFor(ctx context.Context, a authz.Attributes, limit int) authz.Subjects {
	return authz.SubjectsOf(ctx, p.of(ctx), a, limit)
}

// RulesFor implements authz.RuleResolver.
func (p pinned) RulesFor(ctx context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	return authz.RulesOf(ctx, p.of(ctx), user, namespace)
}

// turns calls the flow controller of the policy that the request uses.
type turns struct{ policy *policy }

// Admit implements flowcontrol.Controller.
func (t turns) Admit(ctx context.Context, a authz.Attributes) (func(), error) {
	if c := t.policy.taken(ctx).turns; c != nil {
		return c.Admit(ctx, a)
	}
	return func() {}, nil
}

// newPolicy makes the policy of a server, without the parts that need its credentials.
func newPolicy(o Policy) (*policy, error) {
	p := &policy{anonymous: o.Authenticator == nil}
	var err error
	p.change(false, func(m *members) { err = m.begin(o) })
	return p, err
}

// begin adds the members that the options name.
func (m *members) begin(o Policy) error {
	m.known.Cache = o.TokenCache
	for i, plugin := range o.Admission {
		plugin.Name = nameOption(i, plugin)
		if err := m.plugins.Set(timed(untilReady(plugin))); err != nil {
			return fmt.Errorf("server: Policy.Admission[%d]: %w", i, err)
		}
	}
	for i, b := range o.Audit {
		err := b.Check()
		if err == nil {
			err = m.audit.Set(b)
		}
		if err != nil {
			return fmt.Errorf("server: Policy.Audit[%d]: %w", i, err)
		}
	}
	if o.Authorizer != nil {
		m.replaced = true
		return m.may.Set(OptionsAuthorizer, authz.Plain{Authorizer: o.Authorizer})
	}
	if err := m.may.Set(MastersAuthorizer, authz.Masters()); err != nil {
		return err
	}
	m.authorizeByDefault(DefaultAuthorizer, publicRules())
	return nil
}

// authorize adds an authorizer of the program or of an extension, which replaceDefaults does not remove, or removes the one of that
// name if a is nil.
func (m *members) authorize(name string, a authz.Authorizer) {
	m.defaults = slices.DeleteFunc(m.defaults, func(of string) bool { return of == name })
	if a == nil {
		m.may.Remove(name)
		return
	}
	_ = m.may.Set(name, a) // neither is empty
}

// authorizeByDefault adds an authorizer that replaceDefaults removes, and reports whether it did. It does not if the program has rules of
// its own or an authorizer of that name.
func (m *members) authorizeByDefault(name string, a authz.Authorizer) bool {
	isDefault := slices.Contains(m.defaults, name)
	if m.replaced || !isDefault && slices.Contains(m.may.Names(), name) {
		return false
	}
	if !isDefault {
		m.defaults = append(m.defaults, name)
	}
	_ = m.may.Set(name, a) // neither is empty
	return true
}

// replaceDefaults removes the authorizers of authorizeByDefault, and returns their names.
func (m *members) replaceDefaults() []string {
	names := m.defaults
	m.defaults, m.replaced = nil, true
	for _, name := range names {
		m.may.Remove(name)
	}
	return names
}

// DefaultRules returns the authorizer of a server without Policy.Authorizer, for programs that compose one with it, as in
// authz.Union(own, server.DefaultRules()). It allows everything to system:masters, lets everybody read the health paths and /version,
// and lets authenticated users read discovery and OpenAPI.
func DefaultRules() authz.Authorizer { return authz.Union(authz.Masters(), publicRules()) }

// publicRules has the rules of the roles system:public-info-viewer and system:discovery of Kubernetes.
func publicRules() authz.Authorizer {
	return authz.Union(
		authz.AllowPaths("/healthz", "/livez", "/readyz", "/version", "/version/"),
		authz.ForGroup(authn.AuthenticatedAll, authz.AllowPaths("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")),
	)
}
