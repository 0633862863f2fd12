package clienttest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// shareTransports makes the clients of one rest.Config share the first transport that client-go makes for them. client-go caches
// transports by their configuration, but not those of a Config with a Dial, because functions cannot be compared. So each client
// would have a transport and a connection of its own.
//
// A transport whose settings differ from those of dial and the Config's authority is not shared, because the settings are
// intended.
func shareTransports(dial dialFunc) transport.WrapperFunc {
	var (
		mu    sync.Mutex // guards first
		first http.RoundTripper
	)
	return func(rt http.RoundTripper) http.RoundTripper {
		made := httpTransport(rt)
		if made == nil || !sameCode(made.DialContext, dial) || !plain(made.TLSClientConfig) {
			return rt
		}
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = rt
		}
		if !alike(made, httpTransport(first)) {
			return rt
		}
		return first
	}
}

// httpTransport returns the transport that rt is or wraps, or nil.
func httpTransport(rt http.RoundTripper) *http.Transport {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return t
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return nil
		}
	}
}

// plain reports whether c configures only an authority.
func plain(c *tls.Config) bool {
	return c != nil && c.RootCAs != nil && !c.InsecureSkipVerify && c.ServerName == "" && c.Certificates == nil && c.GetClientCertificate == nil
}

func alike(a, b *http.Transport) bool {
	return a.TLSClientConfig.RootCAs.Equal(b.TLSClientConfig.RootCAs) && slices.Equal(a.TLSClientConfig.NextProtos, b.TLSClientConfig.NextProtos) &&
		a.DisableCompression == b.DisableCompression && sameCode(a.Proxy, b.Proxy)
}

// sameCode reports whether two functions have the same code. A wrapper of a function has other code than the function.
func sameCode(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
