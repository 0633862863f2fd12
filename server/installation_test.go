package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// allOfIt is an extension that adds something by each method, and then calls a function at the end of Install.
func allOfIt(closed *atomic.Int32, end func(h *server.Host) error) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		err := errors.Join(
			h.Check(server.Check{Name: "own", Check: func(context.Context) error { return nil }}),
			h.Serve(widgets()),
			h.Admit(admission.Plugin{Name: "own", Validator: admission.ValidatorFunc(func(context.Context, *admission.Request) error {
				return errors.New("judged")
			})}),
			h.Authorize("own", authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
				return authz.NoOpinion, "unknown", nil
			})),
			h.Handle("/own", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "own path") })),
		)
		h.Go(func(ctx context.Context) { <-ctx.Done() })
		h.OnClose(func() { closed.Add(1) })
		if err != nil {
			return err
		}
		return end(h)
	})
}

// Until Install returns requests see nothing of an extension. If it fails, nothing is left, and it can be tried again.
func TestInstallIsAllOrNothing(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	c := srv.Client()
	ask := func(method, path, body string) string {
		t.Helper()
		code, text := call(t, c, method, srv.URL+path, body)
		return fmt.Sprint(code, " ", strings.TrimSpace(text))
	}
	before := ask("GET", "/apis", "") + ask("GET", "/readyz?verbose", "") + ask("GET", "/", "") + ask("GET", "/openapi/v3", "")
	hidden := func(when string) {
		t.Helper()
		if got := ask("GET", "/apis", "") + ask("GET", "/readyz?verbose", "") + ask("GET", "/", "") + ask("GET", "/openapi/v3", ""); got != before {
			t.Errorf("%s: %s\nwant %s", when, got, before)
		}
		for _, path := range []string{widgetsPath, "/own"} {
			if got := ask("GET", path, ""); !strings.HasPrefix(got, "404") {
				t.Errorf("%s: %s is answered %s", when, path, got)
			}
		}
	}
	var closed atomic.Int32
	refusal := errors.New("not today")
	err := srv.Install(allOfIt(&closed, func(h *server.Host) error {
		hidden("while it is installed")
		if _, err := h.Registry(widgetsResource()); err != nil {
			t.Errorf("the extension cannot use what it serves: %v", err)
		}
		if err := srv.Install(allOfIt(&atomic.Int32{}, func(*server.Host) error { return nil })); err == nil {
			t.Error("another extension took the same kinds and paths")
		}
		return refusal
	}))
	if !errors.Is(err, refusal) || closed.Load() != 1 {
		t.Errorf("Install: %v, closed %d times", err, closed.Load())
	}
	hidden("after it failed")
	func() {
		defer func() {
			if p := recover(); p != "out of order" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = srv.Install(allOfIt(&closed, func(*server.Host) error { panic("out of order") }))
	}()
	hidden("after it panicked")
	if err := srv.Install(allOfIt(&closed, func(*server.Host) error { return nil })); err != nil {
		t.Fatalf("tried again: %v", err)
	}
	if got := ask("POST", widgetsPath, `{"metadata":{"name":"a"}}`); !strings.Contains(got, "judged") {
		t.Errorf("its plug-in does not judge its kind: %s", got)
	}
	if got := ask("GET", "/own", ""); got != "200 own path" {
		t.Errorf("its path is answered %s", got)
	}
	if got := ask("GET", "/readyz?verbose", ""); !strings.Contains(got, "[+]own ok") {
		t.Errorf("its check is missing: %s", got)
	}
	if code, text := call(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, ""); code != 403 || !strings.Contains(text, "own: unknown") {
		t.Errorf("its authorizer is not asked: %d %s", code, text)
	}
	if err := host(t, srv).RemovePlugin("own"); err != nil {
		t.Error(err)
	}
	if got := ask("POST", widgetsPath, `{"metadata":{"name":"a"}}`); !strings.HasPrefix(got, "201") {
		t.Errorf("after RemovePlugin: %s", got)
	}
	if closed.Load() != 2 {
		t.Errorf("OnClose was called %d times", closed.Load())
	}
}
