package builtin_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A server has namespaces and ConfigMaps, as every Kubernetes API. An object can only be created in a namespace that exists.
func ExampleNew() {
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{})) // a program calls Install of its server
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	post := func(path, body string) {
		resp, err := srv.Client().Post(srv.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		fmt.Println(path, resp.Status)
	}
	settings := `{"metadata":{"name":"settings"},"data":{"color":"red"}}`
	post("/api/v1/namespaces/default/configmaps", settings)
	post("/api/v1/namespaces/harbour/configmaps", settings)
	post("/api/v1/namespaces", `{"metadata":{"name":"harbour"}}`)
	post("/api/v1/namespaces/harbour/configmaps", settings)
	// Output:
	// /api/v1/namespaces/default/configmaps 201 Created
	// /api/v1/namespaces/harbour/configmaps 404 Not Found
	// /api/v1/namespaces 201 Created
	// /api/v1/namespaces/harbour/configmaps 201 Created
}

// A server has ConfigMaps and Secrets, but none of the other kinds and controllers. Namespaces are then only names, which need
// not be created.
func ExampleConfigMap() {
	srv, err := servertest.Run(server.Options{Groups: []server.Group{{
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.ConfigMap(), builtin.Secret()}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/harbour/secrets", "/api/v1/namespaces"} {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := resp.Body.Close(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	// Output:
	// /api/v1/configmaps 200 OK
	// /api/v1/namespaces/harbour/secrets 200 OK
	// /api/v1/namespaces 404 Not Found
}
