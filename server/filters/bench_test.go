package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkChain measures what all filters together add to a request.
func BenchmarkChain(b *testing.B) {
	h := whole(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/namespaces/ns/widgets/a", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
