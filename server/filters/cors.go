package filters

import "net/http"

// CORS lets web pages of the origins that allow accepts read the answers of the server: it adds the headers of the Fetch standard
// with which a browser decides (https://fetch.spec.whatwg.org/#http-cors-protocol), and answers OPTIONS with 204. All other
// requests pass, without these headers. A nil allow accepts no origin. The headers are those of kube-apiserver.
//
// CORS belongs before [Authenticate], because a preflight request has no credentials. It does not refuse requests: [Origin] does.
func CORS(allow func(origin string) bool) Filter {
	if allow == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	return steps(func(p *passage, _ http.Handler) bool {
		origin := p.r.Header.Get("Origin")
		if origin == "" || !allow(origin) {
			return true
		}
		h := p.w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since")
		h.Set("Access-Control-Expose-Headers", "Date")
		h.Set("Access-Control-Allow-Credentials", "true")
		if p.r.Method == http.MethodOptions {
			p.w.WriteHeader(http.StatusNoContent)
			return false
		}
		return true
	})
}
