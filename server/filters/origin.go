package filters

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Origin refuses, with 403, requests that web pages of other origins send to this server, unless allow returns true for their
// origin ("https://console.example.com", or "null" for a page that has none; RFC 6454, section 7). It refuses WebSockets, and
// requests that may change something, which are those with methods other than GET, HEAD and OPTIONS. A nil allow allows no other
// origin.
//
// Some requests always pass. A client that is not a browser sends no Origin and no Sec-Fetch-Site, and passes. A request with a
// bearer token in its Authorization header passes, too. A page of another origin cannot send such a request until the server has
// allowed it in answer to a preflight request (of the Fetch standard), and cannot send it at all for a WebSocket. Credentials of
// other schemes do not count, since a browser may add them without the page.
//
// The reason for the filter: a browser does not show the answers of one site to pages of another site, but it sends the requests
// of these pages, also a POST of JSON without a Content-Type. For WebSockets the browser leaves the decision to the server (RFC
// 6455, section 10.2). It adds the credentials of the user, whichever page sends the request. This server uses no cookies. But
// the browser may have a client certificate that the user once chose in a dialog, and the browser has access to the user's
// network.
func Origin(allow func(origin string) bool) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if origin, foreign := foreignOrigin(p.r, allow); foreign {
			response.Error(p.w, p.r, apierrors.NewForbidden(schema.GroupResource{}, "", errForeignOrigin(p.r, origin)))
			return false
		}
		return true
	})
}

// foreignOrigin reports whether a request comes from a page that may not send it. origin is the origin of that page, if it is
// known.
func foreignOrigin(r *http.Request, allow func(origin string) bool) (origin string, foreign bool) {
	all := r.Header["Origin"]
	if bearsToken(r.Header) {
		return "", false
	}
	if !authn.OpensWebSocket(r.Header) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return "", false
		}
		site := r.Header.Get("Sec-Fetch-Site")
		if site == "same-origin" || site == "none" { // none: the user made the request, and not a page
			return "", false
		}
		if len(all) == 0 {
			return "", site != ""
		}
	}
	for _, origin := range all {
		if origin != "" && !isOwnOrigin(r, origin) && (allow == nil || !allow(origin)) {
			return origin, true
		}
	}
	return "", false
}

// bearsToken reports whether a header has a token that browsers do not add by themselves.
func bearsToken(h http.Header) bool {
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

func errForeignOrigin(r *http.Request, origin string) error {
	what := "send this request to this server"
	if authn.OpensWebSocket(r.Header) {
		what = "open a WebSocket to this server"
	}
	switch origin {
	case "":
		return errors.New("web pages of another site may not " + what)
	case "null":
		return errors.New("a web page without an origin may not " + what)
	}
	return fmt.Errorf("web pages of the origin %q may not %s", authz.Shorten(origin), what)
}

// isOwnOrigin reports whether an origin is that of a request's URL. If r.TLS is nil, a proxy may have ended TLS in front of this
// server, so that the scheme is unknown. If it is not nil, a page that came by plain HTTP is refused, since anybody may have
// changed it.
func isOwnOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || r.TLS == nil && u.Scheme == "http")
}
