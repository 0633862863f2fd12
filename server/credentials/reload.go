package credentials

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// FromFiles returns a function for tls.Config.GetCertificate, or server.Serving.Certificate, with a certificate, its chain and a
// private key from two files in PEM. When one of the files has changed, both are read again for the next connection. So another
// program can renew them without a restart of the server.
//
// The two files may not match for a time, such as between the two writes of a program that replaces them. Then the function
// returns the previous certificate, and calls failed with the reason, once for each change; failed may be nil. The error of
// FromFiles is that of tls.LoadX509KeyPair. The function may be called concurrently.
func FromFiles(certFile, keyFile string, failed func(error)) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	f := &filePair{certFile: certFile, keyFile: keyFile, failed: failed}
	at, _ := f.stamp() // reading returns the error, too
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
	at   stamps     // of the last attempt to read
	pair *tls.Certificate
}

// stamps are the times and sizes of the two files, which show whether they have changed.
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

// read reads the files. at are their stamps. The caller holds mu, unless f is not shared yet.
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
		f.at = at // one of the files is missing
	} else {
		err = f.read(at)
	}
	if err != nil && f.failed != nil {
		f.failed(fmt.Errorf("credentials: %s and %s: %w", f.certFile, f.keyFile, err))
	}
	return f.pair
}
