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

// Origin refuses, with 403, what the web pages of other origins send to this server unless allow returns true for their origin
// ("https://console.example.com", or "null" of a page that has none; RFC 6454, section 7): WebSockets, and requests that may change
// something, which are those with methods other than GET, HEAD and OPTIONS. nil allows no other origin. A client that is no browser
// sends no Origin and no Sec-Fetch-Site, and passes; so does a request with a bearer token in its Authorization header, which a
// page of another origin cannot send before the server has answered the browser that it may (the preflight request of the Fetch
// standard), and not at all for a WebSocket. Credentials of other schemes are some that a browser may add by itself.
//
// A browser shows pages of one site no answers of another, but sends what they ask for, a POST of JSON without a Content-Type
// included, and leaves the decision about WebSockets to the server (RFC 6455, section 10.2). It adds what it has of the user
// whatever page asks: there are no cookies here, but the client certificate is one of a user who once chose it in a dialog, and so
// is the way into the user's network.
func Origin(allow func(origin string) bool) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if origin, foreign := foreignOrigin(p.r, allow); foreign {
			response.Error(p.w, p.r, apierrors.NewForbidden(schema.GroupResource{}, "", errForeignOrigin(p.r, origin)))
			return false
		}
		return true
	})
}

// foreignOrigin reports whether a request comes from a page that may not send it, and that page's origin where it is known.
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
		if site == "same-origin" || site == "none" { // none: the user's own doing, no page's
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

// bearsToken reports whether a header has a token that no browser adds by itself.
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

// isOwnOrigin reports whether an origin is that of a request's URL. What decrypts in front of this server may have hidden the
// scheme; where it has not, a page that came by plain HTTP may have been changed by anybody.
func isOwnOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || r.TLS == nil && u.Scheme == "http")
}
