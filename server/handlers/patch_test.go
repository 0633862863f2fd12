package handlers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	mergeType = "Content-Type: application/merge-patch+json"
	jsonType  = "Content-Type: application/json-patch+json; charset=utf-8"
)

func TestPatch(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	w := h.ask("PATCH", base+"/a", `{"spec":{"color":"red"},"metadata":{"labels":{"n":null,"m":"1"}}}`, mergeType)
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	if got := w.Body.String(); !strings.Contains(got, `"labels":{"m":"1"}`) || !strings.Contains(got, `"color":"red"`) || !strings.Contains(got, `"generation":2`) {
		t.Errorf("%s", got)
	}
	w = h.ask("PATCH", base+"/a", `[{"op":"test","path":"/spec/color","value":"red"},{"op":"replace","path":"/spec/size","value":4}]`, jsonType)
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	before := h.now(t)
	w = h.ask("PATCH", base+"/a", `{"spec":{"size":4}}`, mergeType)
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	if h.now(t) != before {
		t.Error("a patch that changes nothing was written")
	}
	w = h.ask("PATCH", base+"/a/status", `{"status":{"ready":true},"spec":{"size":99}}`, mergeType)
	if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, `"size":4`) || !strings.Contains(got, `"ready":true`) {
		t.Errorf("%d %s", w.Code, got)
	}
	w = h.ask("PATCH", base+"/a?dryRun=All", `{"spec":{"size":6}}`, mergeType)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"size":6`) || strings.Contains(h.whole(t, "a"), `"size":6`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPatchScale(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	w := h.ask("PATCH", base+"/a/scale", `{"spec":{"replicas":3}}`, mergeType)
	if got := w.Body.String(); w.Code != 200 || !strings.HasPrefix(got, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default","uid":"`) ||
		!strings.HasSuffix(got, `"spec":{"replicas":3},"status":{"replicas":0}}`+"\n") {
		t.Errorf("%d %s", w.Code, got)
	}
	if got := h.whole(t, "a"); !strings.Contains(got, `"replicas":3`) {
		t.Errorf("%s", got)
	}
	w = h.ask("PATCH", base+"/a/scale", `{"spec":{"replicas":-3}}`, mergeType)
	if s := decodeStatus(t, w.Body.Bytes()); w.Code != 422 || !strings.Contains(s.Message, "spec.replicas: Invalid value: -3") {
		t.Errorf("%d %s", w.Code, s.Message)
	}
}

func TestPatchRefused(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	many := "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Widget"},`, 10000) + `{"op":"test","path":"/kind","value":"Widget"}]`
	for _, c := range []struct {
		name, query, body, head string
		code                    int
		reason                  metav1.StatusReason
		message                 string
	}{
		{"failing test", "", `[{"op":"test","path":"/spec/size","value":8}]`, jsonType, 422, invalid, "the server rejected our request due to an error in our request"},
		{"missing path", "", `[{"op":"remove","path":"/spec/none"}]`, jsonType, 422, invalid, "the server rejected our request due to an error in our request"},
		{"no JSON", "", `[{"op"`, jsonType, 400, bad, "invalid JSON patch"},
		{"no JSON, merge", "", `{"op"`, mergeType, 400, bad, "invalid JSON patch"},
		{"no object", "", `"x"`, mergeType, 400, bad, "*error decoding patch: json: cannot unmarshal string"},
		{"many operations", "", many, jsonType, 413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"name", "", `{"metadata":{"name":"b"}}`, mergeType, 400, bad, "the name of the object (b) does not match the name on the URL (a)"},
		{"no name", "", `{"metadata":{"name":null}}`, mergeType, 400, bad, "the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"namespace", "", `{"metadata":{"namespace":"b"}}`, mergeType, 400, bad, "the namespace of the provided object does not match the namespace sent on the request"},
		{"kind", "", `{"kind":"Gadget"}`, mergeType, 422, invalid, `* "" is invalid: patch: Invalid value: "{`},
		{"version", "", `{"apiVersion":"example.com/v2"}`, mergeType, 422, invalid, `* "" is invalid: patch: Invalid value: "{`},
		{"type", "", `{"spec":{"size":"x"}}`, mergeType, 422, invalid, `* "" is invalid: patch: Invalid value: "{`},
		{"unknown field", "?fieldValidation=Strict", `{"spec":{"foo":1}}`, mergeType, 422, invalid, `* "" is invalid: patch: Invalid value: "{`},
		{"duplicate field", "?fieldValidation=Strict", `{"spec":{"size":1,"size":2}}`, mergeType, 422, invalid, `* "" is invalid: patch: Invalid value: "{`},
		{"resourceVersion", "", `{"metadata":{"resourceVersion":"1"}}`, mergeType, 409, metav1.StatusReasonConflict, `*Operation cannot be fulfilled on widgets.example.com "a": the object has been modified`},
		{"uid", "", `{"metadata":{"uid":"other"}}`, mergeType, 422, invalid, `Widget.example.com "a" is invalid: metadata.uid: Invalid value: "other": field is immutable`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := h.now(t)
			w := h.ask("PATCH", base+"/a"+c.query, c.body, c.head)
			message := c.message
			if strings.HasPrefix(message, "*") && w.Code == c.code {
				if got := decodeStatus(t, w.Body.Bytes()).Message; strings.HasPrefix(got, message[1:]) {
					message = got
				}
			}
			wantStatus(t, w, c.code, c.reason, message)
			if h.now(t) != before {
				t.Error("a refused patch changed something")
			}
		})
	}
	w := h.ask("PATCH", base+"/none", `{}`, mergeType)
	wantStatus(t, w, 404, metav1.StatusReasonNotFound, `widgets.example.com "none" not found`)

	w = h.ask("PATCH", base+"/a?fieldValidation=Strict", `{"spec":{"foo":1}}`, mergeType)
	s := decodeStatus(t, w.Body.Bytes())
	if d := s.Details; d.Kind != "" || d.Name != "" || len(d.Causes) != 1 || d.Causes[0].Field != "patch" || !strings.Contains(s.Message, `strict decoding error: unknown field "spec.foo"`) {
		t.Errorf("%+v %s", d, s.Message)
	}
	w = h.ask("PATCH", base+"/a", `{"spec":{"foo":1,"size":1,"size":2}}`, mergeType)
	if got := w.Header().Values("Warning"); w.Code != 200 || len(got) != 2 || got[0] != `299 - "duplicate field \"spec.size\""` || got[1] != `299 - "unknown field \"spec.foo\""` {
		t.Errorf("%d %q", w.Code, got)
	}
	w = h.ask("PATCH", base+"/a", `[{"op":"add","op":"add","path":"/spec/foo","value":1}]`, jsonType)
	if got := w.Header().Values("Warning"); w.Code != 200 || len(got) != 2 || !strings.HasPrefix(got[0], `299 - "json patch duplicate field `) {
		t.Errorf("%d %q", w.Code, got)
	}
}

// TestPatchRetries changes the object between the read and the write of a patch. The patch must be applied to the new state,
// without losing a change.
func TestPatchRetries(t *testing.T) {
	var h *house
	once := false
	h = newHouse(t, tune{strategy: registry.Strategy[*Widget]{
		PrepareForUpdate: func(ctx *registry.Call, obj, old *Widget) {
			if once || obj.Spec.Color == "" {
				return
			}
			once = true
			_, _, err := h.registry.UpdateRecord(registry.NewCall(context.Background(), authn.System(), "default"), "a",
				func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
					current.(*Widget).Spec.Size = 42
					return current, nil
				}, &metav1.UpdateOptions{})
			if err != nil {
				t.Error(err)
			}
		},
	}})
	h.make(t, "a")
	w := h.ask("PATCH", base+"/a", `{"spec":{"color":"red"}}`, mergeType)
	if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `"spec":{"size":42,"color":"red","replicas":0}`) || !once {
		t.Errorf("%d %s", w.Code, got)
	}
}
