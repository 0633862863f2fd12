package servertest_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// The answer to a create is lost, although the object was created; the client tries again.
func ExampleServer_Inject() {
	srv, err := servertest.Run(server.Options{}, boatGroup())
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	srv.Inject(servertest.Fault{
		Match: servertest.Match{Verbs: []string{"create"}, Resources: []string{"boats"}},
		Times: 1,
		Drop:  true,
		Lost:  true,
	})
	for range 2 {
		resp, err := srv.Client().Post(srv.URL+boats, "application/json", strings.NewReader(
			`{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"}}`))
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// no answer
	// 409 Conflict
}

func ExampleServer_Record() {
	srv, err := servertest.Run(server.Options{}, boatGroup())
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	rec := srv.Record(servertest.Match{Resources: []string{"boats"}})
	for _, path := range []string{"/sloop", "?labelSelector=sails"} {
		resp, err := srv.Client().Get(srv.URL + boats + path)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, r := range rec.Requests() {
		fmt.Println(r.Verb, r.Resource, r.Namespace, r.Name, r.Query, r.Code)
	}
	// Output:
	// get boats port sloop map[] 404
	// list boats port  map[labelSelector:[sails]] 200
}
