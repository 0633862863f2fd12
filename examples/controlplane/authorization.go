package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/abac"
	"github.com/keelson-dev/keelson/authz/config"
	"github.com/keelson-dev/keelson/authz/webhook"
	restclient "github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// modesOfFile sets the modes of the types in the file of --authorization-config, if there is one. Types of these cannot be added while the
// server runs, except for AlwaysAllow and AlwaysDeny.
func modesOfFile(o *options.Options) error {
	path := o.Authorization.ConfigFile
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	conf, err := config.Parse(content)
	if err != nil {
		return fmt.Errorf("--authorization-config %s: %w", path, err)
	}
	if err := config.Validate(conf); err != nil {
		return fmt.Errorf("--authorization-config %s: %w", path, err)
	}
	for _, e := range conf.Authorizers {
		if !slices.Contains(o.AuthorizationModes, e.Type) {
			o.AuthorizationModes = append(o.AuthorizationModes, e.Type)
		}
	}
	return nil
}

// authorization authorizes requests by the modes, or by the file of --authorization-config.
func authorization(o *options.Options, log *zap.Logger) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		told, err := metrics.NewAuthorizers(h.Metrics())
		if err != nil {
			return err
		}
		h.OnClose(told.Close)
		a := &authorizers{Host: h, o: o, log: log, told: told}
		if o.Authorization.ConfigFile != "" {
			return a.ofFile()
		}
		for _, mode := range o.AuthorizationModes {
			if err := a.ofMode(mode); err != nil {
				return err
			}
		}
		return nil
	})
}

// authorizers adds authorizers to a server.
type authorizers struct {
	*server.Host
	o    *options.Options
	log  *zap.Logger
	told *metrics.Authorizers
}

// ofMode adds the authorizer of a mode after the existing ones. It has the name that kube-apiserver uses; reasons of refusals begin with it.
func (a *authorizers) ofMode(mode string) error {
	observe := func(name string, one authz.Authorizer) error {
		return a.Authorize(name, authz.Observed(one, func(v authz.Verdict) { a.told.Decided(mode, name, v) }))
	}
	switch mode {
	case config.AlwaysAllow:
		return observe("alwaysallow", authz.AlwaysAllow())
	case config.AlwaysDeny:
		return observe("alwaysdeny", authz.AlwaysDeny())
	case config.ABAC:
		policy, err := a.policy()
		if err != nil {
			return err
		}
		return observe("abac", policy)
	case config.WebhookType:
		hook, err := a.webhook()
		if err != nil {
			return err
		}
		a.OnClose(hook.Close)
		observed := authz.Observed(hook, func(v authz.Verdict) { a.told.Decided(mode, webhookName, v) })
		return a.Authorize("webhook", named(webhookName, observed))
	}
	return rbac.New(rbac.Options{Logger: a.log, Authorize: observe}).Install(a.Host) // package options has refused unknown modes
}

// webhookName is the name of the webhook of the mode Webhook in kube-apiserver.
const webhookName = "default"

// named returns an authorizer whose reasons begin with a name that an authorizer of the server has already.
func named(name string, one authz.Authorizer) authz.Authorizer {
	var shown authz.Live
	_ = shown.Set(name, one) // fails for an empty name
	return authz.Plain{Authorizer: shown.Now()}
}

// policy returns the authorizer of --authorization-policy-file.
func (a *authorizers) policy() (*abac.Policy, error) {
	path := a.o.Authorization.PolicyFile
	if path == "" {
		return nil, errors.New("invalid authorization config: the type ABAC needs --authorization-policy-file")
	}
	policy, err := abac.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("invalid authorization config: %w", err)
	}
	if policy.Unversioned() {
		a.log.Warn("the policy file has lines without a version, in which everything that is missing is allowed", zap.String("file", path))
	}
	return policy, nil
}

// webhook returns the authorizer of --authorization-webhook-config-file.
func (a *authorizers) webhook() (*webhook.Authorizer, error) {
	w := a.o.Authorization.Webhook
	cfg, err := restclient.Kubeconfig(w.ConfigFile, "")
	if err != nil {
		return nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
	}
	o := a.webhookOptions()
	o.Name, o.Version, o.Authorized, o.Unauthorized = webhookName, w.Version, positive(w.AuthorizedTTL), positive(w.UnauthorizedTTL)
	return webhook.New(cfg, o)
}

// positive returns a time for which a webhook's answers are remembered: not at all if it is not positive.
func positive(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return d
}

// webhookOptions returns the options that all webhooks have.
func (a *authorizers) webhookOptions() webhook.Options {
	return webhook.Options{Time: time.Minute, Hooks: webhook.Hooks{
		Attempted: a.told.Attempted, FailedOpen: a.told.FailedOpen, Matched: a.told.Matched,
		Failed: func(name string, err error) {
			a.log.Error("an authorization webhook has failed", zap.String("name", name), zap.Error(err))
		},
	}}
}

// ofFile adds the authorizers of --authorization-config.
func (a *authorizers) ofFile() error {
	given := map[string]authz.Authorizer{}
	if slices.Contains(a.o.AuthorizationModes, config.ABAC) {
		policy, err := a.policy()
		if err != nil {
			return err
		}
		given[config.ABAC] = policy
	}
	if slices.Contains(a.o.AuthorizationModes, config.RBAC) {
		keep := func(_ string, roles authz.Authorizer) error { given[config.RBAC] = roles; return nil }
		if err := rbac.New(rbac.Options{Logger: a.log, Authorize: keep}).Install(a.Host); err != nil {
			return err
		}
	}
	hooks := a.webhookOptions()
	grace := a.Limits().RequestTimeout + hooks.Time
	file, err := config.NewFile(config.Options{Authorizers: given, Webhook: hooks, Grace: grace, Decided: a.told.Decided})
	if err != nil {
		return err
	}
	a.OnClose(file.Close)
	if err := a.Follow(server.ConfigFile{Name: "authorization", Path: a.o.Authorization.ConfigFile, Every: lookEvery, MaxBytes: config.MaxFile, Use: func(content []byte) error {
		err := file.Use(content)
		if err == nil {
			a.told.Configured(content)
		}
		return err
	}}); err != nil {
		return fmt.Errorf("--authorization-config: %w", err)
	}
	return a.Authorize("config", authz.Plain{Authorizer: file})
}
