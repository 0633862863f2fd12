package server_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server"
)

// The bounds of patches are those of Limits.
func TestBoundsOfPatches(t *testing.T) {
	t.Parallel()
	tight := server.Limits{Patches: patch.Bounds{Operations: 2, Values: 9}}
	for name, c := range map[string]struct {
		limits            server.Limits
		contentType, body string
		want              int
	}{
		"two operations":   {tight, "application/json-patch+json", `[{"op":"test","path":"/kind","value":"Widget"},{"op":"test","path":"/kind","value":"Widget"}]`, 200},
		"three operations": {tight, "application/json-patch+json", `[` + strings.Repeat(`{"op":"test","path":"/kind","value":"Widget"},`, 2) + `{"op":"test","path":"/kind","value":"Widget"}]`, 413},
		"few values":       {tight, "application/merge-patch+json", `{"metadata":{"labels":{"a":"1"}}}`, 200},
		"many values":      {tight, "application/merge-patch+json", `{"metadata":{"labels":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1"}}}`, 413},
		"by default":       {server.Limits{}, "application/merge-patch+json", `{"metadata":{"labels":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1"}}}`, 200},
	} {
		o := wireKinds(false)
		o.Limits = c.limits
		srv, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := &writer{srv.Handler(), "Bearer " + srv.Credentials().Token}
		if got := w.do(t.Context(), write{"POST", widgetList, "application/json", `{"metadata":{"name":"a"}}`}); got.Code != 201 {
			t.Fatalf("POST: %d %s", got.Code, got.Body)
		}
		if got := w.do(t.Context(), write{"PATCH", widgetList + "/a", c.contentType, c.body}); got.Code != c.want {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}
