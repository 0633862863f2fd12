package filters

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/keelson-dev/keelson/server/request"
)

// Address sets the client address of a request, by which the request is counted in bounds ([request.HolderFrom]).
// [request.Address] finds the address, also behind the given proxies.
func Address(proxies []netip.Prefix) Filter {
	proxies = slices.Clone(proxies)
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Holder.Address = request.Address(p.r, proxies)
		return true
	})
}
