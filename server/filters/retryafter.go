package filters

import (
	"net/http"
	"strings"
)

// RetryAfter answers requests with 429, Retry-After and a text while when returns true, and ends their connections: it is for a
// server that ends while its listener is open, so that clients go to another server. Requests for /healthz, /livez, /readyz,
// /metrics and paths below them pass, and so do those of other servers, whose User-Agent begins with "kube-apiserver/", as in
// kube-apiserver.
func RetryAfter(when func() bool) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if !when() || observes(p.r.URL.Path) || strings.HasPrefix(p.r.UserAgent(), "kube-apiserver/") {
			return true
		}
		h := p.w.Header()
		h.Set("Retry-After", "5")
		h.Set("Connection", "close")
		http.Error(p.w, "The apiserver is shutting down, please try again later.", http.StatusTooManyRequests)
		return false
	})
}

// observes reports whether a path says how a server is.
func observes(path string) bool {
	for _, at := range []string{"/healthz", "/livez", "/readyz", "/metrics"} {
		if rest, ok := strings.CutPrefix(path, at); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
