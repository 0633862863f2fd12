package server_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func defaultColor(color string) func(w *Widget) {
	return func(w *Widget) { w.Spec.Color = cmp.Or(w.Spec.Color, color) }
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	h := host(t, srv)
	defaults := widgets()
	defaults.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Default: defaultColor("blue")})
	if err := h.Serve(defaults); err != nil {
		t.Fatal(err)
	}
	c := srv.Client()
	ask := func(method, path, body string) answer { t.Helper(); return roundTrip(t, c, method, srv.URL+path, body) }
	ask("POST", widgetsPath, `{"metadata":{"name":"a"}}`).want(t, 201)
	clocksBefore := ask("GET", "/openapi/v3/apis/time.example.com/v1", "").body
	watch, err := c.Get(srv.URL + widgetsPath + "?watch=true&resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"clocks.example.com", "widgets"} {
		if err := h.Withdraw(widgetsResource(), schema.ParseGroupResource(wrong)); err == nil || !strings.Contains(err.Error(), wrong+" is not served") {
			t.Errorf("withdraw %s: %v", wrong, err)
		}
	}
	if err := h.Withdraw(widgetsResource()); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(watch.Body)
	if err != nil || strings.Contains(string(text), "ERROR") {
		t.Errorf("the watch did not end cleanly: %v %s", err, text)
	}
	_ = watch.Body.Close()
	ask("GET", widgetsPath+"/a", "").want(t, 404)
	ask("GET", "/apis/example.com/v1", "").want(t, 404)
	ask("GET", "/openapi/v3/apis/example.com/v1", "").want(t, 404)
	for _, path := range []string{"/", "/apis", "/openapi/v2", "/openapi/v3"} {
		if body := ask("GET", path, "").body; strings.Contains(body, "example.com/v1/widgets") || strings.Contains(body, `"example.com"`) || strings.Contains(body, "apis/example.com") {
			t.Errorf("%s still shows it: %.300s", path, body)
		}
	}
	if after := ask("GET", "/openapi/v3/apis/time.example.com/v1", "").body; after != clocksBefore {
		t.Error("the document of another group changed")
	}
	// Its names and objects are free for the next kind, which has other defaults.
	defaults.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{Default: defaultColor("red")})
	if err := h.Serve(defaults); err != nil {
		t.Fatal(err)
	}
	ask("POST", widgetsPath, `{"metadata":{"name":"b"}}`).want(t, 201)
	for name, color := range map[string]string{"a": "blue", "b": "red"} {
		var w Widget
		ask("GET", widgetsPath+"/"+name, "").into(t, &w)
		if w.Spec.Color != color {
			t.Errorf("%s is %s, want %s", name, w.Spec.Color, color)
		}
	}
}

// Groups are added and withdrawn while clients send requests. No answer has a 5xx code, and the groups at the end are complete.
func TestWithdrawUnderTraffic(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			c := srv.Client()
			for i := 0; ctx.Err() == nil; i++ {
				for _, a := range []answer{
					roundTrip(t, c, "GET", srv.URL+widgetsPath, ""),
					roundTrip(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"x-"}}`),
					roundTrip(t, c, "GET", srv.URL+"/apis", ""),
				} {
					if a.code >= 500 && a.code != http.StatusServiceUnavailable {
						t.Errorf("%d %s", a.code, a.body)
					}
				}
			}
		})
	}
	for range 20 {
		if err := errors.Join(h.Serve(widgets()), h.Withdraw(widgetsResource())); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	asking.Wait()
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	code, body := call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
	wantCode(t, 200, code, body)
}

// TestWithdrawDuringARequest withdraws a kind while one of its objects is created. The answer says so, and blames neither the
// client nor the server.
func TestWithdrawDuringARequest(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	h := host(t, srv)
	_ = h.Admit(admission.Plugin{Name: "own", Mutator: admission.MutatorFunc(func(context.Context, *admission.Request) error {
		return h.Withdraw(widgetsResource())
	})})
	code, body := call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, http.StatusServiceUnavailable, code, body)
	if err := h.Serve(widgets()); err != nil {
		t.Fatal(err)
	}
	code, body = call(t, srv.Client(), "GET", srv.URL+widgetsPath+"/a", "")
	wantCode(t, http.StatusNotFound, code, body)
}

// Everything that a failed Serve had registered is free again.
func TestServeThatFailedLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	good := func() server.Group {
		return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*Widget]{Default: defaultColor("blue"), Subresources: map[string]server.Subresource{
				"winding": server.SubresourceKind[*Winding]("Winding", keys{}),
			}}),
		}}}}
	}
	for name, spoil := range map[string]func(g *server.Group){
		"a version without a name": func(g *server.Group) { g.Versions = append(g.Versions, server.Version{}) },
		"a zero conversion":        func(g *server.Group) { g.Conversions = []server.Conversion{{}} },
		"a kind under two names": func(g *server.Group) {
			g.Versions[0].Resources = append(g.Versions[0].Resources, server.Kind("Widget", server.KindOptions[*Widget]{Plural: "gadgets"}))
		},
		"a verb there is not": func(g *server.Group) {
			g.Versions[0].Resources = append(g.Versions[0].Resources, server.Kind("Barge", server.KindOptions[*Barge]{Verbs: []string{"fetch"}}))
		},
	} {
		bad := good()
		if spoil(&bad); h.Serve(bad) == nil {
			t.Errorf("%s is served", name)
		}
	}
	if err := h.Serve(good()); err != nil {
		t.Fatal(err)
	}
	code, body := call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
}

// A caller that waits until a kind is gone can serve another kind under its name at once, with subresources.
func TestServeAsSoonAsWithdrawn(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	for round := range 50 {
		group := widgets()
		sub := server.SubresourceKind[*Winding]("Winding", keys{})
		if round%2 == 1 {
			sub = server.SubresourceKind[*Pulling]("Winding", pulls{})
		}
		group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{
			Default: defaultColor("blue"), Subresources: map[string]server.Subresource{"winding": sub},
		})
		if err := h.Serve(group); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		code, body := call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"a-"}}`)
		wantCode(t, 201, code, body)
		changed := h.Catalogue().Changed()
		gone := make(chan error, 1)
		go func() { gone <- h.Withdraw(widgetsResource()) }()
		<-changed
		if round%2 == 0 { // the next round does not wait for the end of Withdraw
			defer func() { <-gone }()
			continue
		}
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
	}
}

// Pulling is another type for the kind Winding.
type Pulling struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Pulls             int `json:"pulls"`
}

func (p *Pulling) DeepCopyObject() runtime.Object { return runtime.DeepCopy(p) }

type pulls struct{}

func (pulls) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

// The watch of a kind without a cache ends, too, when the kind is withdrawn.
func TestObjectsWatchEndsWithItsKind(t *testing.T) {
	t.Parallel()
	for _, noCache := range []bool{false, true} {
		group := widgets()
		group.Versions[0].Resources[0] = server.Kind("Widget", server.KindOptions[*Widget]{NoCache: noCache})
		srv := servertest.New(t, group)
		h := host(t, srv)
		w, err := h.Catalogue().Kinds()[0].Objects.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		ended := make(chan error, 1)
		go func() {
			for {
				if _, err := w.Next(t.Context()); err != nil {
					ended <- err
					return
				}
			}
		}()
		if err := h.Withdraw(widgetsResource()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("without a cache %v: %v", noCache, err)
		}
	}
}
