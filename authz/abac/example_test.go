package abac_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/abac"
)

func Example() {
	policy, err := abac.Parse([]byte(`# ann reads pods
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "ann", "namespace": "*", "resource": "pods", "readonly": true}}
`), "policy.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, verb := range []string{"list", "delete"} {
		verdict, reason, _ := policy.Authorize(context.Background(), authz.Attributes{
			User: &authn.User{Name: "ann"}, Verb: verb, ResourceRequest: true, Resource: "pods", Namespace: "ns",
		})
		fmt.Printf("%s %v %q\n", verb, verdict == authz.Allow, reason)
	}
	// Output:
	// list true ""
	// delete false "No policy matched."
}
