package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SigningKeyFile returns the path of the file in a directory with the key that signs the tokens of service accounts, and makes the
// directory and the key if they are missing. The file has private keys in PEM. The first one signs, and all of them verify tokens; so an
// operator who puts a new key before the others rotates the key. The key that is made is an ECDSA key of the curve P-256.
func SigningKeyFile(dir string) (string, error) {
	path := filepath.Join(dir, "service-accounts.pem")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // others may read a directory of an operator
		return "", fmt.Errorf("credentials: %w", err)
	}
	if _, err := readPrivate(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return "", fmt.Errorf("credentials: %w", err)
		}
		return path, nil
	}
	text, err := NewSigningKey()
	if err == nil {
		err = createFile(path, text)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another process may have made it
		return "", fmt.Errorf("credentials: %w", err)
	}
	return path, nil
}

// NewSigningKey returns a new key for the tokens of service accounts, in PEM.
func NewSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
