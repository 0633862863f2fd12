package storage_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type BoatSpec struct {
	Masts int32 `json:"masts"`
}

type Boat = runtime.Resource[BoatSpec, struct{}]

// A store of one kind in memory, without a server: it takes objects and returns records.
func Example() {
	ctx := context.Background()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	scheme := runtime.NewScheme()
	must(runtime.Register[*Boat](scheme, kind, runtime.KindOptions[*Boat]{}))
	boats, err := codec.NewTyped(scheme, kind)
	must(err)

	backend := memory.New(memory.Options{})
	defer backend.Close()
	store, err := storage.NewStore(backend, storage.StoreOptions{
		Prefix: "/registry/example.com/boats", Codec: boats, Namespaced: true,
	})
	must(err)

	watch, err := store.Watch(ctx, storage.WatchOptions{})
	must(err)
	defer watch.Close()

	dinghy := &Boat{}
	dinghy.Namespace, dinghy.Name = "harbour", "dinghy"
	_, err = store.Create(ctx, "harbour/dinghy", dinghy, storage.WriteOptions{})
	must(err)
	_, err = store.Update(ctx, "harbour/dinghy", storage.WriteOptions{},
		func(_ context.Context, current runtime.Object, _ storage.Record) (storage.Outcome, error) {
			boat := current.(*Boat)
			boat.Spec.Masts = 1
			return storage.Outcome{Object: boat}, nil
		})
	must(err)

	for range 2 {
		events, err := watch.Next(ctx)
		must(err)
		for _, e := range events {
			fmt.Println(e.Type, e.Record.Key, e.Record.Revision)
		}
		if len(events) == 2 {
			break
		}
	}
	page, err := store.List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: "harbour"}})
	must(err)
	for r := range page.Records {
		fmt.Printf("%s\n", r.Body.AppendObject(nil, r.Revision))
	}
	// Output:
	// ADDED harbour/dinghy 2
	// MODIFIED harbour/dinghy 3
	// {"kind":"Boat","apiVersion":"example.com/v1","metadata":{"name":"dinghy","namespace":"harbour","resourceVersion":"3"},"spec":{"masts":1}}
}

// A program moves from one backend to another, and keeps its resourceVersions.
func ExampleCopy() {
	ctx := context.Background()
	old, next := memory.New(memory.Options{}), memory.New(memory.Options{})
	defer old.Close()
	defer next.Close()
	_, err := old.Commit(ctx, storage.Commit{Key: "/registry/example.com/boats/harbour/dinghy", Value: []byte("{}")})
	must(err)

	done, err := storage.Copy(ctx, next, old, storage.CopyOptions{})
	must(err)
	fmt.Printf("%d value, at revision %d\n", done.Values, done.Revision)
	// Output:
	// 1 value, at revision 2
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
