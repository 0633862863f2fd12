package authn

import (
	"net/http"
	"strings"
)

// StripCredentials returns h without credentials, so that the code behind authentication cannot log or forward them. It removes
// Authorization, the headers of the front proxy (X-Remote-User, -Uid, -Group and -Extra-*), and a WebSocket subprotocol that
// contains a token. It does not change h; it returns h itself if there are no credentials.
func StripCredentials(h http.Header) http.Header {
	out := h
	for key := range h {
		if key == "Authorization" || isFrontProxy(key) {
			out = out.Clone()
			break
		}
	}
	if len(h[protocolHeader]) > 0 && hasTokenProtocol(h) {
		out = h.Clone()
		out.Del(protocolHeader)
		var rest []string
		for p := range protocols(h) {
			if !strings.HasPrefix(p, tokenProtocol) {
				rest = append(rest, p)
			}
		}
		if len(rest) > 0 {
			out.Set(protocolHeader, strings.Join(rest, ", "))
		}
	}
	for key := range h {
		if key == "Authorization" || isFrontProxy(key) {
			delete(out, key)
		}
	}
	return out
}

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
