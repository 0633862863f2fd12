package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A Fleet in v1 has its ships in spec.ships, and in v1beta1 in spec.count.
type (
	fleet = runtime.Resource[struct {
		Ships int32  `json:"ships,omitempty"`
		Port  string `json:"port,omitempty"`
	}, struct {
		Ships int32 `json:"ships,omitempty"`
	}]
	oldFleet = runtime.Resource[struct {
		Count int32  `json:"count,omitempty"`
		Port  string `json:"port,omitempty"`
	}, struct{}]
)

func fleets(hub server.KindOptions[*fleet], old server.KindOptions[*oldFleet], more ...server.Conversion) server.Group {
	return server.Group{
		Name: "sea.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Fleet", hub)}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Fleet", old)}},
		},
		Conversions: append([]server.Conversion{server.Convert(func(in *oldFleet, out *fleet) error {
			out.Spec.Ships, out.Spec.Port = in.Spec.Count, in.Spec.Port
			return nil
		}, func(in *fleet, out *oldFleet) error {
			out.Spec.Count, out.Spec.Port = in.Spec.Ships, in.Spec.Port
			return nil
		})}, more...),
	}
}

// TestScaleInEveryVersion checks that the hub's Scale is served in all versions, and that its manager is recorded in a version
// that has the replicas at the path of the hub.
func TestScaleInEveryVersion(t *testing.T) {
	t.Parallel()
	hub := server.KindOptions[*fleet]{Scale: &registry.Scale{SpecReplicas: ".spec.ships", StatusReplicas: ".status.ships"}}
	a := applying{t, servertest.Start(t, server.Options{Groups: []server.Group{fleets(hub, server.KindOptions[*oldFleet]{})}})}
	const v1, beta = "/apis/sea.example.com/v1/namespaces/default/fleets/f", "/apis/sea.example.com/v1beta1/namespaces/default/fleets/f"
	a.apply(v1, "fieldManager=a", `{"apiVersion":"sea.example.com/v1","kind":"Fleet","metadata":{"name":"f"},"spec":{"ships":2,"port":"x"}}`, http.StatusCreated)
	for _, path := range []string{v1, beta} {
		code, body := call(t, a.srv.Client(), "GET", a.srv.URL+path+"/scale", "")
		wantCode(t, http.StatusOK, code, body)
		if !strings.Contains(body, `"spec":{"replicas":2}`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	code, body := call(t, a.srv.Client(), "PATCH", a.srv.URL+beta+"/scale?fieldManager=b", `{"spec":{"replicas":5}}`, "Content-Type", mergePatchType)
	wantCode(t, http.StatusOK, code, body)
	body, m, _ := a.apply(v1, "fieldManager=c", `{"apiVersion":"sea.example.com/v1","kind":"Fleet","metadata":{"name":"f"},"spec":{"ships":5}}`, http.StatusOK)
	got := strings.Split(owners(m), "\n")
	slices.Sort(got)
	want := []string{`a Apply v1 {"f:spec":{"f:port":{}}}`, `b Update v1/scale {"f:spec":{"f:ships":{}}}`, `c Apply v1 {"f:spec":{"f:ships":{}}}`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q\n%s", got, want, body)
	}
}

func TestVersionsThatContradictEachOther(t *testing.T) {
	t.Parallel()
	scale := &registry.Scale{SpecReplicas: ".spec.ships", StatusReplicas: ".status.ships"}
	for name, c := range map[string]struct {
		group server.Group
		want  string
	}{
		"a scale of its own":   {fleets(server.KindOptions[*fleet]{}, server.KindOptions[*oldFleet]{Scale: scale}), "may have Scale"},
		"two hubs":             {fleets(server.KindOptions[*fleet]{Hub: true}, server.KindOptions[*oldFleet]{Hub: true}), "Hub is set in the versions sea.example.com/v1 and sea.example.com/v1beta1; remove it from one"},
		"a conversion of nil":  {fleets(server.KindOptions[*fleet]{}, server.KindOptions[*oldFleet]{}, server.Convert[*oldFleet, *fleet](nil, nil)), "a function is nil"},
		"a second conversion":  {fleets(server.KindOptions[*fleet]{}, server.KindOptions[*oldFleet]{}, fleets(server.KindOptions[*fleet]{}, server.KindOptions[*oldFleet]{}).Conversions...), "there is one already"},
		"fields without reset": {fleets(server.KindOptions[*fleet]{Strategy: registry.Strategy[*fleet]{ResetFields: []string{".spec.port"}}}, server.KindOptions[*oldFleet]{}), `ResetFields ".spec.port"`},
	} {
		t.Run(name, func(t *testing.T) {
			srv, err := server.New(server.Options{Groups: []server.Group{c.group}})
			if err == nil {
				t.Error(srv.Close())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
