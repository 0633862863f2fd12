package request

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
)

// HolderFrom returns the Holder for which the request of ctx counts in a [flowcontrol.Budget]: the user who was authenticated,
// and the address that the request came from. If the request impersonates another user, it still counts for the user whose
// credential was sent: a client can impersonate any number of names at no cost, so that a bound for each name would not bound the
// client. Fields that are not known, such as the user before authentication, are zero.
func HolderFrom(ctx context.Context) flowcontrol.Holder {
	var h flowcontrol.Holder
	if v := valuesOf(ctx); v != nil {
		h = v.Holder
	}
	if h.User == "" {
		if u := authn.UserFrom(ctx); u != nil {
			h.User = u.Name
		}
	}
	return h
}

// Address returns the address that a request came from. That is the address of its connection, unless proxies contain that
// address. Then it is the last address in the header X-Forwarded-For that proxies do not contain: each proxy appends the address
// of its client to the header. The header of a client that is not a proxy is ignored, and so are all addresses before the one
// that is returned. Address returns the zero Addr if the address is not known, because the connection has no IP address, or the
// header has no address but those of proxies.
func Address(r *http.Request, proxies []netip.Prefix) netip.Addr {
	from := peer(r.RemoteAddr)
	if !contain(proxies, from) {
		return from
	}
	for text := range ForwardedFor(r.Header) {
		if hop := peer(text); !contain(proxies, hop) {
			return hop // the zero Addr if a proxy named no address: what is before it may come from the client
		}
	}
	return netip.Addr{}
}

// ForwardedFor returns what the X-Forwarded-For fields of a header name, first the last, which is that of the nearest proxy. Clients
// can write anything there.
func ForwardedFor(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(h["X-Forwarded-For"]) {
			for line != "" {
				i := strings.LastIndexByte(line, ',')
				if !yield(strings.TrimSpace(line[i+1:])) {
					return
				}
				line = line[:max(i, 0)]
			}
		}
	}
}

// peer parses an address, with or without a port. It returns the zero Addr if s has none.
func peer(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap()
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

// contain reports whether one of prefixes contains a.
func contain(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}
