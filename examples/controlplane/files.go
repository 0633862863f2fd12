package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// files is what the certificates and keys of the flags and of --cert-dir are for.
type files struct {
	// admin is the administrator, nil if flags give the users.
	admin *credentials.Bundle
	// credentials and kubeconfig are those of server.Options.
	credentials, kubeconfig string
	// serving is server.Serving.Certificate, nil for a certificate of credentials.
	serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// openFiles reads the files, and makes those of --cert-dir that are missing and needed.
func openFiles(o *options.Options, log *zap.Logger) (*files, error) {
	given, err := givenCertificate(o, log)
	if err != nil {
		return nil, err
	}
	f := &files{}
	if given != nil {
		f.serving = given
		if givesUsers(o) {
			return f, nil
		}
	}
	f.credentials = o.CertDir
	own, err := credentials.Open(credentials.Options{Dir: o.CertDir, Host: o.BindAddress.String()})
	if err != nil {
		return nil, fmt.Errorf("--cert-dir: %w", err)
	}
	if given == nil {
		if err := writeServing(o.CertDir, own); err != nil {
			return nil, fmt.Errorf("--cert-dir: %w", err)
		}
	}
	if !givesUsers(o) {
		f.admin = own
		if given == nil { // which clients of the kubeconfig trust
			f.kubeconfig = filepath.Join(o.CertDir, "admin.kubeconfig")
		}
	}
	return f, nil
}

// certificateFiles are where kube-apiserver has its serving certificate.
func certificateFiles(dir string) (cert, key string) {
	return filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
}

// givenCertificate shows the serving certificate of the files that the flags name, or of those in --cert-dir, which are read
// again when they change. It is nil if there is none, or if this program has made it.
func givenCertificate(o *options.Options, log *zap.Logger) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	failed := func(err error) {
		log.Error("the serving certificate cannot be read again; the one from before is served", zap.Error(err))
	}
	if o.TLSCertFile != "" {
		show, err := credentials.FromFiles(o.TLSCertFile, o.TLSPrivateKeyFile, failed)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file %s and --tls-private-key-file %s: %w", o.TLSCertFile, o.TLSPrivateKeyFile, err)
		}
		return show, nil
	}
	cert, key := certificateFiles(o.CertDir)
	if made(o.CertDir, cert) || missing(cert) && missing(key) {
		return nil, nil
	}
	show, err := credentials.FromFiles(cert, key, failed)
	if err != nil {
		return nil, fmt.Errorf("--cert-dir: %s and %s: %w", cert, key, err)
	}
	return show, nil
}

// readPair reads the certificate and the private key of the files that two flags name.
func readPair(certFlag, cert, keyFlag, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s %s and %s %s: %w", certFlag, cert, keyFlag, key, err)
	}
	return &pair, nil
}

// readAuthorities reads the certificates of the file that a flag names. Other blocks of PEM, such as keys, are skipped.
func readAuthorities(flag, path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool, count := x509.NewCertPool(), 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d of %s: %w: replace or remove it", flag, count, path, err)
		}
		pool.AddCert(cert)
	}
	if count == 0 {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", flag, path)
	}
	return pool, nil
}

// made reports whether this program has written a certificate file: it ends with the authority of --cert-dir.
func made(dir, cert string) bool {
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return false
	}
	content, err := os.ReadFile(cert)
	block, _ := pem.Decode(authority)
	return err == nil && block != nil && bytes.HasSuffix(content, pem.EncodeToMemory(block))
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// writeServing writes the serving certificate of the credentials, with that of its authority, where kube-apiserver writes its
// own. The certificate that is served is that of the credentials. The certificate comes first: without it the key would be taken
// for one that was given.
func writeServing(dir string, own *credentials.Bundle) error {
	key, err := x509.MarshalPKCS8PrivateKey(own.Serving.PrivateKey)
	if err != nil {
		return err
	}
	cert := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Serving.Certificate[0]}), own.CAPEM...)
	certFile, keyFile := certificateFiles(dir)
	if err := writeWhole(certFile, cert, 0o644); err != nil {
		return err
	}
	return writeWhole(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)
}

// writeWhole replaces a file, which has the old content or the new at any time.
func writeWhole(path string, content []byte, mode fs.FileMode) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // its mode could be another
		return err
	}
	if err := os.WriteFile(next, content, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}
