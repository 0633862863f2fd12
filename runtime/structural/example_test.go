package structural_test

import (
	"encoding/json"
	"fmt"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func Example() {
	props := &apiextensionsv1.JSONSchemaProps{}
	err := json.Unmarshal([]byte(`{"type": "object", "properties": {"spec": {"type": "object", "properties": {
		"color": {"type": "string", "enum": ["red", "green"], "default": "red"},
		"size":  {"type": "integer", "maximum": 10}}}}}`), props)
	if err != nil {
		fmt.Println(err)
	}
	if errs := structural.Check(field.NewPath("schema"), props, structural.Options{}); len(errs) > 0 {
		fmt.Println(errs.ToAggregate())
	}
	schema, err := structural.Compile(props)
	if err != nil {
		fmt.Println(err)
	}

	widget := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"},
		"spec": map[string]any{"size": int64(12), "weight": int64(1)},
	}
	unknown, err := schema.Conform(widget, structural.ConformOptions{Report: 100})
	fmt.Println(unknown, err)
	schema.SetDefaults(widget)
	fmt.Println(widget["spec"])
	for _, err := range schema.Validate(nil, widget) {
		fmt.Println(err)
	}
	// Output:
	// [spec.weight] <nil>
	// map[color:red size:12]
	// spec.size: Invalid value: 12: spec.size in body should be less than or equal to 10
}
