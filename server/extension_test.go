package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// host returns the Host of a test server.
func host(t testing.TB, srv *servertest.Server) *server.Host {
	t.Helper()
	var host *server.Host
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { host = h; return nil })); err != nil {
		t.Fatal(err)
	}
	return host
}

func collectGarbage(t *testing.T, srv *servertest.Server) {
	t.Helper()
	if err := host(t, srv).CollectGarbage(); err != nil {
		t.Fatal(err)
	}
}

func widgetsResource() schema.GroupResource {
	return schema.GroupResource{Group: "example.com", Resource: "widgets"}
}

func TestAdmitLater(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets(), clockGroup())
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	h := host(t, srv)
	err := h.Admit(admission.Plugin{Name: "NamespaceLifecycle", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		if w, ok := r.Object().(*Widget); ok {
			w.Spec.Color = "first"
		}
		return nil
	})}, admission.Plugin{
		Name: "own", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
			if w, ok := r.Object().(*Widget); ok {
				w.Spec.Color = "admitted"
			}
			return nil
		}),
		Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete || r.Operation == admission.Connect {
				return errors.New("not today")
			}
			return nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	code, body = call(t, c, "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"}}`)
	wantCode(t, 200, code, body)
	if !strings.Contains(body, "admitted") {
		t.Errorf("not mutated: %s", body)
	}
	for _, path := range []string{widgetsPath + "/a", clocksPath + "/noon/bell"} {
		code, body = call(t, c, map[bool]string{true: "DELETE", false: "POST"}[path == widgetsPath+"/a"], srv.URL+path, "")
		wantCode(t, 403, code, body)
	}
}

func TestCollectGarbageLater(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	c := srv.Client()
	for _, name := range []string{"before", "after"} {
		code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"`+name+`"}}`)
		wantCode(t, 201, code, body)
		code, body = call(t, c, "DELETE", srv.URL+widgetsPath+"/"+name+"?propagationPolicy=Orphan", "")
		wantCode(t, 200, code, body)
		if kept := strings.Contains(body, `"finalizers":["orphan"]`); kept != (name == "after") {
			t.Errorf("%s: %s", name, body)
		}
		collectGarbage(t, srv)
	}
}

// layered is a Backend around another one, with the same optional interfaces.
type layered struct{ storage.Backend }

func (l layered) Unwrap() storage.Backend { return l.Backend }

// unknowing is a Backend that does not know its revision, although it has the method.
type unknowing struct{ storage.Backend }

func (unknowing) Known() (revision int64, ok bool) { return 0, false }

// The storage is not shared if its backend has the revision without a read: then there are no other writers.
func TestSharesStorage(t *testing.T) {
	t.Parallel()
	own := func() storage.Backend { return memory.New(memory.Options{}) }
	plain := func() storage.Backend { return struct{ storage.Backend }{own()} } // without optional interfaces
	for name, c := range map[string]struct {
		backend storage.Backend
		want    bool
	}{
		"a backend that knows":           {own(), false},
		"a backend that cannot know":     {plain(), true},
		"a backend that does not know":   {unknowing{own()}, true},
		"around a backend that knows":    {layered{layered{own()}}, false},
		"around a backend that cannot":   {layered{plain()}, true},
		"around a backend that does not": {layered{unknowing{own()}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.Start(t, server.Options{Storage: storage.Opened(c.backend)}, widgets())
			if got := host(t, srv).SharesStorage(); got != c.want {
				t.Errorf("SharesStorage() = %t, want %t", got, c.want)
			}
		})
	}
}
