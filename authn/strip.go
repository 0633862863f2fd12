package authn

import (
	"net/http"
	"strings"
)

// StripCredentials returns h without what authenticates: Authorization, the front proxy's X-Remote-User, -Uid,
// -Group and -Extra-*, and a WebSocket subprotocol that holds a token, so that nothing behind authentication can log
// them or send them on. h itself is not changed; when it has none of them it is what is returned.
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
