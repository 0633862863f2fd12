package constraint_test

import (
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime/constraint"
)

type WidgetSpec struct {
	Size  *int32 `json:"size,omitempty" minimum:"1" maximum:"10" default:"3"`
	Color string `json:"color,omitempty" enum:"red,green"`
	Owner string `json:"owner,omitempty" required:"true" immutable:"true"`
}

func Example() {
	rules, err := constraint.Of(reflect.TypeFor[WidgetSpec]())
	if err != nil {
		fmt.Println(err)
		return
	}
	old := &WidgetSpec{Color: "blue", Owner: "ann"} // stored before there was a rule for colors
	rules.SetDefaults(old)
	fmt.Println("size:", *old.Size)

	size := int32(11)
	obj := &WidgetSpec{Size: &size, Color: "blue", Owner: "bob"}
	fmt.Println("new:")
	for _, e := range rules.Validate(obj) {
		fmt.Println(" ", e)
	}
	fmt.Println("changed:")
	for _, e := range rules.ValidateUpdate(obj, old) {
		fmt.Println(" ", e)
	}

	_, err = constraint.Of(reflect.TypeFor[struct {
		Size int `maxLength:"3"`
	}]())
	fmt.Println(err)
	// Output:
	// size: 3
	// new:
	//   size: Invalid value: 11: size in body should be less than or equal to 10
	//   color: Unsupported value: "blue": supported values: "red", "green"
	// changed:
	//   size: Invalid value: 11: size in body should be less than or equal to 10
	//   owner: Invalid value: "bob": field is immutable
	// constraints of type struct { Size int "maxLength:\"3\"" }: field Size: tag maxLength:"3": it is for a string, and the field is an integer (int); take the tag away, or check the field in the kind's Strategy
}
