package filters

import (
	"net/http"
	"strings"
)

// HSTS adds the header Strict-Transport-Security with these directives, such as "max-age=31536000" and "includeSubDomains", to
// every answer, so that a browser uses no unencrypted connection to the host (RFC 6797). Without directives it adds nothing.
func HSTS(directives ...string) Filter {
	if len(directives) == 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	value := []string{strings.Join(directives, "; ")}
	return steps(func(p *passage, _ http.Handler) bool {
		if h := p.w.Header(); h["Strict-Transport-Security"] == nil {
			h["Strict-Transport-Security"] = value
		}
		return true
	})
}
