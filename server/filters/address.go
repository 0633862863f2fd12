package filters

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/keelson-dev/keelson/server/request"
)

// Address sets the address that a request counts for ([request.Address], [request.HolderFrom]), also for a request that comes
// through proxies.
func Address(proxies []netip.Prefix) Filter {
	proxies = slices.Clone(proxies)
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Holder.Address = request.Address(p.r, proxies)
		return true
	})
}
