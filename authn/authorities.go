package authn

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Authorities reads the certificates of authorities in PEM, for X509 and ProxyOptions.Roots. Blocks of other types, such as keys, and
// text between blocks are skipped. A certificate that cannot be read is an error, and so is content without a certificate. Errors
// contain no part of the content.
//
// A program that follows a file, and keeps the former authorities if it cannot be read, therefore trusts them also when the file has
// been emptied or deleted. To trust nobody, X509 needs a nil pool.
func Authorities(content []byte) (*x509.CertPool, error) {
	pool, count, blocks := x509.NewCertPool(), 0, 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w: replace or remove it", count, err)
		}
		pool.AddCert(cert)
	}
	if begun := bytes.Count(content, []byte("-----BEGIN ")); begun != blocks { // pem.Decode skips what it cannot read
		return nil, fmt.Errorf("%d of its %d blocks in PEM are damaged: replace or remove them", begun-blocks, begun)
	}
	if count == 0 {
		return nil, errors.New("it has no certificate in PEM")
	}
	return pool, nil
}
