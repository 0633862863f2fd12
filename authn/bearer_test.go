package authn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/keelson-dev/keelson/authn"
)

var errStarting = errors.New("the objects are not loaded yet")

// starting is an authenticator that is not ready.
type starting struct{ authn.TokenAuthenticator }

func (starting) Ready(context.Context) error { return errStarting }

// Whatever this package makes of an authenticator of tokens is ready when that is.
func TestTokensThatAreNotReady(t *testing.T) {
	for name, tokens := range map[string]authn.TokenAuthenticator{
		"itself": starting{}, "union": authn.UnionTokens(authn.StaticTokens(nil), starting{}), "audiences": authn.ForAudiences(starting{}, "a"),
		"group": authn.AuthenticatedTokens(starting{}), "cache": authn.CacheTokens(starting{}, authn.CacheOptions{}),
	} {
		a, ok := authn.WithAnonymous(authn.AuthenticatedGroup(authn.Union(authn.BearerToken(tokens)))).(interface{ Ready(context.Context) error })
		if !ok || !errors.Is(a.Ready(t.Context()), errStarting) {
			t.Errorf("%s: it is ready", name)
		}
	}
}
