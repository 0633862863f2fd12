package registry_test

import (
	"context"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clearColor is a mutator that removes a field with a default.
type clearColor struct{}

func (clearColor) Mutate(_ context.Context, req *admission.Request) error {
	if w, ok := req.Object().(*Widget); ok {
		w.Spec.Color = ""
	}
	return nil
}

// TestDefaultsAreStored: a caller in process, a mutator or a strategy may leave out a field with a default. The object is
// validated and stored with the default, so that all readers get it, even those that do not decode.
func TestDefaultsAreStored(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{Default: func(w *Widget) {
		if w.Spec.Color == "" {
			w.Spec.Color = "blue"
		}
	}}))
	typed, err := codec.NewTyped(scheme, widgetKind)
	must(t, err)
	validate := func(_ *registry.Call, w *Widget) field.ErrorList {
		if w.Spec.Color == "" {
			return field.ErrorList{field.Required(field.NewPath("spec", "color"), "")}
		}
		return nil
	}
	for name, how := range map[string]struct {
		strategy registry.Strategy[*Widget]
		chain    admission.Chain
	}{
		"caller":   {strategy: registry.Strategy[*Widget]{Validate: validate}},
		"mutator":  {strategy: registry.Strategy[*Widget]{Validate: validate}, chain: admission.Chain{{Mutator: clearColor{}}}},
		"strategy": {strategy: registry.Strategy[*Widget]{Canonicalize: func(w *Widget) { w.Spec.Color = "" }}},
	} {
		t.Run(name, func(t *testing.T) {
			backend := memory.New(memory.Options{})
			t.Cleanup(func() { must(t, backend.Close()) })
			store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/widgets", Codec: typed, Namespaced: true})
			must(t, err)
			reg, err := registry.New(registry.Options{
				Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Namespaced: true, Storage: store,
				Strategy: registry.Erase(how.strategy), Policy: how.chain,
			})
			must(t, err)
			f, err := registry.For[*Widget](reg, authn.System())
			must(t, err)
			color := func(what string) {
				t.Helper()
				rec, err := reg.GetRecord(registry.NewCall(t.Context(), authn.System(), "ns"), "a", storage.Read{})
				must(t, err)
				equal(t, what+", in the bytes", rec.Body.Field("spec.color"), "blue")
				w, err := f.Get(t.Context(), "ns", "a")
				must(t, err)
				equal(t, what+", decoded", w.Spec.Color, "blue")
			}
			w, err := f.Create(t.Context(), "ns", widget("a"))
			must(t, err)
			color("created")
			w.Spec.Color, w.Spec.Size = "", 2
			w, err = f.Update(t.Context(), "ns", w)
			must(t, err)
			color("updated")
			equal(t, "generation", w.Generation, 2)
			w.Spec.Color = ""
			again, err := f.Update(t.Context(), "ns", w)
			must(t, err)
			equal(t, "revision after an update that only leaves out the default", again.ResourceVersion, w.ResourceVersion)
			equal(t, "generation after it", again.Generation, 2)
		})
	}
}
