package rules_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzRules checks that for any schema, rule and object nothing panics or takes long, objects are not changed, and the result is
// always the same.
func FuzzRules(f *testing.F) {
	c := compilerOf(f)
	for i, g := range corpus(f) {
		schema, err := json.Marshal(g.Schema)
		if err != nil {
			f.Fatal(err)
		}
		if len(schema) > 20_000 {
			continue
		}
		for j, o := range g.Objects {
			if (i+j)%4 == 0 && len(o.Value) < 10_000 {
				f.Add(schema, []byte(o.Value), []byte(o.Old), "self == oldSelf")
			}
		}
	}
	f.Add([]byte(`{"type":"object"}`), []byte(`{}`), []byte(`{}`), "self.metadata.name.size() < 5")
	f.Fuzz(func(t *testing.T, schema, value, old []byte, rule string) {
		props := &apiextensionsv1.JSONSchemaProps{}
		var v, was any
		if json.Unmarshal(schema, props) != nil || apijson.Unmarshal(value, &v) != nil {
			return
		}
		_ = apijson.Unmarshal(old, &was) // or it is nil
		props.XValidations = append(props.XValidations, apiextensionsv1.ValidationRule{Rule: rule, MessageExpression: rule})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, err := range c.Check(ctx, nil, props, rules.Options{Stored: rules.ExpressionsOf(props)}) {
			_ = err.Error()
		}
		s, err := structural.Compile(props)
		if err != nil {
			return
		}
		r, err := c.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		before := apiruntime.DeepCopyJSONValue(v)
		first := r.ValidateUpdate(ctx, nil, v, was, rules.Budget)
		again := r.ValidateUpdate(ctx, nil, v, was, rules.Budget)
		r.Validate(ctx, nil, v, 100)
		if !reflect.DeepEqual(before, v) {
			t.Error("the object was changed")
		}
		if ctx.Err() != nil {
			t.Fatal("it took too long")
		}
		if !reflect.DeepEqual(texts(first.Errors), texts(again.Errors)) || first.Budget != again.Budget {
			t.Errorf("%v, %d left, and then %v, %d left", first.Errors, first.Budget, again.Errors, again.Budget)
		}
	})
}
