package response

import "net/http"

// SetCause passes the reason why the server fails the request to the writers around a response. It calls the first that has a
// method SetCause(error), which it finds by Unwrap, as http.ResponseController does.
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
