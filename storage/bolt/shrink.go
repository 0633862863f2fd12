package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

const (
	// minSpare is the number of bytes that must be free before a file is copied.
	minSpare = 1 << 20
	// copyBytes is about the number of bytes that one transaction of a copy writes.
	copyBytes = 4 << 20
)

// compactCopy returns the name of the copy of the file at a path without symbolic links.
func compactCopy(path string) string { return path + ".keelson-shrink" }

// shrink replaces the file at path by a compact copy, if more than half of the file is free. The file stays locked until it
// has been replaced, the copy is complete and flushed before that, and a rename is atomic. So whenever the process is killed,
// one of the two exists and is complete. Only a file that cannot be opened is an error; onShrink is called with other errors.
func shrink(path string, onShrink func(before, after int64, err error)) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	old, err := openInPlace(path, openOptions{})
	if err != nil {
		return err
	}
	before, after, tried, err := old.shrink(path)
	closed := old.Close()
	if onShrink != nil && tried {
		onShrink(before, after, err)
	}
	return closed
}

func (f *dbFile) shrink(path string) (before, after int64, tried bool, err error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, 0, true, err
	}
	before = info.Size()
	used := int64(0)
	_ = f.View(func(tx *bbolt.Tx) error {
		used = tx.Size() - int64(f.Stats().FreePageN)*int64(f.Info().PageSize)
		return nil
	})
	if spare := before - used; spare <= minSpare || spare <= before/2 {
		return before, before, false, nil
	}
	tmp := compactCopy(path)
	_ = os.Remove(tmp) // left by a killed process: this process has the file locked that was copied
	// If a new name cannot be made durable, nothing is renamed.
	if err = syncDir(filepath.Dir(path)); err == nil {
		after, err = f.copyTo(tmp, info)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		if noSpace(err) {
			err = fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
		}
		return before, before, true, fmt.Errorf("bolt: shrink %s: %w: the file stays as it was", path, err)
	}
	return before, after, true, nil // Open makes the name durable before anything is committed
}

// copyTo makes a compact copy with the same content.
func (f *dbFile) copyTo(path string, info os.FileInfo) (size int64, err error) {
	to, err := openDB(path, openOptions{})
	if err != nil {
		return 0, err
	}
	err = errors.Join(to.file.Chmod(info.Mode().Perm()), sameOwner(to.file, info))
	if err == nil {
		to.NoSync = true
		err = guard(func() error { return bbolt.Compact(to.DB, f.DB, copyBytes) })
	}
	if err == nil {
		err = to.sealAsIs()
	}
	if after, stat := to.file.Stat(); stat == nil {
		size = after.Size()
	}
	return size, errors.Join(err, to.Close())
}

func (f *dbFile) sealAsIs() error {
	var s state
	err := f.View(func(tx *bbolt.Tx) (err error) {
		s, err = checkContent(tx)
		return err
	})
	if err != nil {
		return err
	}
	return f.seal(s.recovered())
}

// seal makes everything that was written durable and marks the file as cleanly closed, in state s.
func (f *dbFile) seal(s state) error {
	s.clean, s.reserved = 1, s.revision
	f.NoSync, f.NoFreelistSync = false, false
	return guard(func() error {
		return f.Update(func(tx *bbolt.Tx) error {
			t, err := newTxn(tx)
			if err != nil {
				return err
			}
			return t.setState(s)
		})
	})
}
