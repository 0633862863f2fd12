package crd_test

import (
	"context"
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
)

const exampleBoats = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              masts: {type: integer, minimum: 1, maximum: 3}
`

// A server serves the objects of a definition, and validates them by its schema.
func ExampleNew() {
	srv, err := servertest.Run(server.Options{}, crd.New(crd.Options{})) // a program calls Install of its server
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	// InstallCRDsFS creates the definition and waits until it is established.
	files := fstest.MapFS{"boats.yaml": {Data: []byte(exampleBoats)}}
	if err := srv.InstallCRDsFS(context.Background(), files); err != nil {
		fmt.Println(err)
		return
	}

	create := func(name string, masts int) {
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":%q},"spec":{"masts":%d}}`, name, masts)
		url := srv.URL + "/apis/example.com/v1/namespaces/default/boats"
		resp, err := srv.Client().Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		fmt.Println(name, resp.Status)
	}
	create("dinghy", 1)
	create("windjammer", 5)
	// Output:
	// dinghy 201 Created
	// windjammer 422 Unprocessable Entity
}
