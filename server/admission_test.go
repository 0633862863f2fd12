package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tides is a computed storage that supports every kind of change. It must not be called when admission refuses a change.
type tides struct {
	mu    sync.Mutex // guards asked
	asked []string
}

type Tide = runtime.Resource[struct {
	Height int `json:"height"`
}, struct{}]

func (s *tides) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
}

func (s *tides) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

func tide(name string) *Tide { return &Tide{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func (s *tides) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	s.note("get")
	return tide(name), nil
}

func (s *tides) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	s.note("create")
	return obj, nil
}

func (s *tides) Update(call *registry.Call, name string, update registry.ObjectUpdate, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := update(call, tide(name))
	if err != nil {
		return nil, false, err
	}
	s.note("update")
	return obj, false, nil
}

func (s *tides) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	s.note("delete")
	return nil, true, nil
}

func (s *tides) DeleteCollection(*registry.Call, *metav1.DeleteOptions, *metav1.ListOptions) (runtime.Object, error) {
	s.note("deletecollection")
	return nil, nil
}

// pumps is a connect subresource.
type pumps struct{ tides *tides }

func (pumps) ConnectMethods() []string { return []string{"POST"} }

func (p pumps) Connect(*registry.Call, string, string, *http.Request) (http.Handler, error) {
	p.tides.note("connect")
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pumping") }), nil
}

// judge is an admission plug-in that records the requests that it gets, marks new objects and refuses changes on demand.
type judge struct {
	mu     sync.Mutex // guards seen and refuse
	seen   []string
	refuse error
}

func (j *judge) chain() admission.Chain {
	return admission.Chain{
		{Mutator: admission.MutatorFunc(func(ctx context.Context, r *admission.Request) error {
			if w, ok := r.Object().(*Widget); ok {
				w.Spec.Color = "marked"
				request.Warn(ctx, "marked")
			}
			if w, ok := r.Object().(*Tide); ok {
				w.Spec.Height = 7
			}
			return nil
		})},
		{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.seen = append(j.seen, fmt.Sprintf("%s %s %s/%s name=%q old=%t dry=%t user=%s", r.Operation, r.Kind.Kind, r.Resource.Resource, r.Subresource, r.Name, r.Old() != nil, r.DryRun, r.User.Name))
			switch o := r.Object().(type) { // copies: nothing of this may be stored
			case *Widget:
				o.Spec.Color = "scribbled"
			case *Tide:
				o.Spec.Height = 99
			}
			return j.refuse
		})},
	}
}

func (j *judge) taken() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.seen
	j.seen = nil
	return out
}

func (j *judge) refuses(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refuse = err
}

func judged(t *testing.T) (*servertest.Server, *judge, *tides) {
	t.Helper()
	j, s := &judge{}, &tides{}
	moon := server.Group{Name: "sky.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Tide", server.KindOptions[*Tide]{Storage: s, Subresources: map[string]server.Subresource{"pump": {Storage: pumps{s}}}}),
	}}}}
	// Without a cache. A change that begins with an old object, as a cache may have, is tried again and judged again.
	widgets := server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{
			Scale:   &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
			NoCache: true,
		}),
	}}}}
	return servertest.Start(t, server.Options{Groups: []server.Group{widgets, moon}, Policy: server.Policy{Admission: j.chain()}}), j, s
}

const tidesPath = "/apis/sky.example.com/v1/namespaces/default/tides"

func TestAdmissionSeesEveryChange(t *testing.T) {
	t.Parallel()
	srv, j, _ := judged(t)
	c := srv.Client()
	who := " user=" + srv.Credentials().User
	for _, step := range []struct{ method, path, body, want, marked string }{
		{"POST", widgetsPath, `{"metadata":{"name":"a"}}`, `CREATE Widget widgets/ name="a" old=false dry=false`, `"color":"marked"`},
		{"POST", widgetsPath + "?dryRun=All", `{"metadata":{"name":"b"}}`, `CREATE Widget widgets/ name="b" old=false dry=true`, `"color":"marked"`},
		{"PUT", widgetsPath + "/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`, `UPDATE Widget widgets/ name="a" old=true dry=false`, `"color":"marked"`},
		{"PATCH", widgetsPath + "/a/status", `{"status":{"ready":true}}`, `UPDATE Widget widgets/status name="a" old=true dry=false`, ""},
		{"PATCH", widgetsPath + "/a/scale", `{"spec":{"replicas":2}}`, `UPDATE Scale widgets/scale name="a" old=true dry=false`, ""},
		{"DELETE", widgetsPath + "/a", ``, `DELETE Widget widgets/ name="a" old=true dry=false`, ""},
		{"GET", widgetsPath, ``, "", ""},
		{"POST", tidesPath, `{"metadata":{"name":"a"}}`, `CREATE Tide tides/ name="a" old=false dry=false`, `"height":7`},
		{"PUT", tidesPath + "/a", `{"metadata":{"name":"a"}}`, `UPDATE Tide tides/ name="a" old=true dry=false`, `"height":7`},
		{"PATCH", tidesPath + "/a?dryRun=All", `{"spec":{"height":2}}`, `UPDATE Tide tides/ name="a" old=true dry=true`, `"height":7`},
		{"DELETE", tidesPath + "/a", ``, `DELETE Tide tides/ name="a" old=false dry=false`, ""},
		{"DELETE", tidesPath, ``, `DELETE Tide tides/ name="" old=false dry=false`, ""},
		{"POST", tidesPath + "/a/pump", ``, `CONNECT Tide tides/pump name="a" old=false dry=false`, ""},
		{"GET", tidesPath + "/a", ``, "", ""},
	} {
		code, body := call(t, c, step.method, srv.URL+step.path, step.body, "Content-Type", contentType(step.method))
		if code > 201 {
			t.Errorf("%s %s: %d %s", step.method, step.path, code, body)
		}
		var want []string
		if step.want != "" {
			want = []string{step.want + who}
		}
		if seen := j.taken(); !slices.Equal(seen, want) {
			t.Errorf("%s %s: admission saw %q, want %q", step.method, step.path, seen, want)
		}
		if strings.Contains(body, "scribbled") || strings.Contains(body, `"height":99`) {
			t.Errorf("%s %s: a validator could change the object: %s", step.method, step.path, body)
		}
		if !strings.Contains(body, step.marked) {
			t.Errorf("%s %s: not mutated: %s", step.method, step.path, body)
		}
	}
}

func TestAdmissionRefuses(t *testing.T) {
	t.Parallel()
	srv, j, s := judged(t)
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	_, before := call(t, c, "GET", srv.URL+widgetsPath, "")
	for _, step := range []struct{ method, path, body string }{
		{"POST", widgetsPath, `{"metadata":{"name":"b"}}`},
		{"PUT", widgetsPath + "/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`},
		{"PATCH", widgetsPath + "/a/status", `{"status":{"ready":true}}`},
		{"PATCH", widgetsPath + "/a/scale", `{"spec":{"replicas":2}}`},
		{"DELETE", widgetsPath + "/a", ``},
		{"DELETE", widgetsPath, ``},
		{"POST", tidesPath, `{"metadata":{"name":"a"}}`},
		{"PUT", tidesPath + "/a", `{"metadata":{"name":"a"}}`},
		{"PATCH", tidesPath + "/a", `{"spec":{"height":2}}`},
		{"DELETE", tidesPath + "/a", ``},
		{"DELETE", tidesPath, ``},
		{"POST", tidesPath + "/a/pump", ``},
	} {
		what := step.method + " " + step.path
		// A plain error becomes a Forbidden, and a Status is passed on unchanged.
		j.refuses(errors.New("not today"))
		code, body := call(t, c, step.method, srv.URL+step.path, step.body, "Content-Type", contentType(step.method))
		if code != 403 || !strings.Contains(body, `is forbidden: not today","reason":"Forbidden","details":{"name":"`) {
			t.Errorf("%s: %d %s", what, code, body)
		}
		j.refuses(apierrors.NewTooManyRequests("later", 3))
		code, body = call(t, c, step.method, srv.URL+step.path, step.body, "Content-Type", contentType(step.method))
		if code != 429 || !strings.Contains(body, `"message":"later","reason":"TooManyRequests"`) {
			t.Errorf("%s: %d %s", what, code, body)
		}
	}
	if asked := s.taken(); len(asked) > 0 {
		t.Errorf("the computed resource was asked to %q", asked)
	}
	if _, now := call(t, c, "GET", srv.URL+widgetsPath, ""); now != before {
		t.Errorf("changed by refused requests: %s\nbefore: %s", now, before)
	}
}

// basins is a Storage for a kind without a Go type in two versions, and a connect subresource.
type basins struct{}

func (basins) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

func (basins) ConnectMethods() []string { return []string{"GET"} }

func (basins) Connect(*registry.Call, string, string, *http.Request) (http.Handler, error) {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil
}

// Admission gets the names that the client used and those of the hub, also for a kind without a registry.
func TestAdmissionIsShownWhatClientsName(t *testing.T) {
	t.Parallel()
	var seen string
	see := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		seen = fmt.Sprintf("%s %s %s/%s sent as %s %s", r.Operation, r.Kind, r.Resource, r.Subresource, r.SentKind, r.SentResource)
		return nil
	})
	version := func(name string, hub bool) server.Version {
		return server.Version{Name: name, Resources: []server.Resource{server.Kind("Basin", server.KindOptions[*unstructured.Unstructured]{
			Hub: hub, Storage: struct{ registry.Creater }{basins{}}, Subresources: map[string]server.Subresource{"drain": {Storage: struct{ registry.Connecter }{basins{}}}},
		})}}
	}
	srv := servertest.Start(t, server.Options{
		Groups: []server.Group{{Name: "sea.example.com", Versions: []server.Version{version("v1", true), version("v1beta1", false)}}},
		Policy: server.Policy{Admission: admission.Chain{{Validator: see}}},
	})
	for _, v := range []string{"v1", "v1beta1"} {
		path := srv.URL + "/apis/sea.example.com/" + v + "/namespaces/default/basins"
		code, body := call(t, srv.Client(), "POST", path, `{"apiVersion":"sea.example.com/`+v+`","kind":"Basin","metadata":{"name":"a"}}`)
		wantCode(t, 201, code, body)
		want := "sea.example.com/v1, Kind=Basin sea.example.com/v1, Resource=basins/%s sent as sea.example.com/%s, Kind=Basin sea.example.com/%[2]s, Resource=basins"
		if want := fmt.Sprintf("CREATE "+want, "", v); seen != want {
			t.Errorf("%s: admission saw %s\nwant %s", v, seen, want)
		}
		code, body = call(t, srv.Client(), "GET", path+"/a/drain", "")
		wantCode(t, 200, code, body)
		if want := fmt.Sprintf("CONNECT "+want, "drain", v); seen != want {
			t.Errorf("%s: admission saw %s\nwant %s", v, seen, want)
		}
	}
}
