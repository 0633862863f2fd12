package delegation_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/delegation"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

// The authorizer of an extension server whose users are those of a cluster.
func ExampleNew() {
	cluster, err := delegation.New(client.Config{Server: "https://kubernetes.default.svc", Token: "secret"}, delegation.Options{
		Reviews: webhook.Options{Hooks: webhook.Hooks{Failed: func(_ string, err error) { _ = err }}}, // log it
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	root := &authn.User{Name: "root", Groups: []string{authn.MastersGroup}}
	verdict, _, err := cluster.Authorize(context.Background(), authz.Attributes{User: root, Verb: "get", Path: "/metrics"}) // for server.Policy.Authorizer
	fmt.Println(verdict == authz.Allow, err)
	// Output: true <nil>
}
