package reader_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/reader"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Boat is for the example.
type Boat = runtime.Resource[struct {
	Masts int32 `json:"masts"`
}, struct{}]

// A program reads the boats in a store, by label and by name.
func Example() {
	ctx := context.Background()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	scheme := runtime.NewScheme()
	if err := runtime.Register[*Boat](scheme, kind, runtime.KindOptions[*Boat]{}); err != nil {
		fmt.Println(err)
		return
	}
	boats, err := codec.NewTyped(scheme, kind)
	if err != nil {
		fmt.Println(err)
		return
	}
	backend := memory.New(memory.Options{})
	defer func() { _ = backend.Close() }()
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/boats", Codec: boats, Namespaced: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, name := range []string{"dinghy", "ketch"} {
		boat := &Boat{}
		boat.Namespace, boat.Name, boat.Labels = "harbour", name, map[string]string{"masts": fmt.Sprint(i + 1)}
		if _, err := store.Create(ctx, "harbour/"+name, boat, storage.WriteOptions{}); err != nil {
			fmt.Println(err)
			return
		}
	}

	all, err := reader.New(store, reader.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	typed := runtime.TypedReader[*Boat](all)
	list, err := typed.List(ctx, runtime.Query{Namespace: "harbour", Labels: labels.SelectorFromSet(labels.Set{"masts": "2"})})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, boat := range list.Items {
		fmt.Println(boat.Name, boat.ResourceVersion)
	}
	_, err = typed.Get(ctx, "harbour", "brig", runtime.Live())
	fmt.Println(errors.Is(err, storage.ErrNotFound)) // Options.Status can make a NotFound of it
	// Output:
	// ketch 3
	// true
}
