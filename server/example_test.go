package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

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

// A program mounts a server below a path of its own http.Server, with the same bounds for connections as those of Server.Run.
func ExampleServer_Handler() {
	srv, err := server.New(server.Options{Groups: []server.Group{{
		Name:     "fair.example.com",
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Booth", server.KindOptions[*Booth]{})}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Welcome to the fair") })
	mux.Handle("/keelson/", http.StripPrefix("/keelson", srv.Handler()))
	program := &http.Server{
		Handler:           mux,
		TLSConfig:         srv.Credentials().TLSConfig(), // requests client certificates
		ReadHeaderTimeout: 32 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    1 << 20,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReadFrameSize: 64 << 10, WriteByteTimeout: 30 * time.Second},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a program wraps it, such as by netutil.LimitListener, to bound the connections
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- program.ServeTLS(ln, "", "") }()
	url := "https://" + ln.Addr().String()
	// srv.Credentials().WriteKubeconfig("fair.kubeconfig", url+"/keelson") writes the kubeconfig for kubectl.

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: srv.Credentials().ClientCAs}, ForceAttemptHTTP2: true}
	for _, path := range []string{"/", "/keelson/readyz", "/keelson/apis/fair.example.com/v1/booths"} {
		req, err := http.NewRequest(http.MethodGet, url+path, nil)
		if err != nil {
			fmt.Println(err)
			continue
		}
		req.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Printf("%s %.19s\n", resp.Status, body)
	}

	transport.CloseIdleConnections()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(errors.Join(srv.Shutdown(ctx), program.Shutdown(ctx)), <-served) // in this order
	// Output:
	// 200 OK Welcome to the fair
	// 200 OK ok
	// 200 OK {"kind":"BoothList"
	// <nil> http: Server closed
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
