package registry_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type GadgetSpec struct {
	Size  int32  `json:"size"`
	Color string `json:"color,omitempty"`
}

type GadgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type Gadget = runtime.Resource[GadgetSpec, GadgetStatus]

// A registry with a strategy, driven in process without HTTP.
func Example() {
	ctx := context.Background()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	scheme := runtime.NewScheme()
	check(runtime.Register[*Gadget](scheme, kind, runtime.KindOptions[*Gadget]{}))

	backend := memory.New(memory.Options{})
	defer func() { check(backend.Close()) }()
	typed, err := codec.NewTyped(scheme, kind)
	check(err)
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/gadgets", Codec: typed, Namespaced: true})
	check(err)
	reg, err := registry.New(registry.Options{
		Scheme:     scheme,
		Kind:       kind,
		Resource:   schema.GroupResource{Group: "example.com", Resource: "gadgets"},
		Namespaced: true,
		Storage:    store,
		Strategy: registry.Erase(registry.Strategy[*Gadget]{
			Canonicalize: func(g *Gadget) { g.Spec.Color = strings.ToLower(g.Spec.Color) },
			Validate: func(_ *registry.Call, g *Gadget) field.ErrorList {
				if g.Spec.Size < 1 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), g.Spec.Size, "must be positive")}
				}
				return nil
			},
		}),
	})
	check(err)
	gadgets, err := registry.For[*Gadget](reg, authn.System())
	check(err)

	_, err = gadgets.Create(ctx, "default", &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	fmt.Println(err)

	g, err := gadgets.Create(ctx, "default", &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: GadgetSpec{Size: 1, Color: "Red"}})
	check(err)
	fmt.Println(g.Name, g.Spec.Color, "generation", g.Generation)

	g, err = gadgets.Change(ctx, "default", "a", func(g *Gadget) error { g.Spec.Size = 2; return nil })
	check(err)
	fmt.Println("size", g.Spec.Size, "generation", g.Generation)

	g.Status.Ready = true
	g, err = gadgets.UpdateStatus(ctx, "default", g)
	check(err)
	fmt.Println("ready", g.Status.Ready, "generation", g.Generation)

	_, gone, err := gadgets.Delete(ctx, "default", "a", nil)
	fmt.Println("gone", gone, err)
	_, err = gadgets.Get(ctx, "default", "a")
	fmt.Println(err)
	// Output:
	// Gadget.example.com "a" is invalid: spec.size: Invalid value: 0: must be positive
	// a red generation 1
	// size 2 generation 2
	// ready true generation 2
	// gone true <nil>
	// gadgets.example.com "a" not found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
