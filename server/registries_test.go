package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRegistriesAreThoseOfTheServer checks that Registries write to the same place and by the same rules as the server, and that
// each version has its own resource, subresources and messages.
func TestRegistriesAreThoseOfTheServer(t *testing.T) {
	ctx := t.Context()
	options := func() server.Options {
		return server.Options{Groups: twoGroups(server.KindOptions[*Bell]{
			Scale: &registry.Scale{SpecReplicas: ".spec.weight", StatusReplicas: ".status.rung"},
		}, server.KindOptions[*BronzeBell]{})}
	}
	kinds, err := server.NewRegistries(options())
	noError(t, err)
	backend := memory.New(memory.Options{})
	o := options()
	o.Storage = func(context.Context) (storage.Backend, error) { return backend, nil }
	srv, err := server.New(o)
	noError(t, err)
	defer func() { noError(t, srv.Close()) }()

	hub := apischema.GroupVersionKind{Group: "iron.example.com", Version: "v1", Kind: "Bell"}
	iron, err := kinds.Open(backend, hub)
	noError(t, err)
	bells, err := registry.For[*Bell](iron.Registry, authn.System())
	noError(t, err)
	b := &Bell{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	b.Spec.Tone = "c"
	_, err = bells.Create(ctx, "default", b)
	noError(t, err)
	if b.Spec.Weight = 1001; kinds.Scheme().KindOf(b) == nil {
		t.Error("the scheme does not know the kind")
	}
	if _, err := bells.Update(ctx, "default", b); err == nil || !strings.Contains(err.Error(), "spec.weight: Invalid value: 1001") {
		t.Errorf("a rule of the kind: %v", err)
	}

	noError(t, srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		served, err := h.Registry(apischema.GroupResource{Group: "iron.example.com", Resource: "bells"})
		noError(t, err)
		of, err := registry.For[*Bell](served, authn.System())
		noError(t, err)
		if got, err := of.Get(ctx, "default", "a"); err != nil || got.Spec.Tone != "c" {
			t.Errorf("the server has %v, %v", got, err)
		}
		return nil
	})))

	if iron.Status == nil || iron.Scale == nil {
		t.Errorf("subresources of the hub: %v, %v", iron.Status, iron.Scale)
	}
	bronze, err := kinds.Open(backend, apischema.GroupVersionKind{Group: "bronze.example.com", Version: "v1beta1", Kind: "Bell"})
	noError(t, err)
	if bronze.Status != nil || bronze.Scale == nil {
		t.Errorf("subresources of a version without a status: %v, %v", bronze.Status, bronze.Scale)
	}
	if got := bronze.Registry.Resource().Group; got != "bronze.example.com" {
		t.Errorf("the registry of another group is called that of %s", got)
	}
	if _, err := bronze.Objects.Get(ctx, "default/a", storage.Read{}); err != nil {
		t.Errorf("the objects of another group: %v", err)
	}
}

// TestRegistriesThatThereAreNot checks that options that New refuses are refused, and that only stored kinds have a registry.
func TestRegistriesThatThereAreNot(t *testing.T) {
	o := server.Options{Groups: twoGroups(server.KindOptions[*Bell]{Scale: &registry.Scale{SpecReplicas: ".spec.tone", StatusReplicas: ".status.rung"}}, server.KindOptions[*BronzeBell]{})}
	_, refused := server.NewRegistries(o)
	_, want := server.New(o)
	if refused == nil || want == nil || refused.Error() != want.Error() {
		t.Errorf("got  %v\nwant %v", refused, want)
	}
	kinds, err := server.NewRegistries(server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Bell", server.KindOptions[*Bell]{Storage: drops{}}),
	}}}}}})
	noError(t, err)
	backend := memory.New(memory.Options{})
	defer func() { noError(t, backend.Close()) }()
	if _, err := kinds.Open(backend, apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gong"}); err == nil || err.Error() != "server: example.com/v1, Kind=Gong is no kind of the Groups" {
		t.Errorf("a kind that there is not: %v", err)
	}
	if _, err := kinds.Open(backend, apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Bell"}); err == nil || err.Error() != "server: registry of example.com/v1, Kind=Bell: it has a Storage of its own" {
		t.Errorf("a kind that is not stored: %v", err)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
