package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// endpoint is the address of one member.
type endpoint struct {
	name    string // as given in Options
	url     string // as the client of etcd needs it
	network string // tcp or unix
	address string
	host    string // the name its certificate must have
	secure  bool
}

// parseEndpoints checks the endpoints as a whole and returns the TLS configuration to use, nil for none.
func parseEndpoints(o Options) ([]endpoint, *tls.Config, error) {
	if len(o.Endpoints) == 0 {
		return nil, nil, errors.New("etcd: no endpoints: name at least one, like http://127.0.0.1:2379")
	}
	var all []endpoint
	seen := map[string]bool{}
	for i, s := range o.Endpoints {
		e, err := parseEndpoint(s, o.TLS != nil)
		if err != nil {
			return nil, nil, fmt.Errorf("etcd: endpoint %d, %q: %w", i+1, printable(s), err)
		}
		if len(all) > 0 && e.secure != all[0].secure {
			return nil, nil, fmt.Errorf("etcd: endpoint %d, %q, and endpoint 1, %q: one uses TLS and the other does not: use the same scheme for all",
				i+1, s, o.Endpoints[0])
		}
		if !seen[e.url] {
			seen[e.url] = true
			all = append(all, e)
		}
	}
	if !all[0].secure {
		return all, nil, nil
	}
	if o.TLS == nil {
		return all, &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	return all, o.TLS.Clone(), nil
}

// printable returns an endpoint without a user and password in it, which are not allowed there.
func printable(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	scheme, _, found := strings.Cut(s[:at], "://")
	if !found {
		return "..." + s[at:]
	}
	return scheme + "://..." + s[at:]
}

func parseEndpoint(s string, haveTLS bool) (endpoint, error) {
	s = strings.TrimSpace(s)
	scheme, rest, found := strings.Cut(s, "://")
	switch {
	case s == "":
		return endpoint{}, errors.New("it is empty")
	case strings.HasPrefix(s, "unix:") || strings.HasPrefix(s, "unixs:"):
		return parseSocket(s, haveTLS)
	case !found:
		scheme, rest = "http", s
		if haveTLS {
			scheme = "https"
		}
	}
	scheme = strings.ToLower(scheme)
	switch {
	case scheme != "http" && scheme != "https":
		return endpoint{}, fmt.Errorf("scheme %q is unknown: use http://, https:// or unix://", scheme)
	case scheme == "http" && haveTLS:
		return endpoint{}, errors.New("Options.TLS is given, but http:// does not use it: write https://, or leave TLS out")
	}
	u, err := url.Parse(scheme + "://" + rest)
	switch {
	case strings.Contains(rest, ","):
		return endpoint{}, errors.New("it has a comma: each endpoint is a string of its own")
	case err != nil:
		return endpoint{}, errors.New("it is no URL: write it like http://127.0.0.1:2379")
	}
	switch {
	case u.User != nil:
		return endpoint{}, errors.New("it contains a user: use Options.Username and Options.Password")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, errors.New("it has a path or query: only scheme, host and port belong there (to share an etcd use Options.Prefix)")
	case u.Hostname() == "":
		return endpoint{}, errors.New("it names no host")
	case strings.Contains(u.Hostname(), "%"):
		return endpoint{}, errors.New("an IPv6 address with a zone is more than the client of etcd understands: use another address, or a name")
	case u.Port() == "":
		return endpoint{}, fmt.Errorf("it names no port: etcd's own is %s", net.JoinHostPort(u.Hostname(), "2379"))
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return endpoint{}, fmt.Errorf("port %s is not between 1 and 65535", u.Port())
	}
	address := net.JoinHostPort(u.Hostname(), u.Port())
	return endpoint{
		name: s, url: scheme + "://" + address, network: "tcp", address: address, host: u.Hostname(), secure: scheme == "https",
	}, nil
}

// parseSocket parses unix:path, unix://path and unix:///path, and the same with unixs.
func parseSocket(s string, haveTLS bool) (endpoint, error) {
	scheme, path, _ := strings.Cut(s, ":")
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return endpoint{}, errors.New("it names no socket")
	}
	secure := scheme == "unixs" || haveTLS
	if secure {
		scheme = "unixs"
	}
	u := scheme + ":" + path
	if strings.HasPrefix(path, "/") {
		u = scheme + "://" + path
	}
	return endpoint{name: s, url: u, network: "unix", address: path, host: path[strings.LastIndexByte(path, '/')+1:], secure: secure}, nil
}
