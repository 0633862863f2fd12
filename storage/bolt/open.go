package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Open looks twice, once to check and once to stay, and waits so long each time for another process to let go.
const lockWait = 700 * time.Millisecond

// mapSize is the address space a file is mapped into from the start: until it has grown to that size, growing
// does not wait for readers.
const mapSize = 256 << 20

var (
	errLocked    = errors.New("another process has it open: stop that one, or use another file")
	errForeign   = errors.New("it is not a storage file of this library (another program's data?): use another file")
	errDirectory = errors.New("it is a directory: name a file")
	errIrregular = errors.New("it is not a regular file: use another one")
	errDangling  = errors.New("it is a symbolic link to a file that does not exist")
	errTruncated = errors.New("the file is truncated: restore it from a backup")
)

// openFile opens the file at path, which it creates if there is none, and returns its state.
func openFile(path string) (db *bbolt.DB, s state, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bolt: open %s: %w", path, explain(path, err))
		}
	}()
	if err := ensure(path); err != nil {
		return nil, s, err
	}
	if err := check(path); err != nil {
		return nil, s, err
	}
	db, err = openDB(path, false)
	if err != nil {
		return nil, s, err
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) (err error) {
			s, err = checkContent(tx)
			return err
		})
	})
	if err != nil {
		return nil, s, errors.Join(err, db.Close())
	}
	tidy(path)
	return db, s, nil
}

// explain gives the system's and bbolt's errors a cure.
func explain(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return errLocked
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w (%w)", errForeign, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the file and its directory %s must be readable and writable", err, dir)
	case errors.Is(err, errDamaged), errors.Is(err, bbolterrors.ErrChecksum):
		return fmt.Errorf("%w: restore it from a backup", err)
	case noSpace(err):
		return fmt.Errorf("%w: free some space, or use another file", err)
	}
	return err
}

// ensure creates the file if there is none, and refuses what is not a regular file.
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
	if _, err := os.Lstat(path); err == nil {
		return errDangling
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: create the directory %s first", err, dir)
	}
	return create(path)
}

// unfinished names the file that becomes path when it is complete.
func unfinished(path string) string { return path + ".keelson-new" }

// tidy removes the other name of the file, left by a creation that was killed after it had given it its own.
func tidy(path string) {
	file, err := os.Stat(path)
	if err != nil {
		return
	}
	if other, err := os.Lstat(unfinished(path)); err == nil && os.SameFile(file, other) {
		_ = os.Remove(unfinished(path))
	}
}

// create makes the file under another name first, so that a file under path is complete whenever the process is
// killed. A link, unlike a rename, never replaces a file that another process has created meanwhile.
func create(path string) error {
	tmp := unfinished(path)
	err := initialise(tmp)
	if err != nil && !errors.Is(err, bbolterrors.ErrTimeout) && !errors.Is(err, fs.ErrPermission) && !noSpace(err) {
		// Left over half-made by a process that was killed: nobody holds its lock.
		if err = os.Remove(tmp); err == nil {
			err = initialise(tmp)
		}
	}
	if err != nil {
		return err
	}
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return os.Rename(tmp, path) // a filesystem without links
	}
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// initialise writes the buckets of an empty store, unless they are there.
func initialise(path string) error {
	db, err := openDB(path, false)
	if err != nil {
		return err
	}
	db.NoFreelistSync = false
	err = guard(func() error { return db.Update(addBuckets) })
	return errors.Join(err, db.Close())
}

func addBuckets(tx *bbolt.Tx) error {
	if name, _ := tx.Cursor().First(); name != nil {
		return nil
	}
	for _, name := range []string{metaBucket, logBucket, indexBucket} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte(metaBucket))
	return errors.Join(
		meta.Put([]byte(formatKey), []byte(formatName)),
		meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, formatVersion)),
		meta.Put([]byte(stateKey), state{revision: firstRevision, clean: 1}.encode()),
	)
}

// check reads the file without changing it. A file that was not closed is read as a whole, because bbolt will do
// so next, in a goroutine whose panics nobody could catch.
func check(path string) error {
	db, err := openDB(path, true)
	if err != nil {
		return err
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if info.Size() < tx.Size() {
				return fmt.Errorf("%w (it has %d of %d bytes)", errTruncated, info.Size(), tx.Size())
			}
			s, err := checkContent(tx)
			if err != nil || s.clean != 0 {
				return err
			}
			return readAll(tx)
		})
	})
	return errors.Join(err, db.Close())
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
	if n := binary.BigEndian.Uint64(version); n != formatVersion {
		return state{}, fmt.Errorf("it has format version %d, and this release knows version %d only: use a release "+
			"that knows it", n, formatVersion)
	}
	t, err := newTxn(tx)
	if err != nil {
		return state{}, err
	}
	return t.state()
}

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
	if err != nil {
		return err
	}
	return t.log.ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("%w: revision %q", errDamaged, k)
		}
		_, err := decodeEntry(v)
		return err
	})
}

// openDB opens a bbolt file. Nothing is left open after an error.
func openDB(path string, readOnly bool) (db *bbolt.DB, err error) {
	var opened *os.File
	options := &bbolt.Options{
		Timeout:        lockWait,
		ReadOnly:       readOnly,
		NoFreelistSync: true, // the list is written by Close alone
		FreelistType:   bbolt.FreelistMapType,
		NoStatistics:   true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			opened = f
			return f, err
		},
	}
	if !readOnly && strconv.IntSize == 64 && runtime.GOOS != "windows" { // there, the file would have this size
		options.InitialMmapSize = mapSize
	}
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if errors.Is(err, errDamaged) && opened != nil {
		_ = opened.Close() // bbolt panicked, and has kept it and its lock
	}
	if err != nil {
		return nil, err
	}
	db.AllocSize = minGrowth
	return db, nil
}

// syncDir makes a new name in a directory durable. Windows has no such operation, and needs none.
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
