package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// oidUID is the attribute of a certificate's subject that has the UID of the user,
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates.
var oidUID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// X509 authenticates requests by the client certificate of the TLS connection. The common name is the name of the user, the
// organizations are the groups, and the attribute 1.3.6.1.4.1.57683.2 is the UID. The certificate must be valid for client
// authentication with the pool that roots returns. roots is called for each request. If the pool is nil, there is no opinion; the
// roots of the system are never used. The result is an error if the certificate does not verify. It is no opinion if the request
// has no certificate, or if the certificate has no common name.
//
// The tls.Config of the server should have ClientAuth tls.RequestClientCert. A stricter value closes the connection of a client
// with a wrong certificate, which gives the client less information than a 401 response.
func X509(roots func() *x509.CertPool) Authenticator {
	return Func(func(r *http.Request) (*Response, error) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			return nil, nil
		}
		pool := roots()
		if pool == nil {
			return nil, nil
		}
		leaf := r.TLS.PeerCertificates[0]
		if err := verify(leaf, r.TLS.PeerCertificates[1:], pool); err != nil {
			return nil, err
		}
		return certificateUser(leaf)
	})
}

func verify(leaf *x509.Certificate, rest []*x509.Certificate, roots *x509.CertPool) error {
	opts := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: time.Now()}
	if len(rest) > 0 {
		opts.Intermediates = x509.NewCertPool()
		for _, c := range rest {
			opts.Intermediates.AddCert(c)
		}
	}
	if _, err := leaf.Verify(opts); err != nil {
		return fmt.Errorf("verifying certificate %q (serial %s) failed: %w", leaf.Subject.CommonName, leaf.SerialNumber, err)
	}
	return nil
}

// certificateUser returns the user of a verified certificate.
func certificateUser(c *x509.Certificate) (*Response, error) {
	if c.Subject.CommonName == "" {
		return nil, nil
	}
	uid, err := certificateUID(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(c.Raw)
	return &Response{User: User{
		Name:   c.Subject.CommonName,
		UID:    uid,
		Groups: c.Subject.Organization,
		Extra:  map[string][]string{CredentialIDKey: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}}, nil
}

// certificateUID returns the UID in the subject of a certificate, or "" if it has none.
func certificateUID(c *x509.Certificate) (string, error) {
	uid, seen := "", false
	for _, name := range c.Subject.Names {
		if !name.Type.Equal(oidUID) {
			continue
		}
		if seen {
			return "", errors.New("the certificate's subject has more than one UID")
		}
		text, ok := name.Value.(string)
		if !ok || text == "" {
			return "", errors.New("the certificate's subject has a UID that is no text, or an empty one")
		}
		uid, seen = text, true
	}
	return uid, nil
}
