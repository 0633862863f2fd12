package filters

import "net/http"

// CacheControl forbids caching, since an answer may be for its asker's eyes only: Cache-Control: no-cache, private.
// A handler may set another value, and one set before is kept.
func CacheControl() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		if h := p.w.Header(); h.Get("Cache-Control") == "" {
			p.header[1] = "no-cache, private"
			h["Cache-Control"] = p.header[1:2:2]
		}
		return true
	})
}
