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

// lockWait is how long Open waits for another process to unlock the file. Open locks the file twice, once to check it and
// once to use it, and waits this long each time.
const lockWait = 700 * time.Millisecond

// mapSize is the address space into which a file is mapped from the start, if the process has so much. Until the file has
// this size, it can grow without waiting for readers. A larger file is mapped into four times its size.
const mapSize = 4 << 30

// dbFile is an open bbolt database and its file.
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
	if !o.readOnly && strconv.IntSize == 64 && runtime.GOOS != "windows" { // on Windows the file would get this size
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

// openInPlace is openDB, and checks that the file still has the name afterwards. A process that waited for the lock may have
// locked a file that Shrink has replaced meanwhile.
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
		NoFreelistSync:  true, // only Close writes the list
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
		_ = f.file.Close() // bbolt panicked, and has kept the file and its lock
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// place renames a complete file to path. If path exists, the error is fs.ErrExist. tmp does not exist afterwards.
func place(tmp, path string) error {
	linked := os.Link(tmp, path)
	if linked != nil && !errors.Is(linked, fs.ErrExist) && !errors.Is(linked, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			linked = fs.ErrExist
		} else { // a filesystem without hard links
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

// syncName makes the name of an existing file durable: the process that made the name may have been killed before it did so.
// If the directory cannot be read, or the system has no such operation, no process has made names with this package.
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

// whole checks that the file is as long as its transaction says.
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
	_, _ = tx.WriteTo(&first) // the only way to find out which meta page the transaction uses
	m, err := parseMeta(first.page)
	if err != nil {
		return fmt.Errorf("%w: meta page: %w", errDamaged, err)
	}
	w.r, w.meta, w.raw = f.file, m, first.page
	return w.walk()
}

// firstPage is a writer that takes one page and no more.
type firstPage struct{ page []byte }

func (f *firstPage) Write(b []byte) (int, error) {
	f.page = bytes.Clone(b)
	return len(b), io.ErrShortWrite
}
