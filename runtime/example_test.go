package runtime_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A BoatSpec is the spec of a Boat, in version v1. A struct tag sets the default of a field.
type BoatSpec struct {
	Masts int32  `json:"masts"`
	Color string `json:"color" default:"white"`
}

// A BoatSpecV2 has another name for a field.
type BoatSpecV2 struct {
	Masts int32  `json:"masts"`
	Paint string `json:"paint"`
}

type (
	Boat   = runtime.Resource[BoatSpec, struct{}]
	BoatV2 = runtime.Resource[BoatSpecV2, struct{}]
)

// A program registers a kind with a Go type, makes an object and sets its defaults.
func ExampleRegister() {
	scheme := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	if err := runtime.Register[*Boat](scheme, gvk, runtime.KindOptions[*Boat]{}); err != nil {
		fmt.Println(err)
		return
	}

	boat := &Boat{}
	boat.Name = "dinghy"
	scheme.Default(boat)
	fmt.Println(scheme.KindOf(boat).GVK)
	fmt.Println(boat.Name, boat.Spec.Color)

	obj, err := scheme.New(gvk)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%T\n", obj.(*Boat).Spec)
	// Output:
	// example.com/v1, Kind=Boat
	// dinghy white
	// runtime_test.BoatSpec
}

// Objects of two versions of a kind are converted to each other. The first version that is registered is the hub.
func ExampleAddConversion() {
	scheme := runtime.NewScheme()
	kind := schema.GroupKind{Group: "example.com", Kind: "Boat"}
	if err := runtime.Register[*Boat](scheme, kind.WithVersion("v1"), runtime.KindOptions[*Boat]{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := runtime.Register[*BoatV2](scheme, kind.WithVersion("v2"), runtime.KindOptions[*BoatV2]{}); err != nil {
		fmt.Println(err)
		return
	}
	err := runtime.AddConversion(scheme,
		func(in *BoatV2, out *Boat) error {
			out.Spec = BoatSpec{Masts: in.Spec.Masts, Color: in.Spec.Paint}
			return nil
		},
		func(in *Boat, out *BoatV2) error {
			out.Spec = BoatSpecV2{Masts: in.Spec.Masts, Paint: in.Spec.Color}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}

	boat := &Boat{Spec: BoatSpec{Masts: 2, Color: "red"}}
	boat.Name = "dinghy"
	obj, err := scheme.ToVersion(boat, schema.GroupVersion{Group: "example.com", Version: "v2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	v2 := obj.(*BoatV2)
	fmt.Println(v2.APIVersion, v2.Name, v2.Spec.Masts, v2.Spec.Paint)
	// Output:
	// example.com/v2 dinghy 2 red
}

// A program registers a kind without a Go type.
func ExampleRegister_untyped() {
	scheme := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Buoy"}
	err := runtime.Register[*unstructured.Unstructured](scheme, gvk, runtime.KindOptions[*unstructured.Unstructured]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	buoy := scheme.Lookup(gvk).New().(*unstructured.Unstructured)
	buoy.SetName("north")
	fmt.Println(buoy.GetAPIVersion(), buoy.GetKind(), buoy.GetName())
	// Output:
	// example.com/v1 Buoy north
}
