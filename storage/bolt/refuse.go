package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/keelson-dev/keelson/storage"
	bbolterrors "go.etcd.io/bbolt/errors"
)

var (
	errLocked     = errors.New("it is open already, in another process or in this one")
	errForeign    = errors.New("it is not a storage file of this library (another program's data?)")
	errDirectory  = errors.New("it is a directory: name a file")
	errIrregular  = errors.New("it is not a regular file: use another one")
	errDangling   = errors.New("it is a symbolic link to a file that does not exist: remove the link, or create the file")
	errTruncated  = errors.New("the file is truncated")
	errEmpty      = errors.New("the file is empty: Open makes a new store of it")
	errUnfinished = errors.New("a copy into it was interrupted, and its content is incomplete")
	errReplaced   = errors.New("another process has put another file in its place: try again")
)

// identify replaces an error of bbolt about the file at path by one of this package.
func identify(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return errLocked
	case errors.Is(err, errTruncated):
		return err
	case cutOff(path):
		return fmt.Errorf("%w (%w)", errTruncated, err)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w (%w)", errForeign, err)
	}
	return err
}

// explain adds advice to errors of the system, of bbolt and of this package.
func explain(path string, err error) error {
	err = identify(path, err)
	switch {
	case errors.Is(err, errLocked):
		return fmt.Errorf("%w: stop the other server, or use another file", err)
	case errors.Is(err, errForeign):
		return fmt.Errorf("%w: use another file", err)
	case errors.Is(err, errUnfinished):
		return fmt.Errorf("%w: delete the file and copy again", err)
	case errors.Is(err, errTruncated), errors.Is(err, errDamaged), errors.Is(err, bbolterrors.ErrChecksum):
		return fmt.Errorf("%w: restore it from a backup", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the file and its directory %s must be readable and writable", err, filepath.Dir(path))
	case noSpace(err):
		return fmt.Errorf("%w: %w: free some space, or use another file", storage.ErrNoSpace, err)
	}
	return err
}

// cutOff reports whether a file begins like a bbolt file and is shorter than its meta page says.
func cutOff(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	m, err := readMeta(f, 0)
	return err == nil && info.Size() < int64(m.pages)*m.pageSize
}

// noSpace reports whether an error means that there is no room. bbolt wraps some errors as text only.
func noSpace(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT, bbolterrors.ErrMaxSizeReached} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// fault returns the error for a failed operation on the file.
func (b *Backend) fault(op string, err error) error {
	if noSpace(err) {
		err = fmt.Errorf("%w: %v", storage.ErrNoSpace, err)
	}
	return &storage.FileError{Op: op, Path: b.path, Err: err}
}

// guard runs fn and returns a panic as an error. bbolt panics on damaged pages, and a page that the disk cannot read causes a
// memory fault.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return fn()
}
