package filters

import "net/http"

// CacheControl forbids caching, since an answer may be for its asker's eyes only: Cache-Control: no-cache, private.
// A handler may set another value, and one set before is kept.
func CacheControl() Filter {
	return steps(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if h := w.Header(); h.Get("Cache-Control") == "" {
			h.Set("Cache-Control", "no-cache, private")
		}
		return true
	})
}
