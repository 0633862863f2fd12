package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"go.uber.org/zap"
)

// BenchmarkChain is what all filters together add to a request.
func BenchmarkChain(b *testing.B) {
	tokens := authn.StaticTokens(map[string]authn.User{"s3cret": {Name: "admin", Groups: []string{authn.MastersGroup}}})
	h := filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		filters.Recover(nil), filters.AuditID(), filters.ReceivedAt(nil), filters.RequestInfo(), filters.Log(zap.NewNop()), filters.CacheControl(),
		filters.NewWaitGroup().Filter(), filters.Deadline(0), filters.Timeout(), filters.Warnings(),
		filters.Authenticate(authn.BearerToken(tokens)), filters.InFlight(0, 0), filters.Authorize(authz.Masters()))
	r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets/a", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
