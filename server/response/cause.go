package response

import "net/http"

// SetCause passes the error for which a request fails to the filters around a handler, such as one that logs it. It calls the
// method SetCause(error) of the first http.ResponseWriter that has this method: w, or one that w wraps, which it finds by the
// methods Unwrap, as http.ResponseController does.
func SetCause(w http.ResponseWriter, err error) {
	for w != nil {
		if c, ok := w.(interface{ SetCause(err error) }); ok {
			c.SetCause(err)
			return
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}
