package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/response"
)

// CBOR lets [response.Error] answer in application/cbor the requests that accept it. It belongs outermost, in a server that
// serves objects in CBOR too.
func CBOR() Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(response.WithCBOR(r.Context())))
		})
	}
}
