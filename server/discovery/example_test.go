package discovery_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/server/discovery"
)

func Example() {
	service := discovery.New(discovery.Options{})
	service.Set([]discovery.Group{{
		Name: "example.com",
		Versions: []discovery.Version{{Name: "v1", Resources: []discovery.Resource{{
			Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, Verbs: []string{"list", "get"},
		}}}},
	}})

	w := httptest.NewRecorder() // in a program: mux.Handle("/apis/", service)
	service.ServeHTTP(w, httptest.NewRequest("GET", "/apis/example.com/v1", nil))
	fmt.Print(w.Body)
	// Output:
	// {"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list"]}]}
}
