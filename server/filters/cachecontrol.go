package filters

import "net/http"

// CacheControl forbids caching, since an answer may be for its asker's eyes only: Cache-Control: no-cache, private.
// A handler may set another value, and one set before is kept.
func CacheControl() Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := w.Header(); h.Get("Cache-Control") == "" {
				h.Set("Cache-Control", "no-cache, private")
			}
			next.ServeHTTP(w, r)
		})
	}
}
