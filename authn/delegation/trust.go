package delegation

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/authn"
)

// The ConfigMap in which a cluster says whom it trusts.
const (
	Namespace = "kube-system"
	Name      = "extension-apiserver-authentication"
)

// Trust is whom a cluster trusts. The slices must not be changed.
type Trust struct {
	ClientCA []byte // the authorities of client certificates, in PEM; empty: none
	ProxyCA  []byte // the authorities of the certificates of proxies, in PEM; empty: none
	// Names are the common names of the proxies. If there are none, each certificate of ProxyCA is a proxy's.
	Names []string
	// User, UID, Group and Extra are the headers of proxies: see authn.ProxyOptions.
	User, UID, Group, Extra []string
}

// The keys of the ConfigMap.
const (
	clientCAKey = "client-ca-file"
	proxyCAKey  = "requestheader-client-ca-file"
	namesKey    = "requestheader-allowed-names"
	userKey     = "requestheader-username-headers"
	uidKey      = "requestheader-uid-headers"
	groupKey    = "requestheader-group-headers"
	extraKey    = "requestheader-extra-headers-prefix"
)

// after returns the state after s for the data of the ConfigMap. Certificates that are known already are the same values as in s, so
// that those that have verified are not verified again. Each part is taken whole or not at all: the error says which parts are damaged,
// and they are as in s.
func (s *state) after(data map[string]string) (*state, error) {
	next := &state{trust: Trust{ClientCA: []byte(data[clientCAKey])}}
	var damaged []error
	if next.clients = s.clients; !bytes.Equal(next.trust.ClientCA, s.trust.ClientCA) {
		var err error
		if next.clients, err = pool(data, clientCAKey); err != nil {
			damaged = append(damaged, err)
			next.clients, next.trust.ClientCA = s.clients, s.trust.ClientCA
		}
	}
	if err := next.trustProxies(data, s); err != nil {
		damaged = append(damaged, err)
		next.proxy, next.trust = s.proxy, s.trust.withClientCA(next.trust.ClientCA)
	}
	err := errors.Join(damaged...)
	if next.read = s.read || err == nil; !next.read {
		next.err = err
	}
	return next, err
}

// trustProxies sets the proxies of s, which were those of before.
func (s *state) trustProxies(data map[string]string, before *state) error {
	t := &s.trust
	for _, list := range []struct {
		key string
		to  *[]string
	}{{namesKey, &t.Names}, {userKey, &t.User}, {uidKey, &t.UID}, {groupKey, &t.Group}, {extraKey, &t.Extra}} {
		text := data[list.key]
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), list.to); err != nil {
			return fmt.Errorf("the key %s is no list of strings in JSON: %w", list.key, err)
		}
	}
	roots, err := pool(data, proxyCAKey)
	if err != nil {
		return err
	}
	if roots == nil || len(t.User) == 0 {
		*t = Trust{ClientCA: t.ClientCA} // the cluster is no proxy
		return nil
	}
	if t.ProxyCA = []byte(data[proxyCAKey]); t.sameProxies(before.trust) {
		s.proxy = before.proxy
		return nil
	}
	s.proxy, err = authn.AuthenticatingProxy(authn.ProxyOptions{
		Roots: func() *x509.CertPool { return roots }, Names: t.Names, User: t.User, UID: t.UID, Group: t.Group, Extra: t.Extra,
	})
	return err
}

func (t Trust) withClientCA(ca []byte) Trust {
	t.ClientCA = ca
	return t
}

func (t Trust) sameProxies(as Trust) bool {
	return bytes.Equal(t.ProxyCA, as.ProxyCA) && slices.Equal(t.Names, as.Names) && slices.Equal(t.User, as.User) &&
		slices.Equal(t.UID, as.UID) && slices.Equal(t.Group, as.Group) && slices.Equal(t.Extra, as.Extra)
}

// pool returns the certificates of a key, or nil if there is no such key.
func pool(data map[string]string, key string) (*x509.CertPool, error) {
	text := []byte(data[key])
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	roots, err := authn.Authorities(text)
	if err != nil {
		return nil, fmt.Errorf("the key %s: %w", key, err)
	}
	return roots, nil
}
