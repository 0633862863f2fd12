package authn

import (
	"net/http"
	"strings"
)

// StripCredentials returns h without credentials, so that the code behind authentication cannot log or forward them. It removes
// Authorization, the headers of the front proxy (X-Remote-User, -Uid, -Group and -Extra-*), and a WebSocket subprotocol that
// contains a token. It does not change h; it returns h itself if there are no credentials.
func StripCredentials(h http.Header) http.Header {
	out := without(h, isCredential)
	if len(h[protocolHeader]) == 0 || !hasTokenProtocol(h) {
		return out
	}
	out = without(out, func(key string) bool { return key == protocolHeader })
	var rest []string
	for p := range protocols(h) {
		if !strings.HasPrefix(p, tokenProtocol) {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 {
		out.Set(protocolHeader, strings.Join(rest, ", "))
	}
	return out
}

func isCredential(key string) bool { return key == "Authorization" || isFrontProxy(key) }

func isFrontProxy(key string) bool {
	what, ok := strings.CutPrefix(key, "X-Remote-")
	return ok && (what == "User" || what == "Uid" || what == "Group" || strings.HasPrefix(what, "Extra-"))
}

func hasTokenProtocol(h http.Header) bool {
	for p := range protocols(h) {
		if strings.HasPrefix(p, tokenProtocol) {
			return true
		}
	}
	return false
}

// without returns h without some headers. It does not change h, and returns h itself if there are none of them.
func without(h http.Header, drop func(name string) bool) http.Header {
	out, own := h, false
	for name := range h {
		if !drop(name) {
			continue
		}
		if !own {
			out, own = h.Clone(), true
		}
		delete(out, name)
	}
	return out
}
