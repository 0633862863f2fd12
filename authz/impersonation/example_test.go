package impersonation_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/impersonation"
	"github.com/keelson-dev/keelson/authz/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The members of a help desk may read as the user rita, and as nobody else.
func Example() {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "as-rita"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate:user-info"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, ResourceNames: []string{"rita"}},
		{Verbs: []string{"impersonate-on:user-info:get", "impersonate-on:user-info:list"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "as-rita"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "as-rita"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "helpdesk"}},
	}
	authorizer, err := rbac.Static(role, binding)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := authz.Attributes{
		User: &authn.User{Name: "hal", Groups: []string{"helpdesk"}},
		Verb: "list", ResourceRequest: true, APIVersion: "v1", Resource: "configmaps", Namespace: "default",
	}
	for _, name := range []string{"rita", "root"} {
		granted, err := impersonation.Check(context.Background(), authorizer, request, authn.User{Name: name})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(granted.User.Name, granted.User.Groups, granted.Constraint)
	}
	// Output:
	// rita [system:authenticated] impersonate:user-info
	// users.authentication.k8s.io "root" is forbidden: User "hal" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope
}
