package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// openFile opens the file at path, or creates it if it does not exist, and returns its state and its times.
func openFile(path string, opts Options) (f *dbFile, s state, tt timetable, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bolt: open %s: %w", path, explain(path, err))
		}
	}()
	if err := ensure(path); err != nil {
		return nil, s, tt, err
	}
	journaled, err := check(path)
	if err == nil && journaled {
		err = settle(path)
	}
	if err != nil {
		return nil, s, tt, err
	}
	if opts.Shrink {
		if err := shrink(path, opts.Hooks.Shrunk); err != nil {
			return nil, s, tt, err
		}
	}
	if f, err = openInPlace(path, openOptions{}); err != nil {
		return nil, s, tt, err
	}
	err = guard(func() error {
		return f.View(func(tx *bbolt.Tx) (err error) {
			if s, err = checkContent(tx); err != nil {
				return err
			}
			t, err := newTxn(tx)
			if err == nil {
				tt, err = t.timetable()
			}
			return err
		})
	})
	if err == nil && (s.clean == 0 || opts.Sync != NoSync) {
		err = f.Sync() // a killed process may have left data that is not on the disk yet, even its Close
	}
	if err == nil && opts.Sync != NoSync {
		err = syncName(path)
	}
	if err != nil {
		return nil, s, tt, errors.Join(err, f.Close())
	}
	f.NoSync, f.NoGrowSync = opts.Sync == NoSync, opts.Sync == NoSync
	tidy(path)
	return f, s.recovered(), tt, nil
}

// ensure creates the file if it does not exist. It returns an error if the file is not a regular one.
func ensure(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errDirectory
	case err == nil && !info.Mode().IsRegular():
		return errIrregular
	case err == nil && info.Size() == 0:
		return initialise(path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil // another process has created it meanwhile
		}
		return errDangling
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: create the directory %s first", err, dir)
	}
	return create(path)
}

// unfinished returns the name of the file that becomes path when it is complete.
func unfinished(path string) string { return path + ".keelson-new" }

// tidy removes what a killed process left: the temporary name of the file, which create had linked to its own name, and an
// unfinished compact copy. The file is locked.
func tidy(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		_ = os.Remove(compactCopy(real))
	}
	file, err := os.Stat(path)
	if err != nil {
		return
	}
	if other, err := os.Lstat(unfinished(path)); err == nil && os.SameFile(file, other) {
		_ = os.Remove(unfinished(path))
	}
}

// create makes the file under another name first, so that a file at path is complete whenever the process is killed. It uses
// a link, because a link, unlike a rename, never replaces a file that another process has created meanwhile.
func create(path string) error {
	tmp := unfinished(path)
	err := initialise(tmp)
	if err != nil && !errors.Is(err, bbolterrors.ErrTimeout) && !errors.Is(err, fs.ErrPermission) && !noSpace(err) {
		// An unfinished file of a killed process: no process has it locked.
		if err = os.Remove(tmp); err == nil {
			err = initialise(tmp)
		}
	}
	if err != nil {
		return err
	}
	if err := place(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// initialise writes the buckets of an empty store, unless they exist. If a killed process has left a store, it is made
// durable first, as in settle.
func initialise(path string) error {
	f, err := openDB(path, openOptions{})
	if err != nil {
		return err
	}
	f.NoFreelistSync = false
	if err = f.Sync(); err == nil {
		err = guard(func() error { return f.Update(addBuckets) })
	}
	return errors.Join(err, f.Close())
}

func addBuckets(tx *bbolt.Tx) error {
	if name, _ := tx.Cursor().First(); name != nil {
		return nil
	}
	for _, name := range []string{metaBucket, logBucket, indexBucket, partsBucket} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte(metaBucket))
	return errors.Join(
		meta.Put([]byte(formatKey), []byte(formatName)),
		meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, formatVersion)),
		meta.Put([]byte(stateKey), state{revision: firstRevision, clean: 1}.encode()),
		addSpare(tx),
	)
}

// settle writes the content of the journal of the file at path into the trees and removes the journal, in one transaction.
// Whenever the process is killed, the file is in the state before or in the state after.
func settle(path string) error {
	f, err := openInPlace(path, openOptions{})
	if err != nil {
		return err
	}
	update := func(fn func(txn) error) error {
		return guard(func() error {
			return f.Update(func(tx *bbolt.Tx) error {
				t, err := newTxn(tx)
				if err != nil {
					return err
				}
				return fn(t)
			})
		})
	}
	write := func(t txn) error {
		_, err := t.settle(f.file, math.MaxInt)
		return err
	}
	// A killed process may have left a transaction that is not on the disk yet. The next transaction overwrites the pages
	// that it has freed, and after a power failure these may be in use again.
	f.NoFreelistSync = false // otherwise the list would have to be made once more
	if err = f.Sync(); err == nil {
		err = update(write)
	}
	if err != nil && noSpace(err) {
		f.NoFreelistSync = true
		err = settleInSteps(update, func(t txn, limit int) (int, error) { return t.settle(f.file, limit) })
	}
	return errors.Join(err, f.Close())
}

// settle writes at most limit changes. It returns how many are left; the journal stays until none is left.
func (t txn) settle(file *os.File, limit int) (left int, err error) {
	s, err := checkContent(t.tx)
	if err != nil {
		return 0, err
	}
	j, err := findJournal(t.tx, file)
	if err != nil || j == nil {
		return 0, err
	}
	changes, clock, err := j.read(file, s)
	if err != nil {
		return 0, err
	}
	if left = len(changes) - limit; left > 0 {
		changes = changes[:limit]
	} else if err := t.dropJournal(); err != nil {
		return 0, err
	}
	stored, err := t.clock()
	if err != nil {
		return 0, err
	}
	if len(changes) == 0 {
		return 0, nil
	}
	t.log.FillPercent, t.parts.FillPercent = 0.9, 0.9
	timed := false
	for _, c := range changes {
		if err := t.put(c); err != nil {
			return 0, err
		}
		timed = timed || c.timed()
		s.revision, s.total = c.revision, c.total
	}
	if timed && clock > stored {
		if err := t.setClock(clock); err != nil {
			return 0, err
		}
	}
	s.clean = 0
	return max(left, 0), t.setState(s)
}
