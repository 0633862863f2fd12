package authn

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ProxyOptions are the options of AuthenticatingProxy. Names of headers are not case-sensitive.
type ProxyOptions struct {
	// Roots returns the authorities of the proxies' client certificates. It is called for each request, and must not block. If the
	// pool is nil, no request comes from a proxy. Roots must not be nil.
	Roots func() *x509.CertPool
	// Names are the common names of the proxies' certificates. If there are none, each certificate of Roots is a proxy's.
	Names []string
	// User, UID and Group are the headers with the name, the UID and the groups of the user. Of the headers of User and UID the
	// first with a value counts, and all values of those of Group. There must be a header of User.
	User, UID, Group []string
	// Extra are prefixes of headers with further attributes of the user. The key of an attribute is the rest of the header's name
	// in lower case, in which percent-encoded characters are decoded.
	Extra []string
}

// StandardProxy returns the headers that Kubernetes uses between its servers: X-Remote-User, X-Remote-Uid, X-Remote-Group and
// X-Remote-Extra-, https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/. The authorities of proxies should
// issue no other certificates: without names, every client with a certificate of roots can be any user.
func StandardProxy(roots func() *x509.CertPool, names ...string) ProxyOptions {
	return ProxyOptions{
		Roots: roots, Names: names,
		User: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"}, Group: []string{"X-Remote-Group"}, Extra: []string{"X-Remote-Extra-"},
	}
}

// Proxy authenticates requests by the headers of an authenticating proxy. Make one with AuthenticatingProxy. All methods may be
// called concurrently.
type Proxy struct {
	certificates *certificates
	user, uid    []string // canonical names
	group, extra []string
}

// AuthenticatingProxy returns an authenticator for requests that a proxy has authenticated, and forwards with the user in headers:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authenticating-proxy. The proxy proves by a client
// certificate that it is one. The result of a request is no opinion if it has no client certificate, or if it has one of a proxy
// but no user. It is an error if its client certificate is not a proxy's, whatever headers it has.
func AuthenticatingProxy(o ProxyOptions) (*Proxy, error) {
	if o.Roots == nil {
		return nil, errors.New("authenticating proxy: Roots is nil: want the authorities of the proxies' certificates")
	}
	if len(o.User) == 0 {
		return nil, errors.New("authenticating proxy: User is empty: want the header with the name of the user, such as X-Remote-User")
	}
	p := &Proxy{certificates: newCertificates(o.Roots, proxyNames(o.Names))}
	for _, list := range []struct {
		name string
		from []string
		to   *[]string
	}{{"User", o.User, &p.user}, {"UID", o.UID, &p.uid}, {"Group", o.Group, &p.group}, {"Extra", o.Extra, &p.extra}} {
		for i, header := range list.from {
			if header = strings.TrimSpace(header); header == "" {
				return nil, fmt.Errorf("authenticating proxy: %s[%d] is empty: want the name of a header", list.name, i)
			}
			*list.to = append(*list.to, http.CanonicalHeaderKey(header))
		}
	}
	return p, nil
}

// proxyNames returns a function that accepts certificates with the common names of proxies.
func proxyNames(names []string) func(*x509.Certificate) (*Response, error) {
	names = slices.Clone(names)
	return func(leaf *x509.Certificate) (*Response, error) {
		if len(names) > 0 && !slices.Contains(names, leaf.Subject.CommonName) {
			return nil, fmt.Errorf("the certificate of %q is not that of an authenticating proxy", leaf.Subject.CommonName)
		}
		return nil, nil
	}
}

// Authenticate implements Authenticator.
func (p *Proxy) Authenticate(r *http.Request) (*Response, error) {
	if _, there, err := p.certificates.check(r); !there || err != nil {
		return nil, err
	}
	name := first(r.Header, p.user)
	if name == "" {
		return nil, nil
	}
	user := User{Name: name, UID: first(r.Header, p.uid), Extra: p.extras(r.Header)}
	for _, header := range p.group {
		for _, group := range r.Header[header] {
			if group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	return &Response{User: user}, nil
}

// first returns the first value of the first header that has one.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// extras returns the further attributes of the user.
func (p *Proxy) extras(h http.Header) map[string][]string {
	var out map[string][]string
	for _, prefix := range p.extra {
		for _, header := range sorted(h) { // headers may have one key: their values have one order
			rest, ok := cutPrefixFold(header, prefix)
			if !ok {
				continue
			}
			if out == nil {
				out = map[string][]string{}
			}
			key := ExtraKey(rest)
			out[key] = append(out[key], h[header]...)
		}
	}
	return out
}

// sorted returns the names of headers in order.
func sorted(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ExtraKey returns the key of an attribute of a user ([User].Extra) from the rest of the name of a header, such as that after
// "X-Remote-Extra-": the key is in lower case, with percent-encoded characters that HTTP does not allow in names.
func ExtraKey(rest string) string {
	rest = strings.ToLower(rest)
	if key, err := url.PathUnescape(rest); err == nil {
		return key
	}
	return rest
}

// cutPrefixFold is strings.CutPrefix without regard to case.
func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// Strip returns h without the headers of the proxy, so that the code behind authentication neither forwards nor believes them. It
// does not change h, and returns h itself if there are none.
func (p *Proxy) Strip(h http.Header) http.Header { return without(h, p.has) }

// has reports whether a header is one of the proxy's.
func (p *Proxy) has(header string) bool {
	if slices.Contains(p.user, header) || slices.Contains(p.uid, header) || slices.Contains(p.group, header) {
		return true
	}
	return slices.ContainsFunc(p.extra, func(prefix string) bool {
		_, ok := cutPrefixFold(header, prefix)
		return ok
	})
}
