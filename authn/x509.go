package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"net/http"
)

// oidUID is the attribute of a certificate's subject that has the UID of the user,
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates.
var oidUID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// X509 authenticates requests by the client certificate of the TLS connection. The common name is the name of the user, the
// organizations are the groups, and the attribute 1.3.6.1.4.1.57683.2 is the UID. The certificate must be valid for client
// authentication with the pool that roots returns. roots is called for each request, and must not block. If the pool is nil, there
// is no opinion; the roots of the system are never used. The result is an error if the certificate does not verify. It is no
// opinion if the request has no certificate, or if the certificate has no common name.
//
// A certificate that has verified is not verified again for the requests of its connection, until it or one of its authorities
// expires or roots returns another pool. To remove an authority, make roots return another pool. A certificate that has not verified
// is refused without another verification for 10 seconds. A client that sends more than 8 certificates, or more than 2 intermediate ones
// with the same subject, is refused, because it could take long to verify them.
//
// The tls.Config of the server should have ClientAuth tls.RequestClientCert. A stricter value closes the connection of a client
// with a wrong certificate, which gives the client less information than a 401 response.
func X509(roots func() *x509.CertPool) Authenticator {
	certificates := newCertificates(roots, certificateUser)
	return Func(func(r *http.Request) (*Response, error) {
		resp, _, err := certificates.check(r)
		return resp, err
	})
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
