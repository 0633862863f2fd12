package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// check reads the file. It does not change a file that it refuses. If the file was not closed, check reads all pages to find
// the free ones. journaled reports whether the file has a journal.
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
			if err := f.walk(tx, &pageWalk{report: damaged, shallow: true}); err != nil {
				return err
			}
			s, err := checkContent(tx)
			journaled = err == nil && tx.Bucket([]byte(journalBucket)) != nil
			if err != nil || s.clean != 0 {
				return err
			}
			return f.listFree(tx, s)
		})
	})
	return journaled, errors.Join(err, f.Close())
}

// checkContent returns an error if the file is not one of this package or of a version that is supported.
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

// checkVersion checks that the buckets of the file match its version.
func (t txn) checkVersion(version uint64) error {
	journaled := t.tx.Bucket([]byte(journalBucket)) != nil
	switch has := t.expiry() != nil; {
	case journaled != (version == journalVersion):
		return fmt.Errorf("%w: it has format version %d, and that it has a journal is %t", errDamaged, version, journaled)
	case journaled: // the expiry bucket may exist
	case has && version != expiringVersion:
		return fmt.Errorf("%w: it has a bucket %q and format version %d", errDamaged, expiryBucket, version)
	case !has && version == expiringVersion:
		return fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	_, err := t.clock()
	return err
}

// damaged is a pageWalk's report function that ends the walk.
func damaged(err error) error { return fmt.Errorf("%w: %w", errDamaged, err) }
