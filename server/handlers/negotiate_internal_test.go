package handlers

import (
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// anything is a storage without objects.
type anything struct{ registry.Getter }

// What is found beforehand is what would be found for the request.
func TestUsualHeadersAreNegotiatedAsOthers(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for name, formats := range map[string][]codec.Format{
		"default": nil, "all": {codec.JSON(), codec.YAML(), codec.Protobuf(), codec.CBOR()}, "one": {codec.YAML()},
	} {
		r, err := New(Options{Scheme: runtime.NewScheme(), Resource: gv.WithResource("widgets"), Kind: gv.WithKind("Widget"), Storage: anything{}, Formats: formats})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, accept := range []string{
			"", "*/*", "application/json", "application/json, */*", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
			"application/vnd.kubernetes.protobuf,application/json", "application/cbor,application/json", "application/yaml,application/json",
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "text/html", "application/json;stream=watch", "application/json,application/json",
		} {
			for _, s := range []shape{oneObject, eventStream} {
				req := httptest.NewRequest("GET", "/", nil)
				if req.Header.Set("Accept", accept); accept == "" {
					req.Header.Del("Accept")
				}
				c := &call{endpoint: r.main, r: req}
				got, err := c.negotiate(s)
				want, ok := codec.NegotiateResponse(accept, r.formats, codec.Limits{As: allowed, Own: r.main.own, Stream: s == eventStream})
				if (err == nil) != ok || ok && (got.Format.MediaType() != want.Format.MediaType() || got.As != want.As || got.Pretty != want.Pretty) {
					t.Errorf("%s: %q: %+v, %v; want %+v, %v", name, accept, got.Accept, err, want, ok)
				}
				if _, usual := r.main.usual[usual{accept, s == eventStream}]; usual {
					found++
				}
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d are found beforehand", name, found)
		}
	}
}
