package credentials

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hostsOf returns the hosts that are in the serving certificate of a server that listens on host.
func hostsOf(host string) ([]string, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.WithZone("").Unmap()
		if addr.IsUnspecified() {
			return hosts, nil
		}
		host = addr.String()
	} else if host = strings.ToLower(strings.TrimSuffix(host, ".")); host == "" {
		return hosts, nil
	} else if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
		return nil, fmt.Errorf("credentials: host %q is neither an IP address nor a DNS name", host)
	}
	if !slices.Contains(hosts, host) {
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// DialableHost returns the host and port, in the form of a URL, with which a program on this machine reaches a listener on addr:
// a wildcard address becomes 127.0.0.1.
func DialableHost(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.Unmap().IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
