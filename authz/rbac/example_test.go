package rbac_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A program that stores no roles declares them, and gives the policy to its server as Policy.Authorizer, in an authz.Union with
// other authorizers. Or it adds the policy to what the server allows by Host.Authorize.
func ExampleStatic() {
	policy, err := rbac.Static(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"example.com"}, Resources: []string{"airports"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "pilots"}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
		},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	// As it is given to a server, together with an administrator and the paths of probes.
	authorizer := authz.Union(authz.Masters(), authz.AllowPaths("/healthz", "/livez", "/readyz"), policy)
	amelia := &authn.User{Name: "amelia", Groups: []string{"pilots"}}
	for _, verb := range []string{"list", "delete"} {
		verdict, reason, _ := authorizer.Authorize(context.Background(), authz.Attributes{
			User: amelia, Verb: verb, ResourceRequest: true, APIGroup: "example.com", Resource: "airports",
		})
		fmt.Println(verb, verdict == authz.Allow, reason)
	}
	// Output:
	// list true RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "pilots"
	// delete false
}

// ExamplePolicy_Explain says why a user may do something, what a refused user lacks, and who may do it.
func ExamplePolicy_Explain() {
	policy, err := rbac.Static(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"airports"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "pilots"}},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}},
	)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	a := authz.Attributes{User: &authn.User{Name: "amelia", Groups: []string{"pilots"}}, ResourceRequest: true,
		Verb: "get", APIGroup: "example.com", Resource: "airports", Name: "lhr"}
	fmt.Println(authz.Explain(ctx, policy, a).Grant.Binding.Name)
	a.Verb = "delete"
	fmt.Println(authz.Explain(ctx, policy, a).Nearest[0].Lacks)
	a.Verb = "get"
	for _, g := range authz.SubjectsOf(ctx, policy, a, 100).Grants {
		fmt.Println(g.Subject.Kind, g.Subject.Name)
	}
	// Output:
	// readers
	// verb
	// Group pilots
}
