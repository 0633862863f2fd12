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
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Open looks twice, once to check and once to stay, and waits so long each time for another process to let go.
const lockWait = 700 * time.Millisecond

// mapSize is the address space a file is mapped into from the start, if there is so much: until it has grown to that
// size, growing does not wait for readers. A larger file has four times its size.
const mapSize = 4 << 30

// dbFile is an open bbolt database and the file it is in.
type dbFile struct {
	*bbolt.DB
	file *os.File
}

// openFile opens the file at path, which it creates if there is none, and returns what it says of itself.
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
	if err == nil && s.clean == 0 {
		err = f.Sync() // a killed process may have left something that is not on the disk yet
	}
	if err != nil {
		return nil, s, tt, errors.Join(err, f.Close())
	}
	f.NoSync, f.NoGrowSync = opts.Sync == NoSync, opts.Sync == NoSync
	tidy(path)
	return f, s.recovered(), tt, nil
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

// tidy removes what was left over by a process that was killed: the other name of the file, after its creation had
// given it its own, and a half-made compact copy. The file is locked.
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
	if err := place(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// place gives a complete file its name, unless there is another one of that name, which is fs.ErrExist. tmp is gone
// afterwards.
func place(tmp, path string) error {
	linked := os.Link(tmp, path)
	if linked != nil && !errors.Is(linked, fs.ErrExist) && !errors.Is(linked, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			linked = fs.ErrExist
		} else { // a filesystem without links
			linked = os.Rename(tmp, path)
		}
	}
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(linked, syncDir(filepath.Dir(path)))
}

// initialise writes the buckets of an empty store, unless they are there.
func initialise(path string) error {
	f, err := openDB(path, openOptions{})
	if err != nil {
		return err
	}
	f.NoFreelistSync = false
	err = guard(func() error { return f.Update(addBuckets) })
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
	)
}

type openOptions struct {
	readOnly   bool
	statistics bool // have DB.Stats count
}

// openDB opens a bbolt file and locks it. Nothing is left open after an error.
func openDB(path string, o openOptions) (*dbFile, error) {
	size := int64(0)
	if !o.readOnly && strconv.IntSize == 64 && runtime.GOOS != "windows" { // there, the file would have this size
		size = mapSize
		if info, err := os.Stat(path); err == nil {
			size = max(size, 4*info.Size())
		}
	}
	f, err := openMapped(path, o, int(size))
	if errors.Is(err, syscall.ENOMEM) { // the address space of the process is limited
		f, err = openMapped(path, o, 0)
	}
	if err != nil {
		return nil, err
	}
	f.AllocSize = minGrowth
	return f, nil
}

// openInPlace is openDB for the file that has the name in the end: whoever waited for the lock may have got one on a
// file that Shrink has replaced meanwhile.
func openInPlace(path string, o openOptions) (*dbFile, error) {
	for range 3 {
		f, err := openDB(path, o)
		if err != nil {
			return nil, err
		}
		mine, err := f.file.Stat()
		if err == nil {
			there, missing := os.Stat(path)
			if err = missing; err == nil && os.SameFile(mine, there) {
				return f, nil
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, errReplaced
}

func openMapped(path string, o openOptions, size int) (*dbFile, error) {
	f := &dbFile{}
	options := &bbolt.Options{
		Timeout:         lockWait,
		ReadOnly:        o.readOnly,
		NoFreelistSync:  true, // the list is written by Close alone
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    !o.statistics,
		InitialMmapSize: size,
		OpenFile: func(name string, flag int, mode os.FileMode) (file *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			f.file = file
			return file, err
		},
	}
	err := guard(func() (err error) {
		f.DB, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if errors.Is(err, errDamaged) && f.file != nil {
		_ = f.file.Close() // bbolt panicked, and has kept it and its lock
	}
	if err != nil {
		return nil, err
	}
	return f, nil
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
