package storage_test

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Call has the name of its caller in one of two places. In the other group both are in one place.
type (
	Call = runtime.Resource[struct {
		Source struct {
			Component string `json:"component,omitempty"`
		} `json:"source,omitzero"`
		Controller string `json:"controller,omitempty"`
	}, struct{}]
	OtherCall = runtime.Resource[struct {
		By string `json:"by,omitempty"`
	}, struct{}]
)

// A selectable field may be at one of several paths, and have no path in objects that are stored in the other group.
func TestSelectingByOneOfSeveralPaths(t *testing.T) {
	hub := schema.GroupVersionKind{Version: "v1", Kind: "Call"}
	other := schema.GroupVersionKind{Group: "calls.example.com", Version: "v1", Kind: "Call"}
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, hub, runtime.KindOptions[*Call]{SelectableFrom: map[string][]string{"source": {"spec.source.component", "spec.controller"}}}),
		runtime.Register(s, other, runtime.KindOptions[*OtherCall]{}),
		runtime.AddConversion(s,
			func(in *OtherCall, out *Call) error { out.Spec.Controller = in.Spec.By; return nil },
			func(in *Call, out *OtherCall) error { out.Spec.By = in.Spec.Controller; return nil }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { _ = backend.Close() })
	store := func(stored schema.GroupVersionKind) *storage.Store {
		typed, err := codec.NewTyped(s, stored)
		if err != nil {
			t.Fatal(err)
		}
		st, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/calls", Codec: typed, Fields: []string{"source"}, FieldPaths: s.FieldPaths(hub.GroupKind())})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	put := func(st *storage.Store, name, component, controller string) {
		t.Helper()
		c := &Call{}
		c.Name, c.Spec.Source.Component, c.Spec.Controller = name, component, controller
		if _, err := st.Create(t.Context(), name, c, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	st := store(hub)
	put(st, "both", "first", "second")
	put(st, "none", "", "")
	put(st, "second", "", "second")
	put(store(other), "stored-in-the-other", "", "second")
	for selector, want := range map[string]string{"source=first": "both", "source=second": "second stored-in-the-other", "source=": "none"} {
		page, err := st.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Fields: fields.ParseSelectorOrDie(selector)}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for r := range page.Records {
			got += " " + r.Key
		}
		if got != " "+want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
}
