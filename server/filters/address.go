package filters

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/keelson-dev/keelson/server/request"
)

// Address finds out which address a request counts for ([request.Address], [request.HolderFrom]), where it comes through proxies
// too.
func Address(proxies []netip.Prefix) Filter {
	proxies = slices.Clone(proxies)
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Holder.Address = request.Address(p.r, proxies)
		return true
	})
}
