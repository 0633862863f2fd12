package handlers_test

import (
	"testing"

	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScaleWithoutVersion: a Scale without a resourceVersion has no precondition, even if an update of the object needs one.
func TestScaleWithoutVersion(t *testing.T) {
	h := newHouse(t, tune{strategy: registry.Strategy[*Widget]{RequireResourceVersion: true}})
	h.make(t, "a")
	if w := h.ask("PUT", base+"/a/scale", `{"metadata":{"name":"a"},"spec":{"replicas":3}}`); w.Code != 200 {
		t.Errorf("PUT: %d %s", w.Code, w.Body)
	}
	if w := h.ask("PATCH", base+"/a/scale", `{"metadata":{"resourceVersion":null,"uid":null},"spec":{"replicas":4}}`, "Content-Type: application/merge-patch+json"); w.Code != 200 {
		t.Errorf("PATCH: %d %s", w.Code, w.Body)
	}
	if got := h.record(t, "a").Body.Field("spec.replicas"); got != "4" {
		t.Errorf("replicas %s", got)
	}
	if w := h.ask("PUT", base+"/a/scale", `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":5}}`); w.Code != 409 {
		t.Errorf("PUT of an old version: %d %s", w.Code, w.Body)
	}
	if w := h.ask("PUT", base+"/a/scale", `{"metadata":{"name":"a","uid":"x"},"spec":{"replicas":5}}`); w.Code != 409 {
		t.Errorf("PUT of another uid: %d %s", w.Code, w.Body)
	}
}

// TestScaleReadsAtResourceVersion: GET of a scale supports resourceVersion as GET of the object does.
func TestScaleReadsAtResourceVersion(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, version := range []string{"", "0", h.now(t)} {
		if w := h.ask("GET", base+"/a/scale?resourceVersion="+version, ""); w.Code != 200 {
			t.Errorf("%q: %d %s", version, w.Code, w.Body)
		}
	}
	w := h.ask("GET", base+"/a/scale?resourceVersion=abc", "")
	wantStatus(t, w, 400, metav1.StatusReasonBadRequest, `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`)
}
