package catalogue_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A program lists the kinds that its server serves, and the number of objects of each kind in a namespace.
func ExampleCatalogue_Kinds() {
	srv, err := servertest.Run(server.Options{Groups: []server.Group{{
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.ConfigMap(), builtin.Secret()}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	resp, err := srv.Client().Post(srv.URL+"/api/v1/namespaces/default/configmaps", "application/json",
		strings.NewReader(`{"metadata":{"name":"settings"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := resp.Body.Close(); err != nil {
		fmt.Println(err)
		return
	}

	show := func(k catalogue.Kind) error {
		objects, err := k.Objects.List(context.Background(), "default")
		if err != nil {
			return err
		}
		fmt.Println(k.Kind.Kind, k.Resource.Resource, len(objects))
		for _, o := range objects {
			fmt.Println("-", o.Name)
		}
		return nil
	}
	for _, k := range srv.Catalogue().Kinds() {
		if err := show(k); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// ConfigMap configmaps 1
	// - settings
	// Secret secrets 0
}
