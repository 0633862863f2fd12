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

// Origin refuses, with 403, the WebSockets that web pages open unless they are pages of this server, or allow returns true for
// their origin ("https://console.example.com", or "null" of a page that has none; RFC 6454, section 7). nil allows no other. A
// client that sends no Origin is no browser, and passes.
//
// A browser shows pages of one site no answers of another, but for WebSockets, about which it leaves the decision to the server
// (RFC 6455, section 10.2). It adds what it has of the user to the handshake whatever page opens it: there are no cookies here, but
// the client certificate is one of a user who once chose it in a dialog, and so is the way into the user's network.
func Origin(allow func(origin string) bool) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		all := p.r.Header["Origin"]
		if len(all) == 0 || !authn.OpensWebSocket(p.r.Header) {
			return true
		}
		for _, origin := range all {
			if origin != "" && !isOwnOrigin(p.r, origin) && (allow == nil || !allow(origin)) {
				response.Error(p.w, p.r, apierrors.NewForbidden(schema.GroupResource{}, "", errForeignOrigin(origin)))
				return false
			}
		}
		return true
	})
}

func errForeignOrigin(origin string) error {
	if origin == "null" {
		return errors.New("a web page without an origin may not open a WebSocket to this server")
	}
	return fmt.Errorf("web pages of the origin %q may not open a WebSocket to this server", authz.Shorten(origin))
}

// isOwnOrigin reports whether an origin is that of a request's URL. What decrypts in front of this server may have hidden the
// scheme; where it has not, a page that came by plain HTTP may have been changed by anybody.
func isOwnOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || r.TLS == nil && u.Scheme == "http")
}
