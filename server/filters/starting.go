package filters

import "net/http"

// Starting marks the requests that come while whole returns false, because the server has not begun to serve everything that it will
// serve: [request.IsEarly] reports them. A handler that would answer such a request with 404 answers with 503 instead, since a
// client may take a 404 for the truth, and a garbage collector delete what depends on an object. whole is called for every request, and must return at once.
func Starting(whole func() bool) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Early = !whole()
		return true
	})
}
