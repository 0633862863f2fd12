package credentials

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// makeDir makes the directory. If it exists and others can enter it, makeDir removes their permissions.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return syncDir(filepath.Dir(dir))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: move it away, or keep the credentials elsewhere", dir)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// readPrivate reads a file. If others can read it, readPrivate removes their permissions.
func readPrivate(path string) ([]byte, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return content, os.Chmod(path, 0o600)
	}
	return content, nil
}

// createFile writes a new file as a whole. The error is fs.ErrExist if the file exists.
func createFile(path string, content []byte) error {
	return writeFile(path, content, func(tmp string) error {
		err := os.Link(tmp, path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return errors.Join(err, os.Remove(tmp))
		}
		return os.Rename(tmp, path) // the file system has no links
	})
}

// replaceFile writes a file as a whole: readers see the old content or the new content.
func replaceFile(path string, content []byte) error {
	return writeFile(path, content, func(tmp string) error { return os.Rename(tmp, path) })
}

func writeFile(path string, content []byte, place func(tmp string) error) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := place(f.Name()); err != nil {
		if rest := os.Remove(f.Name()); rest != nil && !errors.Is(rest, fs.ErrNotExist) {
			err = errors.Join(err, rest)
		}
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name in a directory durable. Windows has no such operation, and does not need it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A token that this package makes is at least as hard to guess as a key of 128 bits. The form is that of RFC 6750.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]{22,}=*$`)

// openToken reads the token, or makes one if there is none.
func openToken(path string) (string, error) {
	content, err := readPrivate(path)
	switch {
	case err == nil:
		token := strings.TrimSpace(string(content))
		if !tokenForm.MatchString(token) {
			return "", fmt.Errorf("credentials: %s does not hold a bearer token: restore it, or delete it to have a new "+
				"one made", path)
		}
		return token, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("credentials: %w", err)
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(secret)
	err = createFile(path, []byte(token+"\n"))
	if errors.Is(err, fs.ErrExist) { // another process has made it
		return openToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	return token, nil
}
