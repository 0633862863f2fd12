package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Booth is for the example.
type Booth = runtime.Resource[struct {
	Size int32 `json:"size,omitempty"`
}, struct{}]

// A program adds an authorizer to its server while that serves.
func ExampleServer_Install() {
	srv, err := server.New(server.Options{Groups: []server.Group{{
		Name:     "fair.example.com",
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Booth", server.KindOptions[*Booth]{})}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	list := func() {
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/apis/fair.example.com/v1/booths", nil))
		fmt.Println(w.Code, http.StatusText(w.Code))
	}
	list()

	visitors := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.APIGroup == "fair.example.com" && a.IsReadOnly() {
			return authz.Allow, "everybody may look", nil
		}
		return authz.NoOpinion, "", nil
	})
	err = srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return h.Authorize("example.com/visitors", visitors)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	list()
	// Output:
	// 403 Forbidden
	// 200 OK
}

// An extension adds users of a token file, an authorizer and an admission plug-in. The Host may be kept, to change the policy
// while the server serves.
func ExampleHost() {
	srv, err := server.New(server.Options{Groups: []server.Group{{
		Name:     "fair.example.com",
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Booth", server.KindOptions[*Booth]{})}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	users, _, err := authn.ReadTokens(strings.NewReader(`token-of-anna,anna,1,"builders"`))
	if err != nil {
		fmt.Println(err)
		return
	}
	builders := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.InGroup("builders") && a.APIGroup == "fair.example.com" && a.Verb == "create" {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	})
	small := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		if r.Object().(*Booth).Spec.Size > 10 {
			return errors.New("a booth is at most 10 m wide")
		}
		return nil
	})
	var host *server.Host
	err = srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		host = h
		return errors.Join(
			h.Authenticate(authn.TokenFile, authn.BearerToken(authn.StaticTokens(users))),
			h.Authorize("example.com/builders", builders),
			h.Admit(admission.Plugin{Name: "example.com/small", Validator: small, Handles: admission.Handles{
				Operations: []admission.Operation{admission.Create, admission.Update},
				Resources:  []schema.GroupResource{{Group: "fair.example.com", Resource: "booths"}}, // its objects are *Booth
			}}),
		)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}

	create := func(name string, size int) {
		body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":%d}}`, name, size)
		r := httptest.NewRequest("POST", "/apis/fair.example.com/v1/namespaces/default/booths", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer token-of-anna")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		fmt.Println(name, w.Code, http.StatusText(w.Code))
	}
	create("a", 3)
	create("b", 30)
	if err := host.RemoveAuthorizer("example.com/builders"); err != nil {
		fmt.Println(err)
		return
	}
	create("c", 3)
	// Output:
	// a 201 Created
	// b 403 Forbidden
	// c 403 Forbidden
}
