package wire

import (
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The negotiation in advance has the same result as the negotiation for the request.
func TestUsualHeadersAreNegotiatedAsOthers(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for name, formats := range map[string][]codec.Format{
		"default": {codec.JSON(), codec.YAML(), codec.Protobuf()}, "all": {codec.JSON(), codec.YAML(), codec.Protobuf(), codec.CBOR()}, "one": {codec.YAML()},
	} {
		f, err := NewForms(NewObjects(Objects{Scheme: runtime.NewScheme(), Kind: kind}), formats)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, accept := range []string{
			"", "*/*", "application/json", "application/json, */*", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
			"application/vnd.kubernetes.protobuf,application/json", "application/cbor,application/json", "application/yaml,application/json",
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "text/html", "application/json;stream=watch", "application/json,application/json",
		} {
			for _, answer := range []Answer{OneObject, Events} {
				req := httptest.NewRequest("GET", "/", nil)
				if req.Header.Set("Accept", accept); accept == "" {
					req.Header.Del("Accept")
				}
				got, err := f.Negotiate(req, answer)
				want, ok := codec.NegotiateResponse(accept, formats, f.limits(answer == Events))
				if (err == nil) != ok || ok && (got.encoding != encodingOf(want.Format, want.Pretty) || got.as != want.As) {
					t.Errorf("%s: %q: %+v, %v; want %+v, %v", name, accept, got, err, want, ok)
				}
				if _, usual := f.usual[usual{accept, answer == Events}]; usual {
					found++
				}
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d are found beforehand", name, found)
		}
	}
}

// other is a format without an encoding.
type other struct{ codec.Format }

func (other) MediaType() string { return "application/other" }

func TestFormatsWithoutEncoding(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	if _, err := NewForms(NewObjects(Objects{Scheme: runtime.NewScheme(), Kind: kind}), []codec.Format{codec.JSON(), other{codec.JSON()}}); err == nil {
		t.Error("a format that cannot be written is offered")
	}
}
