package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
)

// FreeHeaderBytes is the largest size, in bytes, of a header that [HeaderBytes] does not count. The number of such headers is
// bounded by the number of requests in flight.
const FreeHeaderBytes = 16 << 10

// HeaderBytes counts the memory that a large header of a request takes, with its URL, in budget until the request ends. A request
// above the bounds is answered with 429 and Retry-After, and each of onReject is called for it. The memory counts for the user
// who was authenticated ([request.HolderFrom]), so the filter belongs behind [Authenticate].
func HeaderBytes(budget *flowcontrol.Budget, onReject ...func(r *http.Request)) Filter {
	return steps(func(p *passage, next http.Handler) bool {
		size := headerBytes(p.r)
		if size <= FreeHeaderBytes {
			return true
		}
		share, err := budget.Take(request.HolderFrom(p.r.Context()), size)
		if err != nil {
			turnAwayLong(p.w, p.r, err)
			callEach(onReject, p.r)
			return false
		}
		defer share.Release()
		p.to(next)
		return false
	})
}

// headerBytes returns about how many bytes of memory the header and the URL of r take.
func headerBytes(r *http.Request) int64 {
	const field, value, urls = 48, 16, 3 // of a map, of a string; the URL is there as sent, in parts, and decoded
	size := urls * len(r.RequestURI)
	for name, values := range r.Header {
		size += field + len(name)
		for _, v := range values {
			size += value + len(v)
		}
	}
	return int64(size)
}
