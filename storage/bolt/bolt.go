package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

// Options tunes a Backend. The zero Options is valid.
type Options struct {
	// Window is how long history is kept for watches and reads at an earlier revision; 0 is 5 minutes. It is a
	// lower bound unless WindowChanges or WindowBytes is reached before.
	Window time.Duration
	// WindowChanges bounds how many changes the history holds; 0 is 500,000.
	WindowChanges int64
	// WindowBytes bounds the keys and values of the history; 0 is 256 MiB. A change larger than that is kept
	// until the next one.
	WindowBytes int64
	// Sync says when a commit is durable; the zero value is SyncAlways.
	Sync Sync
	// Interval is how often SyncInterval writes; 0 is 100 ms. Only for SyncInterval.
	Interval time.Duration
	// Shrink makes Open copy a file of which more than half is free, and more than 1 MiB, into a compact one that
	// takes its place. That takes time and room for the copy; without the room the file stays as it is, and
	// Hooks.Shrunk tells why. Not on Windows.
	Shrink bool
	// Quota bounds the bytes of the file that are in use. When it is reached, or the disk has no more, commits that make the
	// store grow are storage.ErrNoSpace: new keys, and values larger than the ones they replace. Reads, deletions, other updates
	// and compaction go on, and make room. 0 takes what the disk has, but for 64 MiB or a sixteenth of it, whichever is less; that
	// much is always left to others, where the system tells what the disk has (Linux). The bound may be passed by what one
	// transaction writes. See "A full disk".
	Quota int64
	// Hooks observe the backend; nil funcs are not called.
	Hooks Hooks

	// syncing, for tests, runs before the file is flushed, with the number of changes that wait for it. An
	// error fails the transaction, or the record of the journal; one of each may be under way at once.
	syncing func(changes int) error
	// half and after, for tests, stand in for journalHalf and journalAfter.
	half, after int64
	// block, for tests, is how many revisions are reserved at a time instead of reserveBlock.
	block int64
	// wall, for tests, is the wall clock instead of time.Now. The goroutine that writes calls it.
	wall func() time.Time
}

// Hooks are called by the goroutine that writes the file, which waits for them: they must be quick and must not
// call the Backend.
type Hooks struct {
	// Committed is called when a transaction is durable, with the changes it made, deletions of keys with a TTL among
	// them, and the time it took.
	Committed func(changes int, took time.Duration)
	// Compacted is called when history up to revision has been removed, with the number of changes forgotten.
	Compacted func(revision int64, changes int)
	// Shrunk is called by Open when it has tried to make the file smaller, with its sizes in bytes, equal if err says
	// why it has stayed as it was.
	Shrunk func(before, after int64, err error)
}

func (o Options) withDefaults() (Options, error) {
	if o.Quota < 0 {
		return o, fmt.Errorf("bolt: Quota must not be negative")
	}
	if o.Window < 0 || o.WindowChanges < 0 || o.WindowBytes < 0 {
		return o, fmt.Errorf("bolt: Window, WindowChanges and WindowBytes must not be negative")
	}
	if err := o.Sync.check(o.Interval); err != nil {
		return o, err
	}
	if o.Shrink && runtime.GOOS == "windows" {
		return o, fmt.Errorf("bolt: Shrink: %w", storage.ErrUnsupported)
	}
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.block == 0 {
		o.block = reserveBlock
	}
	if o.half == 0 {
		o.half, o.after = journalHalf, journalAfter
	}
	if o.Window == 0 {
		o.Window = 5 * time.Minute
	}
	if o.WindowChanges == 0 {
		o.WindowChanges = 500_000
	}
	if o.WindowBytes == 0 {
		o.WindowBytes = 256 << 20
	}
	return o, nil
}

// Backend is a storage.Backend in one file, which supports TTL. It is also a storage.Compactor, Historian, Stater, Knower,
// Healther, Readier and Loader. All methods may be called concurrently.
type Backend struct {
	path string
	opts Options
	db   *bbolt.DB
	file *os.File // of db, to be read while a transaction of db is open
	tail *tail

	mu       sync.Mutex // guards requests, closed, failed, stuck, full and refuses
	requests []*request
	closed   bool
	failed   error // why the last transaction failed; nil after one that did not
	stuck    error // why keys do not expire: the file is damaged
	full     error // why nothing is taken that makes the store grow; nil while it is
	refuses  error // why nothing can be written any more: Load has failed

	wake    chan struct{} // tells the writer that requests or closed has changed; holds one token
	stopped chan struct{} // closed when the writer has ended
	lost    error         // what the writer could not write in the end; set before stopped is closed
	once    sync.Once     // closes
	closing error         // what Close returns; set by once
}

var (
	_ storage.Backend   = (*Backend)(nil)
	_ storage.Compactor = (*Backend)(nil)
	_ storage.Historian = (*Backend)(nil)
	_ storage.Knower    = (*Backend)(nil)
	_ storage.Stater    = (*Backend)(nil)
	_ storage.Healther  = (*Backend)(nil)
	_ storage.Readier   = (*Backend)(nil)
	_ storage.Loader    = (*Backend)(nil)
)

// Open opens the file at path, or creates it (mode 0600) in a directory that exists. Errors name the path, the
// cause and what to do: the file is open in another process (after about a second), is not one of this package's,
// is of a later format, is truncated or damaged, holds an unfinished Load, cannot be read and written. A file that
// is refused is not changed. The caller closes the Backend.
func Open(path string, opts Options) (*Backend, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	f, st, tt, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	spared := false
	err = guard(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			spared = hasSpare(tx)
			return nil
		})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bolt: open %s: %w", path, explain(path, err)), f.Close())
	}
	b := &Backend{
		path:    path,
		opts:    opts,
		db:      f.DB,
		file:    f.file,
		tail:    newTail(st),
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	w := newWriter(b, st, tt, spared)
	go func() {
		defer close(b.stopped)
		switch opts.Sync {
		case SyncAlways:
			newJournaled(w).run()
		case SyncInterval:
			b.lost = newDeferred(w).run()
		case NoSync:
			w.run()
		}
	}()
	return b, nil
}

// At opens path with the zero Options when a server starts.
func At(path string) storage.Opener {
	return func(context.Context) (storage.Backend, error) {
		b, err := Open(path, Options{})
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Close implements storage.Backend: commits that wait are still written. Its error tells which could not be
// (SyncInterval). In every mode, what was committed before a Close without error is durable.
func (b *Backend) Close() error {
	b.once.Do(func() {
		b.mu.Lock()
		b.closed = true
		b.mu.Unlock()
		b.signal()
		<-b.stopped
		b.tail.close()
		b.closing = errors.Join(b.lost, b.db.Close())
	})
	return b.closing
}

// Health implements storage.Healther. It reads the file; when the last transaction failed it also tries to write. Damage that
// keeps keys from expiring is an error too. A full file is not, as long as deletions work: see Ready.
func (b *Backend) Health(ctx context.Context) error {
	b.mu.Lock()
	closed, failed, stuck, refuses := b.closed, b.failed, b.stuck, b.refuses
	b.mu.Unlock()
	if closed {
		return storage.ErrClosed
	}
	if refuses != nil {
		return refuses
	}
	if err := b.view(func(txn) error { return nil }); err != nil {
		return err
	}
	if failed != nil {
		if _, err := b.submit(ctx, &request{kind: probe}); err != nil {
			return err
		}
	}
	return stuck
}

// Ready implements storage.Readier: what makes the store grow is taken now. While it is not, each Ready tries to write what such
// a commit would, once a second at most.
func (b *Backend) Ready(ctx context.Context) error {
	b.mu.Lock()
	closed, full, failed := b.closed, b.full, b.failed
	b.mu.Unlock()
	switch {
	case closed:
		return storage.ErrClosed
	case full == nil && failed == nil && b.room() >= 2*leastRoom:
		return nil
	}
	if _, err := b.submit(ctx, &request{kind: ready}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.full
}
