package server_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
)

// What Typed cannot serve is an error that says why.
func TestTypedMistakes(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{sails(), {Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{Storage: moons{}}),
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	want := func(what string, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	if _, err := server.Typed[*Sail](srv, authn.System()); err != nil {
		t.Error(err)
	}
	_, err = server.Typed[*Sail](srv, nil)
	want("nobody", err, "the user is nil")
	_, err = server.Typed[*SailV1Beta1](srv, authn.System())
	want("another version", err, "a registry has objects of the hub, sea.example.com/v1, Kind=Sail")
	_, err = server.Typed[*Widget](srv, authn.System())
	want("a Storage of its own", err, "no stored resource with the Go type")
	_, err = server.Typed[*runtime.Resource[struct{}, struct{}]](srv, authn.System())
	want("a type that is not served", err, "no stored resource with the Go type")
}
