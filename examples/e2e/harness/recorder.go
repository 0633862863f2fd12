package harness

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Recorder records the requests of a client. The zero Recorder is ready for use. Its methods may be called concurrently.
type Recorder struct {
	mu       sync.Mutex
	requests []*http.Request // guarded by mu; without bodies
}

// Record makes the clients of a configuration send their requests through the recorder.
func (r *Recorder) Record(c *rest.Config) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return recording{r, next} })
}

// Count returns the number of recorded requests for which match returns true.
func (r *Recorder) Count(match func(*http.Request) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, req := range r.requests {
		if match(req) {
			n++
		}
	}
	return n
}

type recording struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r recording) RoundTrip(req *http.Request) (*http.Response, error) {
	seen := req.Clone(req.Context())
	seen.Body = nil
	r.recorder.mu.Lock()
	r.recorder.requests = append(r.recorder.requests, seen)
	r.recorder.mu.Unlock()
	return r.next.RoundTrip(req)
}
