package response

import "net/http"

// SetCause tells the writers around a response why the server fails the request. The first that has a method SetCause(error) is
// told; it is looked for by Unwrap, as http.ResponseController does.
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
