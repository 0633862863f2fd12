// Package logfile is a file for audit events that begins anew when it is large, and keeps its former contents in other files.
//
//	file, err := logfile.Open("/var/log/audit.log", logfile.Options{})
//	defer file.Close()
//	sink, err := audit.NewLog(file, audit.JSONLines)
package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/DeRuina/timberjack"
)

// Options are the bounds of a [File]. The zero values stand for the defaults, which are those of kube-apiserver. A negative number
// is no bound.
type Options struct {
	MaxMegabytes int  // size after which the file begins anew; 0 is 100
	MaxDays      int  // age after which former contents are deleted; 0 is 366
	MaxBackups   int  // how many files with former contents are kept; 0 is 100
	Compress     bool // compress former contents with gzip
}

// File is a file that begins anew when it is large. Its former contents are in files beside it, whose names have the time of the
// change: audit-2026-11-28T04-36-41.272-size.log has those of audit.log. A file that somebody has removed or renamed is made anew, so
// that no events are written to a file without a name. One process at a time may write to a file. All methods may be called
// concurrently.
type File struct {
	to *timberjack.Logger
	mu sync.Mutex // held while the file is looked for
}

// Open opens a file to append to it, and makes it if there is none, readable for its owner only. The folder must exist.
func Open(path string, o Options) (*File, error) {
	if path == "" {
		return nil, errors.New("audit: the log file has no name")
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("audit: the folder of the log file: %w", err)
	}
	if !folder.IsDir() {
		return nil, fmt.Errorf("audit: log file %s: %s is no folder", path, filepath.Dir(path))
	}
	if there, err := os.Stat(path); err == nil && there.Mode()&os.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("audit: log file %s is a named pipe, which would wait for its reader: name a file", path)
	}
	probe, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: the log file cannot be written: %w", err)
	}
	if err := probe.Close(); err != nil {
		return nil, fmt.Errorf("audit: the log file cannot be written: %w", err)
	}
	return &File{to: &timberjack.Logger{
		Filename: path, FileMode: 0o600, Compression: map[bool]string{true: "gzip", false: "none"}[o.Compress],
		MaxSize: bound(cmp.Or(o.MaxMegabytes, 100), math.MaxInt>>20), MaxAge: bound(cmp.Or(o.MaxDays, 366), 0), MaxBackups: bound(cmp.Or(o.MaxBackups, 100), 0),
	}}, nil
}

// bound returns n, or none if n is negative.
func bound(n, none int) int {
	if n < 0 {
		return none
	}
	return n
}

// Write appends to the file. A text that is longer than a whole file may be is refused.
func (f *File) Write(text []byte) (int, error) {
	if err := f.exists(); err != nil {
		return 0, err
	}
	return f.to.Write(text)
}

// exists makes the file anew if it has vanished.
func (f *File) exists() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := os.Lstat(f.to.Filename); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return f.to.Rotate()
	}
	return nil
}

// Close waits until former contents are compressed or deleted, and closes the file.
func (f *File) Close() error { return f.to.Close() }
