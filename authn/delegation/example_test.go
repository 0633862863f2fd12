package delegation_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/delegation"
	"github.com/keelson-dev/keelson/runtime/client"
)

// The authenticator of an extension server whose probes need no credentials.
func ExampleNew() {
	cluster, err := delegation.New(client.Config{Server: "https://kubernetes.default.svc", TokenFile: "/var/run/secrets/token"}, delegation.Options{
		Hooks: delegation.Hooks{Failed: func(error) {}}, // log it
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	users := authn.Union(cluster.Proxy(), cluster.Certificates(), authn.BearerToken(cluster.Tokens()))
	_ = authn.WithAnonymous(authn.AuthenticatedGroup(users), "/livez", "/readyz") // for server.Policy.Authenticator
}
