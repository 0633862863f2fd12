package audit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
)

// A Writer is a Sink that writes a line for each event.
type Writer struct {
	mu sync.Mutex // Record is called concurrently
	w  io.Writer
}

// Record implements audit.Sink.
func (s *Writer) Record(_ context.Context, events ...*audit.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		_, err := fmt.Fprintf(s.w, "%s %s: %s %s %s\n", e.AuditID, e.Stage, e.User.Username, e.Verb, e.RequestURI)
		if err != nil {
			return err
		}
	}
	return nil
}

// A server records each request except those to its health checks.
func Example() {
	policy, err := audit.ParsePolicy([]byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/livez*", "/readyz*"]
- level: Metadata
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := server.New(server.Options{Policy: server.Policy{
		Audit: []audit.Backend{{Name: "log", Policy: policy, Sink: &Writer{w: os.Stdout}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/livez", "/version", "/api/v1/nodes"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Audit-ID", "1")
		srv.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	if err := srv.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 ResponseComplete: system:anonymous get /version
	// 1 ResponseComplete: system:anonymous list /api/v1/nodes
}
