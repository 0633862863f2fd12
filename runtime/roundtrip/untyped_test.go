package roundtrip_test

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds without a Go type are left out, and naming one in Options.Kinds is an error.
func TestUntyped(t *testing.T) {
	type typed = runtime.Resource[struct{ A int }, struct{}]
	s := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	if err := runtime.Register(s, gvk, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
		t.Fatal(err)
	}
	obj := s.Lookup(gvk).New()
	if err := roundtrip.Check(s, obj, roundtrip.Options{}); err == nil {
		t.Error("there was nothing to check")
	}
	if err := runtime.Register[*typed](s, gvk.GroupVersion().WithKind("Typed"), runtime.KindOptions[*typed]{}); err != nil {
		t.Fatal(err)
	}
	if err := roundtrip.Check(s, obj, roundtrip.Options{}); err != nil {
		t.Error(err)
	}
	if err := roundtrip.Check(s, obj, roundtrip.Options{Kinds: []schema.GroupKind{gvk.GroupKind()}}); err == nil {
		t.Error("a kind without a Go type was asked for")
	}
	t.Run("all", func(t *testing.T) { roundtrip.Test(t, s, roundtrip.Options{Rounds: 2}) })
}
