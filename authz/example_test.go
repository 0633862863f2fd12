package authz_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

func Example() {
	may := authz.Union(authz.Masters(), authz.AllowPaths("/healthz", "/healthz/*"))
	for _, a := range []authz.Attributes{
		{User: &authn.User{Name: "root", Groups: []string{authn.MastersGroup}}, Verb: "delete", ResourceRequest: true, Resource: "pods", Namespace: "ns", Name: "a"},
		{User: &authn.User{Name: "alice"}, Verb: "get", Path: "/healthz/ping"},
		{User: &authn.User{Name: "alice"}, Verb: "list", ResourceRequest: true, Resource: "pods"},
	} {
		verdict, reason, err := may.Authorize(context.Background(), a)
		if err == nil && verdict == authz.Allow {
			fmt.Println("allowed")
			continue
		}
		fmt.Println(authz.Forbidden(a, reason))
	}
	// Output:
	// allowed
	// allowed
	// pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope
}
