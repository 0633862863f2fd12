package server_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Pump is kept in a map.
type Pump = runtime.Resource[PumpSpec, struct{}]

type PumpSpec struct {
	Power int32 `json:"power,omitempty" maximum:"10" default:"1"`
}

// A Boost asks a pump for something.
type Boost = runtime.Resource[BoostSpec, BoostStatus]

type BoostSpec struct {
	By int32 `json:"by,omitempty" maximum:"3"`
}

type BoostStatus struct {
	Power int32 `json:"power,omitempty"`
}

// pumpHouse has the pumps of all namespaces.
type pumpHouse struct {
	mu    sync.Mutex
	pumps map[string]*Pump // by namespace/name
}

func (h *pumpHouse) get(call *registry.Call, name string) (*Pump, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(call, name)
}

func (h *pumpHouse) find(call *registry.Call, name string) (*Pump, error) {
	p := h.pumps[call.Namespace+"/"+name]
	if p == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "pumps"}, name)
	}
	return runtime.DeepCopy(p), nil
}

func (h *pumpHouse) put(call *registry.Call, p *Pump) *Pump {
	if !call.DryRun {
		h.pumps[call.Namespace+"/"+p.Name] = runtime.DeepCopy(p)
	}
	return p
}

func (h *pumpHouse) functions() *server.Computed[*Pump] {
	return &server.Computed[*Pump]{
		Get: h.get,
		List: func(*registry.Call, *metav1.ListOptions) (out []*Pump, err error) { // of all namespaces: the server selects
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, key := range slices.Sorted(maps.Keys(h.pumps)) {
				out = append(out, runtime.DeepCopy(h.pumps[key]))
			}
			return out, nil
		},
		Watch: func(*registry.Call, *metav1.ListOptions) (registry.ObjectWatch, error) {
			return &pumpWatch{}, nil
		},
		Create: func(call *registry.Call, p *Pump, _ *metav1.CreateOptions) (*Pump, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if p.Name == "nil" {
				return nil, nil
			}
			return h.put(call, p), nil
		},
		Update: func(call *registry.Call, name string, change func(*Pump) (*Pump, error), _ *metav1.UpdateOptions) (*Pump, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			p, err := h.find(call, name)
			if err == nil {
				p, err = change(p)
			}
			if err != nil {
				return nil, err
			}
			return h.put(call, p), nil
		},
		Delete: func(call *registry.Call, name string, _ *metav1.DeleteOptions) (*Pump, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			p, err := h.find(call, name)
			if err == nil && !call.DryRun {
				delete(h.pumps, call.Namespace+"/"+name)
			}
			return p, err
		},
	}
}

// pumpWatch has one event.
type pumpWatch struct{ done bool }

func (w *pumpWatch) Next(ctx context.Context) (registry.ObjectEvent, error) {
	if w.done {
		<-ctx.Done()
		return registry.ObjectEvent{}, ctx.Err()
	}
	w.done = true
	return registry.ObjectEvent{Type: "ADDED", Object: &Pump{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen"}}}, nil
}

func (w *pumpWatch) Close() {}

// A kind whose objects are not in the storage is served by typed functions, with the verbs of those that are set. A subresource is
// served by a typed function, too.
func TestComputed(t *testing.T) {
	t.Parallel()
	house := &pumpHouse{pumps: map[string]*Pump{}}
	boost := func(call *registry.Call, name string, in *Boost) (*Boost, error) {
		p, err := house.get(call, name)
		switch {
		case err != nil:
			return nil, err
		case in.Spec.By == 0:
			return nil, nil
		}
		in.Status.Power = p.Spec.Power + in.Spec.By
		return in, nil
	}
	srv, err := server.New(server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Pump", server.KindOptions[*Pump]{Computed: house.functions(), Subresources: map[string]server.Subresource{"boost": server.Action("Boost", boost)}}),
		server.Kind("Tap", server.KindOptions[*unstructured.Unstructured]{Computed: &server.Computed[*unstructured.Unstructured]{
			List: func(*registry.Call, *metav1.ListOptions) ([]*unstructured.Unstructured, error) {
				return []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "name": "t"}, "wet": true}}}, nil
			},
		}}),
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	client := &http.Client{Transport: srv.Loopback(authn.System())}
	const path = "http://loopback/apis/example.com/v1/namespaces/default"
	for _, c := range []struct {
		method, path, body string
		code               int
		want, not          string
	}{
		{"POST", "/pumps", `{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"power":2}}`, 201, `"power":2`, ""},
		{"POST", "/pumps?dryRun=All", `{"metadata":{"name":"dry"}}`, 201, `"power":1`, ""},
		{"POST", "/pumps", `{"metadata":{"name":"b"},"spec":{"power":11}}`, 422, "spec.power: Invalid value: 11", ""},
		{"POST", "/pumps", `{"metadata":{"name":"nil"}}`, 500, "returned a nil", ""},
		{"POST", "/pumps", `{"metadata":{"name":"c"}}`, 201, `"power":1`, ""},
		{"GET", "/pumps/a", "", 200, `"kind":"Pump"`, ""},
		{"GET", "/pumps/none", "", 404, `pumps.example.com \"none\" not found`, ""},
		{"GET", "/pumps", "", 200, `"kind":"PumpList"`, "dry"},
		{"GET", "/pumps?labelSelector=x%3Dy", "", 200, `"name":"a"`, `"name":"c"`},
		{"GET", "/pumps?continue=x", "", 400, "there is no such token", ""},
		{"GET", "/pumps?fieldSelector=spec.power%3D1", "", 400, "spec.power", ""},
		{"PUT", "/pumps/a", `{"metadata":{"name":"a"},"spec":{"power":3}}`, 200, `"power":3`, ""},
		{"PUT", "/pumps/none", `{"metadata":{"name":"none"},"spec":{"power":3}}`, 404, "not found", ""},
		{"PATCH", "/pumps/a", `{"spec":{"power":4}}`, 200, `"power":4`, ""},
		{"PATCH", "/pumps/a", `{"spec":{"power":40}}`, 422, "spec.power", ""},
		{"POST", "/pumps/a/boost", `{"spec":{"by":2}}`, 201, `"status":{"power":6}`, ""},
		{"POST", "/pumps/a/boost", `{"spec":{"by":4}}`, 422, "spec.by", ""},
		{"POST", "/pumps/a/boost", `{"spec":{}}`, 201, `"status":"Success"`, ""},
		{"POST", "/pumps/none/boost", `{"spec":{}}`, 404, "not found", ""},
		{"DELETE", "/pumps/a?dryRun=All", "", 200, "", ""},
		{"DELETE", "/pumps/a", "", 200, "", ""},
		{"DELETE", "/pumps/a", "", 404, "not found", ""},
		{"DELETE", "/pumps", "", 405, "", ""},
		{"GET", "/taps", "", 200, `"wet":true`, ""},
		{"POST", "/taps", `{"metadata":{"name":"u"}}`, 405, "", ""},
		{"GET", "/taps/t", "", 405, "", ""},
		{"GET", "/pumps?watch=1&timeoutSeconds=1", "", 200, `"name":"seen"`, ""},
	} {
		contentType := "application/json"
		if c.method == "PATCH" {
			contentType = mergePatch
		}
		code, text := call(t, client, c.method, path+c.path, c.body, "Content-Type", contentType)
		if code != c.code || !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s %s %s: %d %s\nwant %d with %s and without %q", c.method, c.path, c.body, code, text, c.code, c.want, c.not)
		}
	}
}

// Kinds that are in the scheme already can be computed, too.
func TestComputedOfImportedKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if _, err := scheme.Import(appsv1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Scheme: scheme, Groups: []server.Group{{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.ImportedKind(scheme.Lookup(appsv1.SchemeGroupVersion.WithKind("Deployment")), server.KindOptions[runtime.Object]{Computed: &server.Computed[runtime.Object]{
			List: func(*registry.Call, *metav1.ListOptions) ([]runtime.Object, error) {
				return []runtime.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "n"}}}, nil
			},
			Get: func(*registry.Call, string) (runtime.Object, error) { return nil, errors.New("secret of the program") },
		}}),
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	if code, body := call(t, &http.Client{Transport: srv.Loopback(authn.System())}, "GET", "http://loopback/apis/apps/v1/deployments", ""); code != 200 || !strings.Contains(body, `"name":"d"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := call(t, &http.Client{Transport: srv.Loopback(authn.System())}, "GET", "http://loopback/apis/apps/v1/namespaces/n/deployments/d", ""); code != 500 {
		t.Errorf("%d %s", code, body)
	}
}
