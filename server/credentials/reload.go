package credentials

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// FromFiles returns a tls.Config.GetCertificate, such as server.Serving.Certificate is, of a certificate with its chain and a
// private key in two files in PEM. The files are read again for a new connection when one of them has changed: whatever renews
// them need not restart the server. While they do not fit together, which they do not between the two writes of who replaces them,
// the certificate is the one from before, and failed, which may be nil, is called with the reason, once for each change. The error
// of FromFiles is that of tls.LoadX509KeyPair. Any number of goroutines may call what is returned.
func FromFiles(certFile, keyFile string, failed func(error)) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	f := &filePair{certFile: certFile, keyFile: keyFile, failed: failed}
	at, _ := f.stamp() // its error is one of reading too
	if err := f.read(at); err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.get(), nil }, nil
}

// filePair is a certificate and a key in two files.
type filePair struct {
	certFile, keyFile string
	failed            func(error)

	mu   sync.Mutex // guards all below
	at   stamps     // of what was read last, or tried to
	pair *tls.Certificate
}

// stamps tell whether the two files have changed.
type stamps [2]struct {
	written time.Time
	size    int64
}

func (f *filePair) stamp() (s stamps, err error) {
	for i, path := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return s, err
		}
		s[i].written, s[i].size = info.ModTime(), info.Size()
	}
	return s, nil
}

// read reads the files, which were written at a time. The caller holds mu, or f is its own.
func (f *filePair) read(at stamps) error {
	f.at = at
	pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return err
	}
	f.pair = &pair
	return nil
}

func (f *filePair) get() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.stamp()
	if at == f.at {
		return f.pair
	}
	if err != nil {
		f.at = at // one of them is missing
	} else {
		err = f.read(at)
	}
	if err != nil && f.failed != nil {
		f.failed(fmt.Errorf("credentials: %s and %s: %w", f.certFile, f.keyFile, err))
	}
	return f.pair
}
