package equal_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/server/registry/internal/equal"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

type unexported struct {
	a map[string]any
	b *int
}

// TestValues checks that the package agrees with reflect.DeepEqual.
func TestValues(t *testing.T) {
	nan, one, two := math.NaN(), 1, 1
	shared := []any{nan}
	var none *int
	values := []any{
		nil, none, &one, &two, 0, 1, 1.0, nan, "", "a", true, []string(nil), []string{}, []string{"a"}, []any{"a"}, [1]string{"a"},
		[]any{nil}, shared, shared, []any{nan}, map[string]any(nil), map[string]any{}, map[string]any{"a": nil}, map[string]any{"b": nil},
		map[string]any{"a": 1}, map[string]any{"a": map[string]any{"b": []any{1}}}, map[string]any{"a": map[string]any{"b": []any{1}}},
		map[float64]int{nan: 1}, metav1.Now(), metav1.Time{}, unexported{}, unexported{a: map[string]any{"a": 1}},
		unexported{a: map[string]any{"a": 1}, b: &one}, unexported{a: map[string]any{"a": 2}, b: &two}, (func())(nil), func() {}, make(chan int),
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := equal.Values(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("%#v, %#v: %t", a, b, got)
			}
		}
	}
}

// TestRandomValues checks that copies of random definitions are equal, and that those with one change are not.
func TestRandomValues(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0.5).NumElements(1, 3).MaxDepth(12)
	differ := 0
	for range 300 {
		var a, b apiextensionsv1.CustomResourceDefinition
		fill.Fill(&a)
		fill.Fill(&b)
		if c := a.DeepCopy(); !equal.Values(&a, c) {
			t.Fatal("a copy differs")
		}
		b.Spec = *a.Spec.DeepCopy()
		b.ObjectMeta = *a.ObjectMeta.DeepCopy()
		if got, want := equal.Values(a, b), reflect.DeepEqual(a, b); got != want {
			t.Fatalf("%t for definitions that differ at most in status", got)
		} else if !got {
			differ++
		}
	}
	if differ == 0 {
		t.Error("no two definitions differ")
	}
}

// BenchmarkValues compares two equal definitions of 3,000 fields.
func BenchmarkValues(b *testing.B) {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range 3000 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		fields[name] = apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: json.RawMessage(`"a"`)}}}
	}
	x := apiextensionsv1.JSONSchemaProps{Properties: fields}
	y := *x.DeepCopy()
	for name, same := range map[string]func(a, b any) bool{"Values": equal.Values, "DeepEqual": reflect.DeepEqual} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !same(x, y) {
					b.Fatal("they differ")
				}
			}
		})
	}
}
