package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
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

type openOptions struct {
	readOnly bool
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

// syncName makes the name of a file that is there durable: the process that gave it may have been killed before it did. Where
// the directory cannot be read, or the system has no such operation, no process has given names with this package.
func syncName(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// whole makes sure that the file is as long as a transaction says.
func (f *dbFile) whole(tx *bbolt.Tx) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("%w (it has %d of %d bytes)", errTruncated, info.Size(), tx.Size())
	}
	return nil
}

// walk visits the pages of a read transaction.
func (f *dbFile) walk(tx *bbolt.Tx, w *pageWalk) error {
	var first firstPage
	_, _ = tx.WriteTo(&first) // the one way to learn which meta page it has
	m, err := parseMeta(first.page)
	if err != nil {
		return fmt.Errorf("%w: meta page: %w", errDamaged, err)
	}
	w.r, w.meta, w.raw = f.file, m, first.page
	return w.walk()
}

// firstPage takes one page and no more.
type firstPage struct{ page []byte }

func (f *firstPage) Write(b []byte) (int, error) {
	f.page = bytes.Clone(b)
	return len(b), io.ErrShortWrite
}
