package webhook

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// Config describes the address of a webhook and the certificates to trust. Exactly one of URL and Service is set.
type Config struct {
	// URL is an absolute URL with the scheme https. Only its host and path are used.
	URL string
	// Service is the service in the cluster that serves the webhook.
	Service *Service
	// CABundle has PEM certificates of authorities. One of them must have issued the webhook's certificate; if the bundle is
	// empty, the authorities of the system are trusted. The webhook's certificate must be for the host of URL, or for
	// <name>.<namespace>.svc. CABundle is kept, and must not be changed.
	CABundle []byte
}

// Service names a service, and the port and path at which it serves a webhook.
type Service struct {
	Namespace, Name string // name the service
	Port            int32  // 0 means 443
	Path            string // "" means /
}

// domain returns the DNS name of a service, which its certificate must have.
func (s *Service) domain() string { return s.Name + "." + s.Namespace + ".svc" }

// hostPort returns the DNS name and port of a service.
func (s *Service) hostPort() string { return net.JoinHostPort(s.domain(), strconv.Itoa(int(s.port()))) }

func (s *Service) port() int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}

// target is a Config after it was checked.
type target struct {
	url      string // with the timeout
	host     string // host of the URL, perhaps without a port
	hostPort string
	service  *Service // nil if Config has a URL
	bundle   []byte
}

// key identifies the targets that can share connections.
type key [sha256.Size]byte

// target checks a configuration and returns its target.
func (c Config) target(timeout time.Duration) (*target, error) {
	t := &target{bundle: c.CABundle}
	if err := CheckBundle(c.CABundle); err != nil {
		return nil, fmt.Errorf("webhook: the CA bundle of %s: %w", c.name(), err)
	}
	u := &url.URL{Scheme: "https"}
	switch {
	case (c.URL == "") == (c.Service == nil):
		return nil, errors.New("webhook: the configuration must have either a URL or a service")
	case c.Service != nil:
		if c.Service.Name == "" || c.Service.Namespace == "" {
			return nil, fmt.Errorf("webhook: %s: a service needs a name and a namespace", c.name())
		}
		s := *c.Service
		t.service = &s
		t.host, t.hostPort = s.hostPort(), s.hostPort()
		u.Host, u.Path = t.host, s.Path
	default:
		parsed, err := url.Parse(c.URL)
		if err != nil {
			return nil, fmt.Errorf("webhook: the URL does not parse: %w", err)
		}
		if parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil {
			return nil, fmt.Errorf("webhook: the URL %q: want https://host[:port][/path]", parsed.Redacted())
		}
		t.host, t.hostPort = parsed.Host, parsed.Host
		if parsed.Port() == "" {
			t.hostPort = net.JoinHostPort(parsed.Hostname(), "443")
		}
		u.Host, u.Path = parsed.Host, parsed.Path
	}
	u.Path = path.Join("/", u.Path)
	u.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	t.url = u.String()
	return t, nil
}

// name returns the name of the webhook for error texts.
func (c Config) name() string {
	if c.Service != nil {
		return "the service " + c.Service.hostPort()
	}
	return fmt.Sprintf("%q", c.URL)
}

func (t *target) key() key {
	h := sha256.New()
	write := func(part []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = h.Write(part)
	}
	write([]byte(t.host))
	if t.service != nil {
		write([]byte(t.service.Namespace)) // host names may contain dots
		write([]byte(t.service.Name))
	}
	write(t.bundle)
	return key(h.Sum(nil))
}

// local reports whether the target is on this machine.
func (t *target) local() bool {
	if t.service != nil {
		return false
	}
	host, _, err := net.SplitHostPort(t.hostPort)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// roots returns the authorities to trust; nil means those of the system.
func (t *target) roots() *x509.CertPool {
	if len(t.bundle) == 0 {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(t.bundle)
	return pool
}

// CheckBundle returns an error, with the text of kube-apiserver, if a CABundle cannot be used. An empty bundle is valid, and so
// is a bundle with at least one certificate. bundle is not kept.
func CheckBundle(bundle []byte) error {
	if len(bundle) == 0 || x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return nil
	}
	return fmt.Errorf("unable to load root certificates: %w", bundleError(bundle))
}

// bundleError returns the error for a bundle without a certificate.
func bundleError(bundle []byte) error {
	for rest := bundle; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errors.New("unable to parse bytes as PEM block")
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("failed to parse certificate: %w", err)
		}
	}
	return errors.New("no valid certificate authority data seen")
}
