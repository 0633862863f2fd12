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

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// files are the results of reading the certificates and keys of the flags and of --cert-dir.
type files struct {
	// credentials and kubeconfig are the values for server.Options.
	credentials, kubeconfig string
	// serving is the value for server.Serving.Certificate; nil means a certificate of credentials.
	serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// authority is the certificate, in PEM, by which clients verify the server; nil if it is not known.
	authority []byte
}

// openFiles reads the files, and creates the missing files of --cert-dir that are needed.
func openFiles(o *options.Options, log *zap.Logger) (*files, error) {
	given, err := givenCertificate(o, log)
	if err != nil {
		return nil, err
	}
	f := &files{}
	if given != nil {
		f.serving = given
		if givesUsers(o.Authentication) {
			return f, nil
		}
	}
	f.credentials = o.CertDir
	own, err := credentials.Open(credentials.Options{Dir: o.CertDir, Host: o.BindAddress.String()})
	if err != nil {
		return nil, fmt.Errorf("--cert-dir: %w", err)
	}
	if given == nil {
		f.authority = own.CAPEM
		if err := writeServing(o.CertDir, own); err != nil {
			return nil, fmt.Errorf("--cert-dir: %w", err)
		}
	}
	if !givesUsers(o.Authentication) && given == nil { // the clients of the kubeconfig trust only the own certificate
		f.kubeconfig = filepath.Join(o.CertDir, "admin.kubeconfig")
	}
	return f, nil
}

// certificateFiles returns the paths of kube-apiserver's serving certificate and key.
func certificateFiles(dir string) (cert, key string) {
	return filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
}

// givenCertificate returns a function for the serving certificate in the files of the flags or in --cert-dir. The files are read
// again when they change. The result is nil if there is no certificate, or if this program has created it.
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

// readAuthorities reads the certificates of the file that a flag names.
func readAuthorities(flag, path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool, err := authn.Authorities(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, path, err)
	}
	return pool, nil
}

// made reports whether this program has created a certificate file: then it ends with the authority of --cert-dir.
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

// writeServing writes the serving certificate of the credentials, with that of its authority, to the paths of kube-apiserver. The
// server itself uses the credentials, not these files. The certificate is written first: a key without it would look like one
// that the operator provided.
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

// writeWhole replaces a file atomically.
func writeWhole(path string, content []byte, mode fs.FileMode) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // an old file could have another mode
		return err
	}
	if err := os.WriteFile(next, content, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}
