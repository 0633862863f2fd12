package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/response"
)

// CBOR lets [response.Error] answer in application/cbor if the request accepts it. It is the outermost filter of a server that
// also serves objects in CBOR.
func CBOR() Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(response.WithCBOR(r.Context())))
		})
	}
}
