package filters_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// What a request takes counts for the authenticated user and the address behind the proxies, also behind a Timeout.
func TestHolderOfARequest(t *testing.T) {
	somebody := authn.Func(func(*http.Request) (*authn.Response, error) {
		return &authn.Response{User: authn.User{Name: "somebody"}}, nil
	})
	var got flowcontrol.Holder
	h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = request.HolderFrom(authn.WithUser(r.Context(), &authn.User{Name: "impersonated"}))
	}), filters.Address([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}), filters.Deadline(0), filters.Timeout(),
		filters.Authenticate(somebody, filters.AuthenticateOptions{}))
	r := httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
	r.Header.Set("X-Forwarded-For", "203.0.113.9, 198.51.100.7")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if want := (flowcontrol.Holder{User: "somebody", Address: netip.MustParseAddr("198.51.100.7")}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
