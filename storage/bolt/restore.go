package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/storage"
)

// defaultBump is the number in etcd's documentation about restoring a snapshot for Kubernetes. A busy server makes fewer
// commits between two backups.
const defaultBump = 1_000_000_000

var errExists = errors.New("it exists already: give the name of a new file, or move the old one away")

// RestoreOptions are the options of Restore. The zero RestoreOptions is valid.
type RestoreOptions struct {
	// RevisionBump is added to the snapshot's revision, and the restored store has no history. Clients may have seen states
	// after the snapshot, whose revisions must not be given to other states. 0 is 1,000,000,000. A negative number keeps the
	// revision and the history; use it only for a snapshot after which nothing was committed.
	RevisionBump int64
}

// Restore makes a new file at path from the snapshot in r. It writes to a temporary file, verifies all of it like Verify, and
// then renames it to path. An existing file is never replaced. After an error nothing is left behind. A process that is
// killed leaves path.keelson-restore-*, which may be deleted. Errors are: a fault of the snapshot (truncated, damaged, of
// another program, of a later format), an error of r, or ErrNoSpace.
func Restore(path string, r io.Reader, opts RestoreOptions) error {
	if err := restore(path, r, opts); err != nil {
		if noSpace(err) {
			err = fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
		}
		return fmt.Errorf("bolt: restore %s: %w", path, err)
	}
	return nil
}

func restore(path string, r io.Reader, opts RestoreOptions) error {
	if _, err := os.Lstat(path); err == nil {
		return errExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".keelson-restore-*")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: create the directory %s first", err, dir)
	case err != nil:
		return err
	}
	tmp := f.Name()
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err == nil {
		err = rebase(tmp, opts.RevisionBump)
	}
	if err == nil {
		err = place(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	return err
}

// rebase verifies the snapshot in a file and changes its revision.
func rebase(tmp string, bump int64) error {
	s, err := verifyFile(tmp)
	if err == nil && s.clean == 0 {
		if err = settle(tmp); err == nil { // a file that was not closed; the journal of a snapshot is empty
			s, err = verifyFile(tmp)
		}
	}
	if errors.Is(err, errEmpty) {
		err = errTruncated
	}
	if err != nil {
		err = identify(tmp, err)
		if errors.Is(err, errTruncated) {
			err = fmt.Errorf("%w: take it again", err)
		}
		return fmt.Errorf("the snapshot cannot be used: %w", err)
	}
	if bump == 0 {
		bump = defaultBump
	}
	if bump > 0 {
		if bump > maxRevision || s.revision > maxRevision-bump {
			return fmt.Errorf("revision %d + %d is too large: choose a smaller RevisionBump", s.revision, bump)
		}
		s.revision += bump
		s.compacted = s.revision
	}
	f, err := openDB(tmp, openOptions{})
	if err != nil {
		return err
	}
	return errors.Join(f.seal(s), f.Close())
}
