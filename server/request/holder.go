package request

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
)

// HolderFrom returns for whom what the request of ctx takes of a [flowcontrol.Budget] counts: for the user who was
// authenticated, and the address that the request came from. It is the user whose credential was sent, and not one whom that
// user impersonates: impersonation costs the client nothing, so that bounds by the impersonated name would be none. What is
// not known, such as the user before authentication, is zero.
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

// Address returns the address that a request came from: that of its connection or, where proxies contain that, the last address
// of the header X-Forwarded-For, to which each proxy appends the address of its client, that proxies do not contain. It
// is the zero Addr when that is not known: the connection has no IP address, or the proxies named no other. The header of a
// client that is no proxy counts for nothing, and so does all that stands before the address.
func Address(r *http.Request, proxies []netip.Prefix) netip.Addr {
	from := peer(r.RemoteAddr)
	if !contain(proxies, from) {
		return from
	}
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for line != "" {
			i := strings.LastIndexByte(line, ',')
			hop := peer(strings.TrimSpace(line[i+1:]))
			if !contain(proxies, hop) {
				return hop // the zero Addr where a proxy names no address: what stands before it may be of the client
			}
			line = line[:max(i, 0)]
		}
	}
	return netip.Addr{}
}

// peer reads an address, with a port or without one; the zero Addr is none.
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
