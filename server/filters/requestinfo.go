package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// RequestInfo resolves once what a request is for ([request.Resolver.Resolve]), and puts the result in the context, for all
// filters behind it and for the handlers. If that fails, it answers with the error.
func RequestInfo(by request.Resolver) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		info, err := by.Resolve(p.r)
		if err != nil {
			response.Error(p.w, p.r, err)
			return false
		}
		p.values.Info = info
		return true
	})
}

// info returns the info of a request, and resolves it if there was no RequestInfo. false means that the request could not be
// resolved and has been answered.
func (p *passage) info() (*request.Info, bool) {
	if p.values.Info != nil {
		return p.values.Info, true
	}
	info, err := request.Resolve(p.r)
	if err != nil {
		response.Error(p.w, p.r, err)
		return nil, false
	}
	return info, true
}
