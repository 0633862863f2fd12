package server_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// A Kite is for the example.
type Kite = runtime.Resource[KiteSpec, KiteStatus]

type KiteSpec struct {
	Color string `json:"color,omitempty" enum:"red,blue"`
}

type KiteStatus struct {
	Height int32 `json:"height,omitempty"`
}

// A program reads, writes and watches the objects of its own server, without a client.
func ExampleTyped() {
	srv, err := server.New(server.Options{Groups: []server.Group{{
		Name: "sky.example.com",
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Kite", server.KindOptions[*Kite]{SelectableFields: []string{"spec.color"}}),
		}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	kites, err := server.Typed[*Kite](srv, authn.ServiceAccount("default", "wind"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for name, color := range map[string]string{"a": "red", "b": "blue"} {
		if _, err := kites.Create(ctx, "default", &Kite{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: KiteSpec{Color: color}}); err != nil {
			fmt.Println(err)
		}
	}
	_, err = kites.Create(ctx, "default", &Kite{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: KiteSpec{Color: "green"}})
	fmt.Println(err)

	red := registry.ListOptions{Fields: fields.OneTermEqualSelector("spec.color", "red")}
	for e, err := range kites.Watch(ctx, "", red) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Type == watch.Bookmark { // the kites that existed have been seen
			continue
		}
		fmt.Println(e.Type, e.Object.Name, e.Object.Spec.Color, e.Object.Status.Height)
		if e.Object.Status.Height == 30 {
			break
		}
		_, err := kites.ChangeStatus(ctx, e.Object.Namespace, e.Object.Name, func(k *Kite) error {
			k.Status.Height = 30
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// Kite.sky.example.com "c" is invalid: spec.color: Unsupported value: "green": supported values: "red", "blue"
	// ADDED a red 0
	// MODIFIED a red 30
}
