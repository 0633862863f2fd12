// Package reload uses the content of a file, and uses it again when it changes, such as a policy that an operator edits while the
// server runs.
//
//	file, err := reload.Open("/etc/keelson/audit-policy.yaml", func(content []byte) error {
//		policy, err := audit.ParsePolicy(content)
//		...
//	}, reload.Options{})
//	go file.Follow(ctx)
//
// The file is read every few seconds, and its content is compared. So a file is followed however it changes: written in place,
// replaced by a rename, or behind a symbolic link that is replaced, as in a volume of a ConfigMap. Content that cannot be used, a file
// that is missing, and one that changes all the time, change nothing: the content from before stays in use until the file has usable
// content again. [File.Err] says what is wrong.
package reload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
)

// Options are options of a File. The zero values stand for the defaults.
type Options struct {
	// Every is the time between two reads of the file; 0 is 10 s.
	Every time.Duration
	// Settle is the time for which changed content must stay the same before it is used, so that a file which is being written is not
	// used half; 0 is 500 ms. Content that has not stayed the same for 20 times as long is an error.
	Settle time.Duration
	// MaxBytes bounds the content; 0 is 3 MiB.
	MaxBytes int64
	// Tried is called after each attempt to use content that has changed, with its error. A file that cannot be read or used is tried
	// again after Every. After an error, Tried is called with nil also when the file has the content in use again, which ends the
	// failure without a call of use. A nil Tried is not called.
	Tried func(err error)
}

// File is a file whose content is in use. All methods may be called concurrently.
type File struct {
	path string
	use  func(content []byte) error
	o    Options

	looking sync.Mutex        // held while the file is read and its content used; guards used
	used    [sha256.Size]byte // hash of the content that is in use

	mu  sync.Mutex // guards err
	err error
}

// Open reads a file and calls use with its content. If use returns an error, Open fails. [File.Follow] calls use again, with content
// that has changed. use must change nothing if it returns an error. It is never called twice at the same time, and the content
// belongs to it.
func Open(path string, use func(content []byte) error, o Options) (*File, error) {
	if path == "" || use == nil || o.Every < 0 || o.Settle < 0 || o.MaxBytes < 0 {
		return nil, errors.New("reload: want a path, a function, and options that are not negative")
	}
	o.Every, o.Settle, o.MaxBytes = cmp.Or(o.Every, 10*time.Second), cmp.Or(o.Settle, 500*time.Millisecond), cmp.Or(o.MaxBytes, 3<<20)
	f := &File{path: path, use: use, o: o}
	content, err := f.read()
	if err != nil {
		return nil, err
	}
	f.used = sha256.Sum256(content)
	if err := use(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Follow reads the file again and again until ctx ends.
func (f *File) Follow(ctx context.Context) {
	for outbound.Sleep(ctx, f.o.Every) {
		_ = f.Reload(ctx) // Err has the error
	}
}

// Reload reads the file now. It returns the error that [File.Err] then returns, or that of ctx if it ends before.
func (f *File) Reload(ctx context.Context) error {
	f.looking.Lock()
	defer f.looking.Unlock()
	content, hash, err := f.settled(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && hash == f.used {
		if f.Err() != nil {
			f.tell(nil)
		}
		return nil
	}
	if err == nil {
		if err = f.use(content); err != nil {
			err = fmt.Errorf("%s: %w", f.path, err)
		} else {
			f.used = hash
		}
	}
	f.tell(err)
	return err
}

// Err returns the reason why the content of the file is not in use, or nil.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// tell makes err the result of Err, and calls Tried with it.
func (f *File) tell(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	if f.o.Tried != nil {
		f.o.Tried(err)
	}
}

// maxChanges is the number of successive changes, Options.Settle apart, after which a file is said not to settle.
const maxChanges = 20

// settled returns the content of the file when it has stopped changing, or when it is that in use.
func (f *File) settled(ctx context.Context) (content []byte, hash [sha256.Size]byte, err error) {
	before := f.used
	for range maxChanges {
		if content, err = f.read(); err != nil {
			return nil, hash, err
		}
		if hash = sha256.Sum256(content); hash == before || hash == f.used {
			return content, hash, nil
		}
		if !outbound.Sleep(ctx, f.o.Settle) {
			return nil, hash, ctx.Err()
		}
		before = hash
	}
	return nil, hash, fmt.Errorf("%s has changed every %v for %v: write a whole file elsewhere, and rename it", f.path, f.o.Settle, maxChanges*f.o.Settle)
}

// read returns the content of the file.
func (f *File) read() ([]byte, error) {
	in, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // to open a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", f.path), err)
	}
	content, err := io.ReadAll(io.LimitReader(in, f.o.MaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > f.o.MaxBytes:
		return nil, fmt.Errorf("%s has more than %d bytes", f.path, f.o.MaxBytes)
	}
	return content, nil
}
