package credentials

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	year = 365 * 24 * time.Hour

	authorityLife = 10 * year
	leafLife      = year
	// renewal is the time before its end at which a certificate is replaced.
	renewal = 30 * 24 * time.Hour
	// skew is the time by which the clock of another machine may be behind this one.
	skew = time.Hour
)

// pair is a certificate and its key. Both are in one file, so that they always match.
type pair struct {
	cert            *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

func (p *pair) file() []byte { return append(bytes.Clone(p.certPEM), p.keyPEM...) }

// alive reports whether the certificate is valid now and until the time of its renewal.
func (p *pair) alive(now time.Time) bool {
	return now.Before(p.cert.NotAfter.Add(-renewal)) && !now.Before(p.cert.NotBefore)
}

// issue makes a key and a certificate, which parent signs. A nil parent makes a self-signed certificate.
func issue(template *x509.Certificate, parent *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	issuer, signer := template, crypto.Signer(key)
	if parent != nil {
		issuer, signer = parent.cert, parent.key
		if template.NotAfter.After(issuer.NotAfter) {
			template.NotAfter = issuer.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return parsePair(append(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...,
	))
}

// readPair reads a file that has the content of pair.file.
func readPair(path string) (*pair, error) {
	content, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	return parsePair(content)
}

func parsePair(content []byte) (*pair, error) {
	certBlock, rest := pem.Decode(content)
	keyBlock, rest := pem.Decode(rest)
	if certBlock == nil || certBlock.Type != "CERTIFICATE" || keyBlock == nil || keyBlock.Type != "PRIVATE KEY" ||
		len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it does not hold one certificate and one private key in PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("the private key is not that of the certificate")
	}
	return &pair{cert: cert, key: key, certPEM: pem.EncodeToMemory(certBlock), keyPEM: pem.EncodeToMemory(keyBlock)}, nil
}

// authority issues certificates.
type authority struct{ *pair }

// openAuthority reads the authority, or makes one if there is none or it expires soon.
func openAuthority(path string, now time.Time) (authority, error) {
	p, err := readPair(path)
	if err == nil && !p.cert.IsCA {
		err = errors.New("its certificate is not an authority's")
	}
	switch {
	case err == nil && !now.Before(p.cert.NotAfter.Add(-renewal)):
		return replaceAuthority(path, now)
	case err == nil:
		return authority{p}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return authority{}, fmt.Errorf("credentials: %s cannot be used: %w: restore it, or delete the directory %s to "+
			"have new credentials made (kubeconfigs handed out before will not work with them)", path, err, filepath.Dir(path))
	}
	if p, err = newAuthority(now); err == nil {
		err = createFile(path, p.file())
	}
	if errors.Is(err, fs.ErrExist) { // another process has made it
		return openAuthority(path, now)
	}
	if err != nil {
		return authority{}, fmt.Errorf("credentials: %w", err)
	}
	return authority{p}, nil
}

func replaceAuthority(path string, now time.Time) (authority, error) {
	p, err := newAuthority(now)
	if err == nil {
		err = replaceFile(path, p.file())
	}
	if err != nil {
		return authority{}, fmt.Errorf("credentials: %w", err)
	}
	return authority{p}, nil
}

func newAuthority(now time.Time) (*pair, error) {
	return issue(&x509.Certificate{
		// The name distinguishes authorities, for finding out why one is not trusted.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("keelson-ca@%d", now.Unix())},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil)
}

func (ca authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// profile has the required properties of a certificate.
type profile struct {
	subject pkix.Name
	hosts   []string // DNS names and IP addresses
	usage   x509.ExtKeyUsage
}

func servingProfile(hosts []string) profile {
	return profile{subject: pkix.Name{CommonName: "keelson-server"}, hosts: hosts, usage: x509.ExtKeyUsageServerAuth}
}

func clientProfile(user string, groups []string) profile {
	return profile{subject: pkix.Name{CommonName: user, Organization: groups}, usage: x509.ExtKeyUsageClientAuth}
}

// open reads a certificate, or issues a new one if the file has no acceptable certificate.
func (ca authority) open(path string, want profile, now time.Time) (*pair, error) {
	p, err := readPair(path)
	var refused *os.PathError
	if errors.As(err, &refused) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("credentials: %w", err) // the file cannot be read, and may have a valid certificate
	}
	if err == nil && ca.accepts(p, want, now) {
		return p, nil
	}
	if p, err = issue(want.template(now), ca.pair); err == nil {
		err = replaceFile(path, p.file())
	}
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return p, nil
}

func (ca authority) accepts(p *pair, want profile, now time.Time) bool {
	if !p.alive(now) || p.cert.Subject.CommonName != want.subject.CommonName ||
		!slices.Equal(slices.Sorted(slices.Values(p.cert.Subject.Organization)), slices.Sorted(slices.Values(want.subject.Organization))) {
		return false
	}
	for _, host := range want.hosts {
		if p.cert.VerifyHostname(host) != nil {
			return false
		}
	}
	_, err := p.cert.Verify(x509.VerifyOptions{Roots: ca.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{want.usage}})
	return err == nil
}

func (want profile) template(now time.Time) *x509.Certificate {
	c := &x509.Certificate{
		Subject:               want.subject,
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(leafLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{want.usage},
		BasicConstraintsValid: true,
	}
	for _, host := range want.hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return c
}
