package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/bootstrap"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime"
	restclient "github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
)

// lookEvery is the time between two reads of a file of users.
const lookEvery = 2 * time.Second

// authentication authenticates the users of the flags. Each file is used again when it changes: a user that it no longer has ends at
// once, also on open connections and in the cache of tokens.
func authentication(o *options.Options, log *zap.Logger) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		if o.Authentication.BootstrapTokens {
			tokens := bootstrap.New(runtime.Read[*corev1.Secret](h.Readers()), bootstrap.Options{})
			if err := h.Authenticate(authn.BootstrapTokens, ofTokens(o, tokens)); err != nil {
				return err
			}
		}
		for _, f := range userFiles(h, o, log) {
			if err := f.follow(h); err != nil {
				return fmt.Errorf("%s: %w", f.flag, err)
			}
		}
		return nil
	})
}

// userFile is a file of users.
type userFile struct {
	flag, path string // "" is no file
	name       string // of the server.ConfigFile
	member     string // name of the authenticator
	maxBytes   int64
	// users returns the authenticator that a content of the file stands for; nil is none.
	users func(content []byte) (authn.Authenticator, error)
}

func userFiles(h *server.Host, o *options.Options, log *zap.Logger) []userFile {
	a := o.Authentication
	return []userFile{
		{"--requestheader-client-ca-file", a.Proxies.CAFile, "requestheader_client_ca", authn.RequestHeader, 0, proxies(a.Proxies, log)},
		{"--client-ca-file", a.ClientCAFile, "client_ca", authn.ClientCertificate, 0, certificates},
		{"--token-auth-file", a.TokenFile, "token_auth", authn.TokenFile, authn.MaxTokenFileBytes, tokens(o, log)},
		{"--authentication-token-webhook-config-file", a.Webhook.ConfigFile, "token_webhook", authn.TokenWebhook, 0, tokenWebhook(h, a)},
	}
}

// follow uses the file now, and whenever it changes.
func (f userFile) follow(h *server.Host) error {
	if f.path == "" {
		return nil
	}
	return h.Follow(server.ConfigFile{Name: f.name, Path: f.path, Every: lookEvery, MaxBytes: f.maxBytes, Use: func(content []byte) error {
		users, err := f.users(content)
		if err != nil || users == nil {
			return err
		}
		return h.Authenticate(f.member, users)
	}})
}

// certificates authenticates the client certificates of the authorities in a file.
func certificates(content []byte) (authn.Authenticator, error) {
	pool, err := authn.Authorities(content)
	if err != nil {
		return nil, err
	}
	return authn.X509(func() *x509.CertPool { return pool }), nil
}

// proxies authenticates the users that proxies name, whose certificates are those of the authorities in a file.
func proxies(p options.Proxies, log *zap.Logger) func(content []byte) (authn.Authenticator, error) {
	return func(content []byte) (authn.Authenticator, error) {
		pool, err := authn.Authorities(content)
		if err != nil {
			return nil, err
		}
		if len(p.User) == 0 {
			log.Warn("no proxy can name a user: --requestheader-client-ca-file is given without --requestheader-username-headers")
			return nil, nil
		}
		return authn.AuthenticatingProxy(authn.ProxyOptions{
			Roots: func() *x509.CertPool { return pool }, Names: p.Names, User: p.User, UID: p.UID, Group: p.Group, Extra: p.Extra,
		})
	}
}

// tokens authenticates the tokens of a token file.
func tokens(o *options.Options, log *zap.Logger) func(content []byte) (authn.Authenticator, error) {
	a := o.Authentication
	onlyUsers := a.ClientCAFile == "" && a.Proxies.CAFile == "" && a.Webhook.ConfigFile == ""
	return func(content []byte) (authn.Authenticator, error) {
		users, warnings, err := authn.ReadTokens(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%w; a line is token,user,uid,\"group1,group2\"", err)
		}
		file := zap.String("file", a.TokenFile)
		isMaster := func(u authn.User) bool { return u.InGroup(authn.MastersGroup) }
		if onlyUsers && slices.Contains(o.AuthorizationModes, "RBAC") && !slices.ContainsFunc(slices.Collect(maps.Values(users)), isMaster) {
			log.Warn("no user of the token file is in the group system:masters: nobody can create the first roles and bindings", file)
		}
		for _, w := range warnings {
			log.Warn("token file", file, zap.String("warning", w))
		}
		return ofTokens(o, authn.StaticTokens(users)), nil
	}
}

// ofTokens authenticates tokens that are for all audiences of this API.
func ofTokens(o *options.Options, tokens authn.TokenAuthenticator) authn.Authenticator {
	return authn.BearerToken(authn.ForAudiences(tokens, o.Authentication.Audiences...))
}

// tokenWebhook authenticates the tokens that the webhook of a kubeconfig knows.
func tokenWebhook(h *server.Host, a options.Authentication) func(content []byte) (authn.Authenticator, error) {
	ttl := a.Webhook.CacheTTL
	if ttl <= 0 {
		ttl = -1 // not at all
	}
	var now *webhook.Authenticator
	h.OnClose(func() { // no file is followed any more
		if now != nil {
			now.Close()
		}
	})
	return func(content []byte) (authn.Authenticator, error) {
		cfg, err := restclient.ParseKubeconfig(content, a.Webhook.ConfigFile, "")
		if err != nil {
			return nil, err
		}
		asks, err := webhook.New(cfg, webhook.Options{Version: a.Webhook.Version, Audiences: a.Audiences, Success: ttl, Failure: ttl})
		if err != nil {
			return nil, err
		}
		if now != nil {
			closeLater(h, now)
		}
		now = asks
		return authn.BearerToken(asks), nil
	}
}

// closeLater closes a webhook that was replaced when the calls to it have ended.
func closeLater(h *server.Host, old *webhook.Authenticator) {
	h.Go(func(ctx context.Context) {
		defer old.Close()
		timer := time.NewTimer(authn.DefaultLookupTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	})
}

// whoAsks serves the kinds with which clients ask who a user is, and what a user may do.
func whoAsks(o *options.Options) server.Extension {
	return reviews.New(reviews.Options{Explain: o.Authorization.Explain})
}
