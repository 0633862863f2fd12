package filters

import (
	"context"
	"net/http"
)

// CBOR lets WriteStatus answer in application/cbor whoever accepts that, for all that is below it. It belongs outermost, in a
// server that serves objects in CBOR too.
func CBOR() Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), cborKey{}, true)))
		})
	}
}

type cborKey struct{}

// servesCBOR reports whether the request came through the filter CBOR.
func servesCBOR(r *http.Request) bool { return r.Context().Value(cborKey{}) != nil }
