package program

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// Options are the flags that all servers have.
type Options struct {
	Addr      string // host:port
	Cert, Key string // files, both or none
	Token     string // "" means none
}

// Identities are flags for further ways in which a client shows who it is. The zero Identities has none.
type Identities struct {
	ClientCA string // file with the authority of clients' certificates; "" means none
	ProxyCA  string // file with the authority of the certificates of authenticating proxies; "" means none
	Webhook  string // kubeconfig of a webhook that reviews tokens; "" means none
}

// Flags returns the flags of a program, which set o.
func (o *Options) Flags(program string) *flag.FlagSet {
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:6443", "`address` to serve on; port 0 picks a free one")
	flags.StringVar(&o.Cert, "cert", "", "`file` with the serving certificate, in PEM; without -cert and -key a pair is made")
	flags.StringVar(&o.Key, "key", "", "`file` with the key of the certificate, in PEM")
	flags.StringVar(&o.Token, "token", "", "bearer `token` of the user bench; without it nobody is let in")
	return flags
}

// Add adds the flags that set i.
func (i *Identities) Add(flags *flag.FlagSet) {
	flags.StringVar(&i.ClientCA, "client-ca", "", "`file` with the authority of clients' certificates, in PEM")
	flags.StringVar(&i.ProxyCA, "proxy-ca", "", "`file` with the authority of authenticating proxies, in PEM; the headers are X-Remote-User and its kin")
	flags.StringVar(&i.Webhook, "webhook", "", "kubeconfig `file` of a webhook that reviews the tokens that are not -token")
}

// KeyPair returns the serving certificate and its key, in PEM: those of the files, or a new self-signed pair.
func (o *Options) KeyPair() (cert, key []byte, err error) {
	if (o.Cert == "") != (o.Key == "") {
		return nil, nil, Usagef("-cert and -key belong together: give both or none")
	}
	if o.Cert == "" {
		return selfSigned(o.Addr, time.Now())
	}
	if cert, err = os.ReadFile(o.Cert); err != nil {
		return nil, nil, fmt.Errorf("-cert: %w", err)
	}
	if key, err = os.ReadFile(o.Key); err != nil {
		return nil, nil, fmt.Errorf("-key: %w", err)
	}
	return cert, key, nil
}

// selfSigned returns a pair for the host of addr and for this machine.
func selfSigned(addr string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "bench"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true, // so that clients can trust it
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

// Listen listens on Addr. It returns the URL for programs on this machine.
func (o *Options) Listen(ctx context.Context) (net.Listener, string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, "", fmt.Errorf("-addr: %w", err)
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return nil, "", errors.Join(err, ln.Close())
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return ln, "https://" + net.JoinHostPort(host, port), nil
}
