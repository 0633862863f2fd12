package filters

import "net/http"

// CacheControl forbids caching by Cache-Control: no-cache, private, since an answer may be only for the user who sent the
// request. A value that was set before the filter is kept, and a handler may set another one.
func CacheControl() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if h := p.w.Header(); h.Get("Cache-Control") == "" {
			h["Cache-Control"] = p.value(1, "no-cache, private")
		}
		return true
	})
}
