package config_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/config"
)

func Example() {
	file, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.ABAC: authz.AlwaysDeny()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	const text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- type: ABAC\n  name: abac\n"
	fmt.Println(file.Use([]byte(text)))
	all := authz.Union(authz.Masters(), file)
	_, reason, _ := all.Authorize(context.Background(), authz.Attributes{User: &authn.User{Name: "ann"}, Verb: "get", Path: "/"})
	fmt.Println(reason)

	// A changed file is used as a whole, or not at all.
	fmt.Println(file.Use([]byte(text + "- type: RBAC\n  name: rbac\n")))
	fmt.Println(file.Use([]byte(text + "- type: AlwaysAllow\n  name: alwaysallow\n")))
	verdict, _, _ := all.Authorize(context.Background(), authz.Attributes{User: &authn.User{Name: "ann"}, Verb: "get", Path: "/"})
	fmt.Println(verdict == authz.Allow)
	// Output:
	// <nil>
	// abac: Everything is forbidden.
	// authorizer type RBAC is not allowed if it was not enabled at initial server startup
	// <nil>
	// true
}
