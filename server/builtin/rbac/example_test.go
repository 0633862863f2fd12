package rbac_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
)

// The administrator of a server lets the members of a group read ConfigMaps in one namespace, by a role and a binding.
func ExampleNew() {
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{}), rbac.New(rbac.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	alice := srv.ClientOf(srv.AddUser(authn.User{Name: "alice", Groups: []string{"dev"}}))

	show := func(what string, resp *http.Response, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		fmt.Println(what, resp.Status)
	}
	create := func(resource, body string) {
		url := srv.URL + "/apis/rbac.authorization.k8s.io/v1/namespaces/default/" + resource
		resp, err := srv.Client().Post(url, "application/json", strings.NewReader(body))
		show("create "+resource+":", resp, err)
	}
	list := func(namespace string) {
		resp, err := alice.Get(srv.URL + "/api/v1/namespaces/" + namespace + "/configmaps")
		show("alice in "+namespace+":", resp, err)
	}
	list("default")
	create("roles", `{"metadata":{"name":"reader"},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}]}`)
	create("rolebindings", `{"metadata":{"name":"dev-reads"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"dev"}]}`)
	list("default")
	list("kube-system")
	// Output:
	// alice in default: 403 Forbidden
	// create roles: 201 Created
	// create rolebindings: 201 Created
	// alice in default: 200 OK
	// alice in kube-system: 403 Forbidden
}

// A program without stored roles has them in a file beside it.
func ExampleFile() {
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{}), rbac.File("testdata/roles.yaml", rbac.FileOptions{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	alice := srv.ClientOf(srv.AddUser(authn.User{Name: "alice", Groups: []string{"dev"}}))
	for _, namespace := range []string{"default", "kube-system"} {
		resp, err := alice.Get(srv.URL + "/api/v1/namespaces/" + namespace + "/configmaps")
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(namespace, resp.Status)
	}
	// Output:
	// default 200 OK
	// kube-system 403 Forbidden
}
