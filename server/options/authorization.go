package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Authorization has the values of the flags about authorization, beside the modes.
type Authorization struct {
	// PolicyFile is the file of the mode ABAC, or of the type ABAC in ConfigFile.
	PolicyFile string
	// Webhook is that of the mode Webhook.
	Webhook AccessWebhook
	// ConfigFile is the file of an AuthorizationConfiguration; "" is none. With it there are no modes.
	ConfigFile string
	// Explain says that access reviews have the reasons of decisions: see reviews.Options.
	Explain bool
}

// AccessWebhook has the values of the flags that begin with --authorization-webhook.
type AccessWebhook struct {
	ConfigFile string // a kubeconfig; it is given if and only if there is the mode Webhook
	Version    string // of SubjectAccessReview: v1beta1 by default, or v1
	// AuthorizedTTL and UnauthorizedTTL are how long it is remembered that a request is allowed, and that it is not: 5 minutes and 30 seconds
	// by default, and not at all if they are not positive.
	AuthorizedTTL, UnauthorizedTTL time.Duration
}

// defaultAuthorization returns the defaults of kube-apiserver.
func defaultAuthorization() Authorization {
	return Authorization{Webhook: AccessWebhook{Version: "v1beta1", AuthorizedTTL: 5 * time.Minute, UnauthorizedTTL: 30 * time.Second}}
}

const modeABAC, modeWebhook = "ABAC", "Webhook"

// modes returns kube-apiserver's authorization modes.
func modes() []string {
	return []string{"AlwaysAllow", "AlwaysDeny", modeABAC, modeWebhook, "RBAC", "Node"}
}

// checkAuthorization sets the default of the modes, and refuses wrong ones, and those that the program does not have: if it ignored them, the
// server would allow other requests than it should. given are the flags that were given. The errors have the words of kube-apiserver.
func (o *Options) checkAuthorization(p Program, given map[string]flag) error {
	if o.Authorization.ConfigFile != "" {
		return o.checkConfigAlone(given)
	}
	if len(o.AuthorizationModes) == 0 {
		o.AuthorizationModes = []string{"AlwaysAllow"}
	}
	var all []error
	seen := map[string]bool{}
	for _, mode := range o.AuthorizationModes {
		if !seen[mode] {
			all = append(all, o.checkMode(p, mode))
		}
		seen[mode] = true
	}
	if len(seen) < len(o.AuthorizationModes) {
		all = append(all, fmt.Errorf("authorization-mode %q has mode specified more than once", o.AuthorizationModes))
	}
	if o.Authorization.PolicyFile != "" && !seen[modeABAC] {
		all = append(all, errors.New("cannot specify --authorization-policy-file without mode ABAC"))
	}
	if o.Authorization.Webhook.ConfigFile != "" && !seen[modeWebhook] {
		all = append(all, errors.New("cannot specify --authorization-webhook-config-file without mode Webhook"))
	}
	return errors.Join(all...)
}

// checkConfigAlone refuses flags that a configuration file replaces.
func (o *Options) checkConfigAlone(given map[string]flag) error {
	for name := range given {
		if name == "authorization-mode" || strings.HasPrefix(name, "authorization-webhook-") {
			return errors.New("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined")
		}
	}
	o.AuthorizationModes = nil
	return nil
}

// checkMode refuses a mode that does not exist, that the program does not have, or that lacks its file.
func (o *Options) checkMode(p Program, mode string) error {
	w := o.Authorization.Webhook
	switch {
	case !slices.Contains(modes(), mode):
		return fmt.Errorf("authorization-mode %q is not a valid mode", mode)
	case !slices.Contains(p.AuthorizationModes, mode):
		return fmt.Errorf("--authorization-mode: the mode %s is not available yet; available are %s", mode, listed(p.AuthorizationModes))
	case mode == modeABAC && o.Authorization.PolicyFile == "":
		return errors.New("authorization-mode ABAC's authorization policy file not passed")
	case mode == modeWebhook && w.ConfigFile == "":
		return errors.New("authorization-mode Webhook's authorization config file not passed")
	case mode == modeWebhook && w.Version != "v1" && w.Version != "v1beta1":
		return fmt.Errorf("invalid authorization config: unsupported webhook authorizer version %q, supported versions are \"v1\", \"v1beta1\"", w.Version)
	}
	return nil
}
