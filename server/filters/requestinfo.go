package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
)

// RequestInfo finds out once what a request wants ([request.Resolve]) and puts it in the context, for all filters
// behind it and for the handlers. A path that cannot be understood is answered with its error.
func RequestInfo() Filter {
	return steps(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		info, err := request.Resolve(r)
		if err != nil {
			WriteStatus(w, r, err)
			return false
		}
		setContext(r, request.WithInfo(r.Context(), info))
		return true
	})
}

// infoOf returns the info of a request, resolving it where no RequestInfo has; false says that the request could not
// be understood and has been answered.
func infoOf(w http.ResponseWriter, r *http.Request) (*request.Info, bool) {
	if info := request.InfoFrom(r.Context()); info != nil {
		return info, true
	}
	info, err := request.Resolve(r)
	if err != nil {
		WriteStatus(w, r, err)
		return nil, false
	}
	return info, true
}
