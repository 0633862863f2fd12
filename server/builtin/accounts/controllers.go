package accounts

import (
	"context"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
)

// hookName is the name of the hook that starts the controllers.
const hookName = "start-service-account-controllers"

// controller does the work of one controller until ctx ends.
type controller interface {
	// first does the work once for all objects. It is called before the server is ready.
	first(ctx context.Context) error
	// run does the work for all objects, and again when they change, until ctx ends.
	run(ctx context.Context)
}

// startControllers starts the controllers of the options when the server serves their kinds. The server is ready when each of
// them has worked once on the objects that exist. An object that it cannot make does not keep the server from becoming ready.
func startControllers(h *server.Host, issuer serviceaccount.Issuer, o Options) error {
	all, err := newControllers(h, issuer, o)
	if err != nil {
		return err
	}
	return h.Start(server.Hook{Name: hookName, Run: func(ctx context.Context) error {
		for _, c := range all {
			if err := c.first(ctx); err != nil && ctx.Err() == nil {
				o.Logger.Warn("service accounts could not all be made yet", zap.Error(err))
			}
			h.Go(c.run)
		}
		return nil
	}})
}

// newControllers returns the controllers of the options.
func newControllers(h *server.Host, issuer serviceaccount.Issuer, o Options) ([]controller, error) {
	var all []controller
	accounts, err := newDefaults(h, o.Logger)
	if err != nil {
		return nil, err
	}
	all = append(all, accounts)
	if len(o.RootCA) > 0 {
		published, err := newRootCAs(h, o.RootCA, o.Logger)
		if err != nil {
			return nil, err
		}
		all = append(all, published)
	}
	secrets, err := newSecrets(h, issuer, o.RootCA, o.Logger)
	if err != nil {
		return nil, err
	}
	all = append(all, secrets)
	if o.UnusedTokens > 0 {
		unused, err := newCleaner(h, o.UnusedTokens, o.Logger)
		if err != nil {
			return nil, err
		}
		all = append(all, unused)
	}
	return all, nil
}
