package request_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
)

// Only the part of X-Forwarded-For that a proxy appends decides which address a request came from.
func TestAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, tc := range map[string]struct {
		remote    string
		forwarded []string
		want      string // "" is none
	}{
		"no proxy":                  {"192.0.2.1:1234", nil, "192.0.2.1"},
		"no proxy, forged":          {"192.0.2.1:1234", []string{"198.51.100.7"}, "192.0.2.1"},
		"mapped":                    {"[::ffff:192.0.2.1]:1234", nil, "192.0.2.1"},
		"zone":                      {"[fe80::1%eth0]:1", nil, "fe80::1%eth0"},
		"not of IP":                 {"@", []string{"198.51.100.7"}, ""},
		"proxy":                     {"10.1.2.3:1", []string{"198.51.100.7"}, "198.51.100.7"},
		"proxy over mapped IPv6":    {"[::ffff:10.1.2.3]:1", []string{"198.51.100.7"}, "198.51.100.7"},
		"proxy, forged before":      {"10.1.2.3:1", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		"proxy, forged line before": {"10.1.2.3:1", []string{"203.0.113.9", "198.51.100.7"}, "198.51.100.7"},
		"two proxies":               {"10.1.2.3:1", []string{"198.51.100.7, 10.9.9.9"}, "198.51.100.7"},
		"two proxies, two lines":    {"10.1.2.3:1", []string{"198.51.100.7", "10.9.9.9"}, "198.51.100.7"},
		"with ports":                {"[fd00::1]:1", []string{"[2001:db8::5]:443,10.9.9.9:80"}, "2001:db8::5"},
		"in brackets":               {"[fd00::1]:1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		"proxy without the header":  {"10.1.2.3:1", nil, ""},
		"proxy with an empty one":   {"10.1.2.3:1", []string{""}, ""},
		"proxy for proxies":         {"10.1.2.3:1", []string{"10.4.4.4,10.5.5.5"}, ""},
		"proxy for somebody":        {"10.1.2.3:1", []string{"203.0.113.9, unknown"}, ""},
		"nothing before a comma":    {"10.1.2.3:1", []string{",10.4.4.4"}, ""},
		"a port that is none":       {"10.1.2.3:1", []string{"203.0.113.9, 198.51.100.7:99999"}, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.remote
		r.Header["X-Forwarded-For"] = tc.forwarded
		want := netip.Addr{}
		if tc.want != "" {
			want = netip.MustParseAddr(tc.want)
		}
		if got := request.Address(r, proxies); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestHolder(t *testing.T) {
	if got := request.HolderFrom(t.Context()); got != (flowcontrol.Holder{}) {
		t.Errorf("of nobody: %+v", got)
	}
	ctx := authn.WithUser(t.Context(), &authn.User{Name: "a"})
	if got := request.HolderFrom(ctx); got != (flowcontrol.Holder{User: "a"}) {
		t.Errorf("of a user: %+v", got)
	}
	h := flowcontrol.Holder{User: "b", Address: netip.MustParseAddr("192.0.2.1")}
	if got := request.HolderFrom(authn.WithUser(request.WithHolder(ctx, h), &authn.User{Name: "a"})); got != h {
		t.Errorf("who is impersonated counts: %+v", got)
	}
}
