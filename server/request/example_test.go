package request_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/server/request"
)

// A program reads what requests want from their methods, paths and queries.
func ExampleResolve() {
	const boats = "/apis/example.com/v1/namespaces/harbour/boats"
	for _, r := range [][2]string{
		{"GET", boats + "?labelSelector=color%3Dred"},
		{"GET", boats + "?watch=true"},
		{"PUT", boats + "/dinghy/status"},
		{"DELETE", boats},
		{"GET", "/healthz"},
	} {
		info, err := request.Resolve(httptest.NewRequest(r[0], r[1], nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		if !info.ResourceRequest {
			fmt.Println(info.Verb, info.Path)
			continue
		}
		fmt.Printf("%s %s %q %q in %s", info.Verb, info.Resource, info.Name, info.Subresource, info.Namespace)
		if _, labels := info.Selectors(); labels != nil {
			fmt.Print(" with ", labels)
		}
		fmt.Println()
	}
	// Output:
	// list boats "" "" in harbour with color=red
	// watch boats "" "" in harbour
	// update boats "dinghy" "status" in harbour
	// deletecollection boats "" "" in harbour
	// get /healthz
}
