package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type anybody struct{}

func (anybody) Authenticate(*http.Request) (*authn.Response, error) {
	return &authn.Response{User: authn.User{Name: "somebody"}}, nil
}

func widgets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
}

// nothing is a ResponseWriter that does nothing.
type nothing struct{ header http.Header }

func (n nothing) Header() http.Header         { return n.header }
func (n nothing) Write(p []byte) (int, error) { return len(p), nil }
func (n nothing) WriteHeader(int)             {}

// BenchmarkRequest measures all filters together for a request for an object without a deadline, once without and once with
// everything that the metrics need.
func BenchmarkRequest(b *testing.B) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	m := metrics.New(metrics.Options{})
	m.Serve([]metrics.Resource{{GroupVersionResource: widgets()}})
	for _, bc := range []struct {
		name  string
		authn authn.Authenticator
		authz authz.Authorizer
		last  []filters.Filter
	}{
		{"without", anybody{}, authz.AlwaysAllow(), nil},
		{"with", m.Authenticator(anybody{}), m.Authorizer(authz.AlwaysAllow()), []filters.Filter{filters.Metrics(m)}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			h := filters.Chain(answer, append([]filters.Filter{
				filters.Recover(nil, m.Aborted), filters.ReceivedAt(time.Now), filters.RequestInfo(request.Resolver{}), filters.Log(nil),
				filters.Authenticate(bc.authn, filters.AuthenticateOptions{}), filters.Authorize(bc.authz),
			}, bc.last...)...)
			r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets/a", nil)
			w := nothing{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkEvent measures what the metrics add to an event of a watch.
func BenchmarkEvent(b *testing.B) {
	hooks := metrics.New(metrics.Options{}).Handlers(widgets())
	b.ReportAllocs()
	for b.Loop() {
		hooks.Event(1750)
	}
}
