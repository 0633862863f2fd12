package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type (
	Airport = runtime.Resource[struct {
		Closed bool `json:"closed,omitempty"`
	}, struct{}]
	Flight = runtime.Resource[struct {
		To string `json:"to"`
	}, struct{}]
)

// knownAirport is a rule of flights that looks at airports.
func knownAirport(call *registry.Call, f *Flight) field.ErrorList {
	to := field.NewPath("spec", "to")
	switch airport, err := runtime.Read[*Airport](call).Get(call, "", f.Spec.To, runtime.Freshness{}); {
	case apierrors.IsNotFound(err):
		return field.ErrorList{field.NotFound(to, f.Spec.To)}
	case err != nil:
		return field.ErrorList{field.InternalError(to, err)}
	case airport.Spec.Closed:
		return field.ErrorList{field.Invalid(to, f.Spec.To, "is closed")}
	}
	return nil
}

// A strategy and an admission plug-in read another kind in one line, and see what was acknowledged before.
func TestStrategiesAndPluginsReadOtherKinds(t *testing.T) {
	t.Parallel()
	const group = "air.example.com"
	busy := admission.Plugin{
		Name: "no-flights-to-busy-airports",
		Handles: admission.Handles{
			Operations: []admission.Operation{admission.Create}, Resources: []schema.GroupResource{{Group: group, Resource: "flights"}},
		},
		Validator: admission.ValidatorFunc(func(ctx context.Context, r *admission.Request) error {
			all, err := runtime.Read[*Flight](r).List(ctx, runtime.Query{Namespace: r.Namespace})
			if err != nil {
				return err
			}
			if len(all.Items) >= 3 {
				return fmt.Errorf("there are %d flights already", len(all.Items))
			}
			return nil
		}),
	}
	srv := servertest.Start(t, server.Options{
		Policy: server.Policy{Admission: admission.Chain{busy}},
		Groups: []server.Group{{Name: group, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Airport", server.KindOptions[*Airport]{ClusterScoped: true}),
			server.Kind("Flight", server.KindOptions[*Flight]{Strategy: registry.Strategy[*Flight]{Validate: knownAirport}}),
		}}}}},
	})
	c := srv.Client()
	const flights = "/apis/" + group + "/v1/namespaces/default/flights"
	const airports = "/apis/" + group + "/v1/airports"
	for i, step := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", flights, `{"metadata":{"name":"a"},"spec":{"to":"MUC"}}`, 422, `spec.to: Not found: \"MUC\"`},
		{"POST", airports, `{"metadata":{"name":"MUC"}}`, 422, "RFC 1123"},
		{"POST", airports, `{"metadata":{"name":"muc"}}`, 201, ""},
		{"POST", flights, `{"metadata":{"name":"a"},"spec":{"to":"muc"}}`, 201, ""},
		{"POST", flights, `{"metadata":{"name":"b"},"spec":{"to":"muc"}}`, 201, ""},
		{"PUT", airports + "/muc", `{"metadata":{"name":"muc"},"spec":{"closed":true}}`, 200, ""},
		{"POST", flights, `{"metadata":{"name":"c"},"spec":{"to":"muc"}}`, 422, "is closed"},
		{"DELETE", airports + "/muc", ``, 200, ""},
		{"POST", flights, `{"metadata":{"name":"c"},"spec":{"to":"muc"}}`, 422, "Not found"},
		{"POST", airports, `{"metadata":{"name":"muc"}}`, 201, ""},
		{"POST", flights, `{"metadata":{"name":"c"},"spec":{"to":"muc"}}`, 201, ""},
		{"POST", flights, `{"metadata":{"name":"d"},"spec":{"to":"muc"}}`, 403, "there are 3 flights already"},
	} {
		code, body := call(t, c, step.method, srv.URL+step.path, step.body)
		if code != step.code || !strings.Contains(body, step.want) {
			t.Errorf("%d, %s %s: %d %s\nwant %d with %s", i, step.method, step.path, code, body, step.code, step.want)
		}
	}
	// A program's own calls are judged, and read, likewise.
	reg, err := host(t, srv).Registry(schema.GroupResource{Group: group, Resource: "flights"})
	if err != nil {
		t.Fatal(err)
	}
	own, err := registry.For[*Flight](reg, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Create(t.Context(), "other", &Flight{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); err == nil || !strings.Contains(err.Error(), "spec.to: Not found") {
		t.Errorf("a call of the program's own: %v", err)
	}
}
