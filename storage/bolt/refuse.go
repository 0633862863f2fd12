package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

var (
	errLocked     = errors.New("another process has it open")
	errForeign    = errors.New("it is not a storage file of this library (another program's data?)")
	errDirectory  = errors.New("it is a directory: name a file")
	errIrregular  = errors.New("it is not a regular file: use another one")
	errDangling   = errors.New("it is a symbolic link to a file that does not exist: remove the link, or create the file")
	errTruncated  = errors.New("the file is truncated")
	errEmpty      = errors.New("the file is empty: Open makes a new store of it")
	errUnfinished = errors.New("a copy into it was interrupted, and its content is incomplete")
	errReplaced   = errors.New("another process has put another file in its place: try again")
)

// identify says in our words what bbolt has said of the file at path.
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

// explain gives the system's, bbolt's and our errors a cure.
func explain(path string, err error) error {
	err = identify(path, err)
	switch {
	case errors.Is(err, errLocked):
		return fmt.Errorf("%w: stop that one, or use another file", err)
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

// cutOff says that a file begins as a bbolt file does and is shorter than it says.
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

// check reads the file without changing it. A file that was not closed is read as a whole, because bbolt will do
// so next, in a goroutine whose panics nobody could catch. journaled says that the file has a journal.
func check(path string) (journaled bool, err error) {
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return false, err
	}
	err = guard(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			if err := f.whole(tx); err != nil {
				return err
			}
			if err := f.walk(tx, pageWalk{report: damaged, shallow: true}); err != nil {
				return err
			}
			s, err := checkContent(tx)
			journaled = err == nil && tx.Bucket([]byte(journalBucket)) != nil
			if err != nil || s.clean != 0 {
				return err
			}
			if err := f.walk(tx, pageWalk{report: damaged}); err != nil {
				return err
			}
			return readAll(tx)
		})
	})
	return journaled, errors.Join(err, f.Close())
}

// checkContent makes sure that the file is one of this package and of a version it knows.
func checkContent(tx *bbolt.Tx) (state, error) {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil || string(meta.Get([]byte(formatKey))) != formatName {
		return state{}, errForeign
	}
	version := meta.Get([]byte(versionKey))
	if len(version) != 8 {
		return state{}, fmt.Errorf("%w: no format version", errDamaged)
	}
	n := binary.BigEndian.Uint64(version)
	if n < formatVersion || n > journalVersion {
		return state{}, fmt.Errorf("it has format version %d, and this release knows versions %d to %d only: use a release "+
			"that knows it", n, formatVersion, journalVersion)
	}
	if meta.Get([]byte(unfinishedKey)) != nil {
		return state{}, errUnfinished
	}
	t, err := newTxn(tx)
	if err == nil {
		err = t.checkVersion(n)
	}
	if err != nil {
		return state{}, err
	}
	return t.state()
}

// damaged is a pageWalk's report that ends it.
func damaged(err error) error { return fmt.Errorf("%w: %w", errDamaged, err) }

// readAll visits everything in the file, and so makes a damaged page known.
func readAll(tx *bbolt.Tx) error {
	t, err := newTxn(tx)
	if err != nil {
		return err
	}
	err = t.index.ForEach(func(k, v []byte) error {
		_, _, err := splitIndexKey(k)
		if err == nil && len(v) != 1 {
			err = fmt.Errorf("%w: version %q", errDamaged, k)
		}
		return err
	})
	if err == nil {
		err = t.readExpiry()
	}
	if err != nil {
		return err
	}
	return t.log.ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("%w: revision %q", errDamaged, k)
		}
		revision := int64(binary.BigEndian.Uint64(k))
		e, err := decodeEntry(revision, v)
		if err == nil && e.split {
			_, err = t.value(revision, e)
		}
		return err
	})
}
