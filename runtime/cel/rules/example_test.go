package rules_test

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A rule is checked when a definition is written, and evaluated on the objects of the definition.
func Example() {
	ctx := context.Background()
	compiler, err := rules.NewCompiler()
	if err != nil {
		panic(err)
	}
	props := &apiextensionsv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
		XValidations: apiextensionsv1.ValidationRules{
			{Rule: "self.size >= oldSelf.size", Message: "must not shrink", FieldPath: ".size"},
			{Rule: "self.color == 'red'"},
		},
	}
	for _, err := range compiler.Check(ctx, field.NewPath("schema"), props, rules.Options{}) {
		fmt.Println(err.Field, err.Detail)
	}
	props.XValidations = props.XValidations[:1]
	schema, err := structural.Compile(props)
	if err != nil {
		panic(err)
	}
	compiled, err := compiler.Compile(schema)
	if err != nil {
		panic(err)
	}
	object, old := map[string]any{"size": int64(1)}, map[string]any{"size": int64(3)}
	outcome := compiled.ValidateUpdate(ctx, field.NewPath("spec"), object, old, rules.Budget)
	fmt.Println(outcome.Errors.ToAggregate(), rules.Budget-outcome.Budget)
	// Output:
	// schema.x-kubernetes-validations[1].rule compilation failed: ERROR: <input>:1:5: undefined field 'color'
	//  | self.color == 'red'
	//  | ....^
	// spec.size: Invalid value: must not shrink 5
}
