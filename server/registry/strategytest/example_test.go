package strategytest_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/registry/strategytest"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type (
	WidgetSpec struct {
		Size  int32  `json:"size" minimum:"1" maximum:"10"`
		Color string `json:"color,omitempty" default:"red"`
		Parts int32  `json:"parts,omitempty"`
	}
	WidgetStatus struct {
		Ready bool `json:"ready,omitempty"`
	}
	Widget = runtime.Resource[WidgetSpec, WidgetStatus]
)

// groups are used in server.Options by the program, and in strategytest by the test.
func groups() []server.Group {
	return []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{Strategy: registry.Strategy[*Widget]{
			ValidateUpdate: func(_ *registry.Call, w, old *Widget) field.ErrorList {
				if w.Spec.Parts < old.Spec.Parts {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "parts"), w.Spec.Parts, "parts cannot be taken away")}
				}
				return nil
			},
		}}),
	}}}}}
}

// A test of the program calls Run like this:
//
//	func TestWidgets(t *testing.T) {
//		strategytest.Run(t, server.Options{Groups: groups()}, []strategytest.Case{...})
//	}
func Example() {
	widget := func(size, parts int32) *Widget {
		return &Widget{Spec: WidgetSpec{Size: size, Color: "red", Parts: parts}}
	}
	table := []strategytest.Case{
		{Name: "red by default", Create: &Widget{Spec: WidgetSpec{Size: 1}}, Want: widget(1, 0)},
		{Name: "not too large", Create: widget(11, 0), Errors: []string{"spec.size: Invalid value: 11"}},
		{Name: "parts stay", Old: widget(3, 5), Update: widget(3, 4), Errors: []string{"spec.parts: Invalid value: 4: parts cannot be taken away"}},
		{Name: "an update", Old: widget(3, 5), Update: widget(4, 5), Want: widget(5, 5)},
	}
	checker, err := strategytest.New(server.Options{Groups: groups()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range table {
		fmt.Println(c.Name)
		if err := checker.Check(c); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// red by default
	// not too large
	// parts stay
	// an update
	// the object differs:
	// 	spec.size: got 4, want 5
}
