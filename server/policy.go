package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	// MastersAuthorizer allows everything to system:masters. It comes first.
	MastersAuthorizer = "system:masters"
	// OptionsAuthorizer is that of Policy.Authorizer, in whose presence there are no others but those of extensions.
	OptionsAuthorizer = "options"
	// DefaultAuthorizer lets everybody read the health paths and /version, and who is authenticated discovery and OpenAPI.
	DefaultAuthorizer = "default"
)

// policy is the live policy of a server: who asks, what they may do, what changes are accepted, and whose turn it is. It is
// the admission.Source of every request, and safe for concurrent use.
type policy struct {
	known     authn.Live          // of extensions
	members   authn.Authenticator // known, in the group system:authenticated
	own       authn.Authenticator // asked after them
	anonymous bool                // a request of which own has no opinion is that of system:anonymous
	may       authz.Live
	plugins   admission.Live
	turns     flowcontrol.Live
	sinks     audit.Live
	readers   runtime.Readers

	installed atomic.Int64                     // extensions that were
	last      atomic.Pointer[admission.Policy] // the last that was taken
}

// Policy implements admission.Source. While nothing changes it returns the same.
func (p *policy) Policy(ctx context.Context) *admission.Policy {
	installed := p.installed.Load() // before their members are taken, who are there by then
	may, plugins := p.may.Pin(ctx), p.plugins.Now()
	if last := p.last.Load(); last != nil && last.Installed == installed && last.Authorizer == may && same(last.Plugins, plugins) {
		return last
	}
	next := &admission.Policy{Authorizer: may, Plugins: plugins, Readers: p.readers, Installed: installed}
	p.last.Store(next)
	return next
}

// same reports whether two chains are one slice.
func same(a, b admission.Chain) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Authenticate implements authn.Authenticator: the members come before the server's own, and a wrong credential is never
// taken for none.
func (p *policy) Authenticate(r *http.Request) (*authn.Response, error) {
	resp, err := p.members.Authenticate(r)
	if resp != nil {
		return resp, nil
	}
	own, ownErr := p.own.Authenticate(r)
	switch {
	case own != nil && (err == nil || own.User.Name != authn.AnonymousUser):
		return own, nil
	case err != nil || ownErr != nil:
		return nil, errors.Join(err, ownErr)
	case p.anonymous:
		return authn.Anonymous().Authenticate(r)
	}
	return nil, nil
}

// pinned authorizes by the policy that was taken for the request.
type pinned struct{ policy *policy }

// Authorize implements authz.Authorizer.
func (p pinned) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	if taken := request.PolicyFrom(ctx); taken != nil {
		return taken.Authorizer.Authorize(ctx, a)
	}
	return p.policy.may.Authorize(ctx, a)
}

// newPolicy makes the policy of a server, but for what needs its credentials.
func newPolicy(o Policy) (*policy, error) {
	p := &policy{own: o.Authenticator}
	p.members = authn.AuthenticatedGroup(&p.known)
	for i, plugin := range o.Admission {
		if plugin.Name == "" {
			plugin.Name = fmt.Sprintf("options-%d", i)
		}
		if err := p.plugins.Set(plugin); err != nil {
			return nil, fmt.Errorf("server: Policy.Admission[%d]: %w", i, err)
		}
	}
	if _, pins := o.Authorizer.(authz.Pinner); pins {
		return p, p.may.Set(OptionsAuthorizer, o.Authorizer)
	}
	if o.Authorizer != nil {
		return p, p.may.Set(OptionsAuthorizer, authz.Plain{Authorizer: o.Authorizer})
	}
	// What the roles system:public-info-viewer and system:discovery of Kubernetes allow.
	public := authz.Union(
		authz.AllowPaths("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"),
		authz.ForGroup(authn.AuthenticatedAll, authz.AllowPaths("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")),
	)
	return p, errors.Join(p.may.Set(MastersAuthorizer, authz.Masters()), p.may.Set(DefaultAuthorizer, public))
}
