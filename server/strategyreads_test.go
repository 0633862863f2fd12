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

// knownAirport is a rule of flights that reads airports.
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

// A strategy and an admission plug-in read another kind by one call, and see writes that were acknowledged before.
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
	// Calls that a program makes in the process are judged, and read, in the same way.
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

// board is a kind that is computed from airports.
type board struct{}

type Board = runtime.Resource[struct {
	Airports int `json:"airports"`
}, struct{}]

func (board) Get(call *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	all, err := runtime.Read[*Airport](call).List(call, runtime.Query{})
	if err != nil {
		return nil, err
	}
	b := &Board{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: call.Namespace, ResourceVersion: "1"}}
	b.Spec.Airports = len(all.Items)
	return b, nil
}

func (board) Watch(call *registry.Call, _ *metav1.ListOptions) (registry.ObjectWatch, error) {
	obj, err := board{}.Get(call, "departures", nil)
	return &once{obj}, err
}

// once is a watch of one event.
type once struct{ obj runtime.Object }

func (o *once) Next(ctx context.Context) (registry.ObjectEvent, error) {
	if obj := o.obj; obj != nil {
		o.obj = nil
		return registry.ObjectEvent{Type: "ADDED", Object: obj}, nil
	}
	<-ctx.Done()
	return registry.ObjectEvent{}, ctx.Err()
}

func (*once) Close() {}

// A Storage of a program reads other kinds, in a watch and in a get.
func TestOwnStorageReadsOtherKinds(t *testing.T) {
	t.Parallel()
	const group = "air.example.com"
	srv := servertest.New(t, server.Group{Name: group, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Airport", server.KindOptions[*Airport]{ClusterScoped: true}),
		server.Kind("Board", server.KindOptions[*Board]{Storage: board{}}),
	}}}})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+"/apis/"+group+"/v1/airports", `{"metadata":{"name":"muc"}}`)
	wantCode(t, 201, code, body)
	const boards = "/apis/" + group + "/v1/namespaces/default/boards"
	for _, path := range []string{boards + "/departures", boards + "?watch=1&timeoutSeconds=1"} {
		code, body = call(t, c, "GET", srv.URL+path, "")
		wantCode(t, 200, code, body)
		if !strings.Contains(body, `"airports":1`) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// panicking is the Storage of a subresource that cannot be opened.
type panicking struct{ board }

func (panicking) Open(*registry.Registry) error { panic("no") }

// A panic in Open of a program's storage ends that Install, and nothing else.
func TestAPanicOfAnOpener(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	airports := func(opts server.KindOptions[*Airport]) server.Group {
		return server.Group{Name: "air.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Airport", opts)}}}}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Install has hidden the panic")
			}
		}()
		_ = srv.Install(server.ExtensionFunc(func(h *server.Host) error {
			return h.Serve(airports(server.KindOptions[*Airport]{Subresources: map[string]server.Subresource{"board": {Storage: panicking{}}}}))
		}))
	}()
	flights := server.Group{Name: "sky.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Flight", server.KindOptions[*Flight]{})}}}}
	if err := host(t, srv).Serve(flights); err != nil {
		t.Errorf("what comes after: %v", err)
	}
}
