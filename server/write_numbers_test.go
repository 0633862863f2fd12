package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Integers beyond int64 keep their value, or the change is refused: none is stored as another number.
func TestNumbersBeyondInt64(t *testing.T) {
	t.Parallel()
	const huge = "9223372036854776833" // a uint64 that is not a float64
	srv := servertest.Start(t, contendedRigs(server.KindOptions[*rig]{}))
	w := rigWriter{t, srv.Client(), srv.URL + rigList + "/r", "m"}
	for name, config := range map[string]string{
		"JSON":      `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"},"spec":{"huge":` + huge + `}}`,
		"YAML":      "apiVersion: rig.example.com/v1\nkind: Rig\nmetadata: {name: r}\nspec: {huge: " + huge + "}",
		"free form": `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"},"spec":{"free":{"a":[-` + huge + `]}}}`,
	} {
		code, refused := w.send("PATCH", "v1", "", applyPatch, config)
		if got, _, _ := unstructured.NestedString(refused.Object, "message"); code != http.StatusBadRequest || !strings.Contains(got, huge+" is larger than the numbers that can be merged") {
			t.Errorf("%s: %d %v", name, code, refused.Object)
		}
	}
	if code, obj := w.send("GET", "v1", "", "", ""); code != http.StatusNotFound {
		t.Fatalf("stored: %v", obj.Object)
	}
	code, text := call(t, srv.Client(), "POST", srv.URL+rigList, `{"metadata":{"name":"r"},"spec":{"huge":`+huge+`}}`)
	wantCode(t, http.StatusCreated, code, text)
	for _, kind := range []string{mergePatch, strategicPatch} {
		code, text := call(t, srv.Client(), "PATCH", w.url, `{"spec":{"name":"n"}}`, "Content-Type", kind)
		if code != http.StatusOK || !strings.Contains(text, `"huge":`+huge) {
			t.Errorf("%s: %d %s", kind, code, text)
		}
	}
	// A float64 may look like such a number, and is merged.
	w.url += "2"
	w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch,
		`{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r2"},"spec":{"anything":{"a":1e19,"b":10000000000000000000,"c":-9223372036854775808}}}`)
	_, text = call(t, srv.Client(), "GET", w.url, "")
	if !strings.Contains(text, `"anything":{"a":10000000000000000000,"b":10000000000000000000,"c":-9223372036854775808}`) {
		t.Errorf("%s", text)
	}
	w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r2"},"spec":{"name":"n"}}`)
}
