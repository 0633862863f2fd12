package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Gauges have constraints in the hub, v1. In v1beta1 two fields have other names. One of them is selectable, and has another rule
// there.
type Gauge = runtime.Resource[GaugeSpec, GaugeStatus]

type GaugeSpec struct {
	Size     *int32  `json:"size,omitempty" minimum:"1" maximum:"10" default:"3"`
	Color    string  `json:"color,omitempty" enum:"red,green" default:"red"`
	Replicas *int32  `json:"replicas,omitempty" maximum:"5"`
	Levels   []int32 `json:"levels,omitempty" items:"minimum:\"1\""`
	Zone     string  `json:"zone,omitempty" immutable:"true"`
	Need     string  `json:"need,omitempty" required:"true"`
}

type GaugeStatus struct {
	Ready    string `json:"ready,omitempty" required:"true" enum:"yes,no"`
	Replicas int32  `json:"replicas,omitempty"`
}

type GaugeV1Beta1 = runtime.Resource[struct {
	Extent   *int32  `json:"extent,omitempty"`
	Colour   string  `json:"colour,omitempty" enum:"red,green"`
	Replicas *int32  `json:"replicas,omitempty"`
	Levels   []int32 `json:"levels,omitempty"`
	Zone     string  `json:"zone,omitempty"`
	Need     string  `json:"need,omitempty"`
}, GaugeStatus]

func gaugeServer(t *testing.T) *wire {
	t.Helper()
	toHub := func(in *GaugeV1Beta1, out *Gauge) error {
		out.Spec, out.Status = GaugeSpec{in.Spec.Extent, in.Spec.Colour, in.Spec.Replicas, in.Spec.Levels, in.Spec.Zone, in.Spec.Need}, in.Status
		return nil
	}
	fromHub := func(in *Gauge, out *GaugeV1Beta1) error {
		out.Spec.Extent, out.Spec.Colour, out.Spec.Replicas = in.Spec.Size, in.Spec.Color, in.Spec.Replicas
		out.Spec.Levels, out.Spec.Zone, out.Spec.Need, out.Status = in.Spec.Levels, in.Spec.Zone, in.Spec.Need, in.Status
		return nil
	}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(newLasting(t)), Groups: []server.Group{{
		Name: "gauge.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Gauge", server.KindOptions[*Gauge]{
				Hub: true, SelectableFields: []string{"spec.color"}, Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
				Strategy: registry.Strategy[*Gauge]{Validate: func(_ *registry.Call, g *Gauge) (errs field.ErrorList) {
					if g.Spec.Zone == "moon" {
						spec := field.NewPath("spec")
						errs = append(errs, field.Forbidden(spec.Child("color"), "there are no colors"), field.Forbidden(spec.Child("size"), "it floats"),
							field.Forbidden(spec.Child("zone"), "it is far"))
					}
					return errs
				}},
			})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Gauge", server.KindOptions[*GaugeV1Beta1]{RenamedFields: map[string]string{"spec.colour": "spec.color"}})}},
		},
		Conversions: []server.Conversion{server.Convert(toHub, fromHub)},
	}}})
	return &wire{Server: srv, client: srv.Client()}
}

// Every kind of write is judged in every version, and errors name the fields as that version does.
func TestConstraintsOfEveryWrite(t *testing.T) {
	t.Parallel()
	w := gaugeServer(t)
	for _, v := range []string{"v1", "v1beta1"} {
		t.Run(v, func(t *testing.T) {
			path := "/apis/gauge.example.com/" + v + "/namespaces/default/gauges"
			one := path + "/in-" + v
			color, size, ofHub := "color", "size", ""
			if v == "v1beta1" {
				color, size, ofHub = "colour", "extent", " (in version v1)"
			}
			object := func(name, spec string) string {
				return fmt.Sprintf(`{"apiVersion":"gauge.example.com/%s","kind":"Gauge","metadata":{"name":%q},"spec":{%s}}`, v, name, spec)
			}
			w.ask(t, "POST", path, object("in-"+v, `"need":"n","zone":"z"`)).want(t, 201)
			before := w.ask(t, "GET", one, "").meta(t).ResourceVersion
			const jsonPatch, strategic, apply = "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"
			badColor := `spec.` + color + `: Unsupported value: "blue": supported values: "red", "green"`
			badSize := `spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1` + ofHub
			badReplicas := `spec.replicas: Invalid value: 7: spec.replicas in body should be less than or equal to 5`
			for _, c := range []struct{ method, path, media, body, name, want string }{
				{"POST", path, "application/json", object("new", `"`+color+`":"blue","`+size+`":0,"levels":[1,0]`), "new", "[" + badSize + ", " + badColor +
					", spec.levels[1]: Invalid value: 0: spec.levels[1] in body should be greater than or equal to 1, spec.need: Required value]"},
				{"POST", path, "application/json", object("new", `"need":"n","zone":"moon"`), "new", "[spec." + color + ": Forbidden: there are no colors, spec.size: Forbidden: it floats" +
					ofHub + ", spec.zone: Forbidden: it is far]"},
				{"POST", path + "?dryRun=All", "application/json", object("new", `"need":"n","`+color+`":"blue"`), "new", badColor},
				{"PUT", one, "application/json", object("in-"+v, `"zone":"z"`), "in-" + v, "spec.need: Required value"},
				{"PATCH", one, mergePatchType, `{"spec":{"` + color + `":"blue"}}`, "in-" + v, badColor},
				{"PATCH", one, strategic, `{"spec":{"` + size + `":0}}`, "in-" + v, badSize},
				{"PATCH", one, jsonPatch, `[{"op":"replace","path":"/spec/zone","value":"y"}]`, "in-" + v, `spec.zone: Invalid value: "y": field is immutable`},
				{"PATCH", one + "?fieldManager=m", apply, object("in-"+v, `"replicas":7`), "in-" + v, badReplicas},
				{"PATCH", path + "/new?fieldManager=m", apply, object("new", `"need":"n","replicas":7`), "new", badReplicas},
				{"PATCH", one + "/status", mergePatchType, `{"status":{"ready":"maybe"}}`, "in-" + v, `status.ready: Unsupported value: "maybe": supported values: "yes", "no"`},
				{"PATCH", one + "/scale", mergePatchType, `{"spec":{"replicas":7}}`, "in-" + v, badReplicas},
			} {
				a := w.ask(t, c.method, c.path, c.body, "Content-Type", c.media)
				want := fmt.Sprintf("Gauge.gauge.example.com %q is invalid: %s", c.name, c.want)
				if s := a.status(t); s.Code != http.StatusUnprocessableEntity || s.Message != want {
					t.Errorf("%s %s %s: %d\ngot  %s\nwant %s", c.method, c.path, c.media, s.Code, s.Message, want)
				}
			}
			// A field with a default is the same whether it is sent or not.
			w.ask(t, "PUT", one, object("in-"+v, `"need":"n","zone":"z"`)).want(t, 200)
			w.ask(t, "PATCH", one, `{"spec":{"`+color+`":null,"`+size+`":null}}`, "Content-Type", mergePatchType).want(t, 200)
			if now := w.ask(t, "GET", one, "").meta(t).ResourceVersion; now != before {
				t.Errorf("the object went from %s to %s", before, now)
			}
		})
	}
}

// A request of one megabyte with an error in every second byte, or in every label, gets a short answer.
func TestErrorsOfOneRequestAreBounded(t *testing.T) {
	t.Parallel()
	w := gaugeServer(t)
	var labels strings.Builder
	for i := range 9_999 {
		fmt.Fprintf(&labels, `"%d!":"",`, i)
	}
	for what, body := range map[string]string{
		"levels": `{"metadata":{"name":"a"},"spec":{"need":"n","levels":[` + strings.Repeat("0,", 500_000) + `0]}}`,
		"labels": `{"metadata":{"name":"a","labels":{` + labels.String() + `"z":""}},"spec":{"need":"n"}}`,
	} {
		s := w.ask(t, "POST", "/apis/gauge.example.com/v1/namespaces/default/gauges", body).status(t)
		if s.Code != http.StatusUnprocessableEntity || len(s.Details.Causes) != 100 || !strings.HasSuffix(s.Message, " more errors than these]") {
			t.Errorf("%s: %d with %d causes, %d bytes ending in %s", what, s.Code, len(s.Details.Causes), len(s.Message), s.Message[max(0, len(s.Message)-200):])
		}
	}
}
