package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// DefaultIssuer is the default issuer of tokens.
const DefaultIssuer = "https://kubernetes.default.svc"

// Authorizer is the name of the authorizer that lets service accounts read the documents about the keys, as the role
// system:service-account-issuer-discovery of Kubernetes does. That role replaces it when package builtin/rbac is installed.
const Authorizer = "service-account-issuer-discovery"

// Options are the options of New. The zero Options is usable.
type Options struct {
	// Issuers are the issuers of tokens that are accepted. The first one is that of new tokens. nil is DefaultIssuer.
	Issuers []string
	// Audiences are those whom a token is for if no audiences are requested. nil means Policy.Audiences of the server and, without such,
	// the first issuer.
	Audiences []string
	// SigningKeyFile is a file with private keys in PEM; "" is service-accounts.pem in Serving.Credentials. The first key signs.
	SigningKeyFile string
	// KeyFiles are files with further keys that verify tokens, such as the public keys of other servers.
	KeyFiles []string
	// KeysURI is the URL of the keys in the discovery document; "" is /openid/v1/jwks below the URL of the server.
	KeysURI string
	// MaxExpiration bounds how long a token can be requested for, at least an hour; 0 is 2^32 seconds.
	MaxExpiration time.Duration
	// NoExtension keeps a token for a Pod that is requested for 3607 seconds from being valid for a year. Old clients need such tokens,
	// because they do not read a token again.
	NoExtension bool
	// NoLookup accepts tokens of Secrets without a look at the Secret and the account.
	NoLookup bool
	// RootCA are the certificates, in PEM, by which clients verify the server. They are published in each namespace and in the Secrets of
	// tokens. nil publishes none.
	RootCA []byte
	// UnusedTokens is how long the token of a Secret that its account lists may be unused before it is marked invalid and refused, and
	// again before the Secret is deleted, as by the flag --legacy-service-account-token-clean-up-period of kube-controller-manager. 0 is
	// 365 days, and less than 0 keeps all.
	UnusedTokens time.Duration
	// NoControllers leaves out the controllers. In Kubernetes they run in kube-controller-manager.
	NoControllers bool
	// Reload is the time between two reads of the files with keys; 0 is 10 s.
	Reload time.Duration
	// Logger receives failures that are tried again. With nil nothing is logged.
	Logger *zap.Logger
}

// New returns the extension. Install it once, after package builtin, whose namespaces, Secrets and ConfigMaps it needs.
func New(o Options) server.Extension {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if len(o.Issuers) == 0 {
		o.Issuers = []string{DefaultIssuer}
	}
	o.UnusedTokens = cmp.Or(o.UnusedTokens, defaultUnused)
	return extension{o}
}

type extension struct{ o Options }

// check returns an error for options that cannot be used.
func (o Options) check() error {
	const least = time.Hour
	switch {
	case o.MaxExpiration != 0 && (o.MaxExpiration < least || o.MaxExpiration > time.Duration(mostLife)*time.Second):
		return fmt.Errorf("Options.MaxExpiration is %s: want at least an hour and at most 2^32 seconds, or 0", o.MaxExpiration)
	case slices.Contains(o.Issuers, ""):
		return errors.New("Options.Issuers has an empty issuer")
	case o.Reload < 0:
		return errors.New("Options.Reload must not be negative")
	}
	return nil
}

// Install implements server.Extension.
func (e extension) Install(h *server.Host) error {
	if err := e.install(h); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	return nil
}

func (e extension) install(h *server.Host) error {
	if err := e.o.check(); err != nil {
		return err
	}
	if e.o.Audiences == nil {
		if e.o.Audiences = h.Audiences(); len(e.o.Audiences) == 0 {
			e.o.Audiences = e.o.Issuers[:1]
		}
	}
	keys, err := openKeys(h, e.o)
	if err != nil {
		return err
	}
	issuer := serviceaccount.Issuer{Keys: keys, URL: e.o.Issuers[0]}
	if err := e.serve(h, issuer); err != nil {
		return err
	}
	hooks, err := newHooks(h, e.o)
	if err != nil {
		return err
	}
	auth, err := serviceaccount.New(h.Readers(), keys, serviceaccount.Options{
		Issuers: e.o.Issuers, Audiences: e.o.Audiences, NoLookup: e.o.NoLookup, Hooks: hooks,
	})
	if err != nil {
		return err
	}
	if err := h.Authenticate(authn.ServiceAccounts, authn.BearerToken(auth)); err != nil {
		return err
	}
	if err := e.publish(h, keys); err != nil {
		return err
	}
	if e.o.NoControllers {
		return nil
	}
	return startControllers(h, issuer, e.o)
}

// serve serves the kind and its subresource.
func (e extension) serve(h *server.Host, issuer serviceaccount.Issuer) error {
	if h.Scheme().Lookup(tokenKind()) == nil {
		if err := runtime.Register(h.Scheme(), tokenKind(), runtime.KindOptions[*authenticationv1.TokenRequest]{}); err != nil {
			return err
		}
	}
	token := server.Subresource{Kind: tokenKind(), Storage: &tokens{issuer: issuer, audiences: e.o.Audiences, most: e.o.MaxExpiration, extend: !e.o.NoExtension}}
	return h.Serve(server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{serviceAccount(token)}}}})
}

// newHooks returns the hooks of the authenticator: uses of tokens are counted, and those of legacy tokens are noted in their Secrets.
func newHooks(h *server.Host, o Options) (serviceaccount.Hooks, error) {
	used, err := newUses(h, o.Logger)
	if err != nil {
		return serviceaccount.Hooks{}, fmt.Errorf("%w; install package builtin first", err)
	}
	since, err := newTracking(h, o.Logger)
	if err != nil {
		return serviceaccount.Hooks{}, fmt.Errorf("%w; install package builtin first", err)
	}
	counted, err := newCounters(h)
	if err != nil {
		return serviceaccount.Hooks{}, err
	}
	h.Go(since.run)
	return serviceaccount.Hooks{Used: used.note, Verified: counted.count}, nil
}

// publish serves the documents about the keys, if the issuer can have such, and lets service accounts read them.
func (e extension) publish(h *server.Host, keys *serviceaccount.Keys) error {
	issuer := e.o.Issuers[0]
	if err := serviceaccount.CheckIssuer(issuer); err != nil {
		e.o.Logger.Warn("the keys of service accounts are not published", zap.Error(err))
		return nil
	}
	if err := h.AuthorizeByDefault(Authorizer, authz.ForGroup(accountsGroup, authz.Func(discovers))); err != nil {
		return err
	}
	return documents{keys: keys, issuer: issuer, uri: e.o.KeysURI, host: h}.install()
}

// accountsGroup is the group of the users of all accounts.
const accountsGroup = "system:serviceaccounts"

// discovers allows to read the documents about the keys.
func discovers(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	if !a.ResourceRequest && a.Verb == "get" && (a.Path == serviceaccount.ConfigurationPath || a.Path == serviceaccount.KeysPath || a.Path == serviceaccount.ConfigurationPath+"/" || a.Path == serviceaccount.KeysPath+"/") {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}
