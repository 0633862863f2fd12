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

// Options are the options of Open. The zero Options is valid.
//
// # A full disk
//
// When the disk is full, or Quota is reached, a commit that makes the store grow fails with storage.ErrNoSpace. That is a commit
// of a new key, of a value that is larger than the one it replaces, or of a first TTL. An update by a value of the same size
// fails if there is no room for that value. Reads, deletions, other updates and compaction continue, and Ready reports that the
// file is full. For these operations the file keeps a reserve of 256 KiB of zeros, and if it has a journal, 3 MiB more for the
// content of the journal. On filesystems that never write in place the reserve may not help; some of them keep room of their
// own.
//
// A full file has no journal, each transaction is only as large as the room allows, and history is kept for a second only.
// History is removed at once where deletions need its room: a watch that is behind then ends with storage.ErrCompacted. History
// that is older than a second is removed before any commit is refused. When there is room for 1 MiB again, by deletions or on
// the disk, the file makes its reserve anew, and all commits are accepted as before. So a file stops being full after deletions,
// with more room on the disk, or with a larger Quota at the next Open. A proxy that sends requests only where /readyz is 200
// keeps clients from deleting: they must reach the server by another way then. An open transaction of Snapshot or Verify keeps
// the pages that deletions free, so there may be no room before it ends.
type Options struct {
	// Window is how long history is kept for watches and reads at an earlier revision; 0 is 5 minutes. History is kept for a
	// shorter time if WindowChanges or WindowBytes is reached before.
	Window time.Duration
	// WindowChanges is the maximum number of changes in the history; 0 is 500,000.
	WindowChanges int64
	// WindowBytes bounds the keys and values of the history; 0 is 256 MiB. A change larger than that is kept until the next
	// one.
	WindowBytes int64
	// Sync determines when a commit is durable; the zero value is SyncAlways. A file may be opened in another mode each time.
	Sync Sync
	// Interval is the time between two writes with SyncInterval; 0 is 100 ms. Other modes do not use it.
	Interval time.Duration
	// Shrink makes Open copy the file into a compact one if more than half of it, and more than 1 MiB, is free. The copy
	// replaces the file atomically. That takes time and room for the copy; without the room the file stays unchanged, and
	// Hooks.Shrunk receives the reason. If the process is killed meanwhile, a file with the suffix .keelson-shrink stays,
	// which the next Open removes. Shrink has no effect on Windows.
	Shrink bool
	// Quota bounds the bytes of the file that are in use. 0 is all that the disk has except for 64 MiB or a sixteenth of it,
	// whichever is less. That much is left to other files, where the system reports the size of the disk (Linux); only
	// deletions and other commits that are accepted in a full file may use some of it. One transaction may exceed the bound
	// by what it writes. A Quota other than 0 must be at least 4 MiB. A file has two to three times the size of the objects
	// in it, and a server keeps the objects in memory: where memory is limited, a Quota as large as that memory keeps clients
	// from storing more than fits into it.
	Quota int64
	// Hooks are called about the backend's work; nil funcs are not called.
	Hooks Hooks

	// syncing, for tests, runs before the file is flushed, with the number of changes that wait for the flush. An error fails
	// the transaction, or the record of the journal. One call of each of the two may be in progress at once.
	syncing func(changes int) error
	// half and after, for tests, replace journalHalf and journalAfter.
	half, after int64
	// block, for tests, replaces reserveBlock: the number of revisions that are reserved at a time.
	block int64
	// wall, for tests, replaces time.Now as the wall clock. It is called by the goroutine that writes.
	wall func() time.Time
}

// Hooks are called by the goroutine that writes the file, which waits for them. They must return quickly and must not call
// the Backend.
type Hooks struct {
	// Committed is called when a transaction is durable, with the number of changes it made and its duration. Deletions of
	// expired keys count as changes.
	Committed func(changes int, took time.Duration)
	// Compacted is called when history up to revision has been removed, with the number of changes removed.
	Compacted func(revision int64, changes int)
	// Shrunk is called by Open when it has tried to make the file smaller, with its sizes in bytes. If err is not nil, it is
	// the reason why the file stayed as it was, and the sizes are equal.
	Shrunk func(before, after int64, err error)
}

// minQuota has room for the reserve, the content of a journal and a few objects.
const minQuota = 4 << 20

func (o Options) withDefaults() (Options, error) {
	if o.Quota != 0 && o.Quota < minQuota {
		return o, fmt.Errorf("bolt: Quota is %d bytes; it must be at least %d (4 MiB), or 0 for the size of the disk", o.Quota, minQuota)
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

// Backend is a storage.Backend in one file, which supports TTLs. It is also a storage.Compactor, Historian, Stater, Knower,
// Healther, Readier, Sizer and Loader. All methods may be called concurrently.
//
// # TTLs
//
// A key with a TTL is deleted within two seconds after its time, by a normal commit with its own revision. Keys whose time
// came while the file was closed are deleted soon after Open; so are those of a snapshot that is restored late. A deletion
// waits while the file cannot be written, and is tried again every second. If many keys are due at once, 512 are deleted at a
// time, and other commits are made in between. With SyncInterval deletions are made in memory first, like all commits. A key
// whose time has come exists, for reads and conditions, until it has been deleted. A file without TTLs costs nothing for this
// except that Open reads one entry.
//
// Times are those of the wall clock, but never go back. If the wall clock is set back, time continues from the last time that
// the file used, and no key lives longer than its TTL while the file is open. If the wall clock is set forward, keys are
// deleted early. A timer that is already set does not notice this, nor that the machine has slept; the next commit does.
type Backend struct {
	path string
	opts Options
	db   *bbolt.DB
	file *os.File // of db; may be read while a transaction of db is open
	tail *tail

	mu       sync.Mutex // guards requests, closed, failed, stuck, full and refuses
	requests []*request
	closed   bool
	failed   error // error of the last transaction; nil if it succeeded
	stuck    error // why keys do not expire: the file is damaged
	full     error // the error for commits that make the store grow; nil while they are accepted
	refuses  error // the error for all writes, after Load has failed

	wake    chan struct{} // wakes the writer when requests or closed has changed; holds one token
	stopped chan struct{} // closed when the writer has ended
	lost    error         // error of the writer for what it could not write in the end; set before stopped is closed
	once    sync.Once     // closes
	closing error         // the result of Close; set by once
}

var (
	_ storage.Backend   = (*Backend)(nil)
	_ storage.Compactor = (*Backend)(nil)
	_ storage.Historian = (*Backend)(nil)
	_ storage.Knower    = (*Backend)(nil)
	_ storage.Stater    = (*Backend)(nil)
	_ storage.Healther  = (*Backend)(nil)
	_ storage.Sizer     = (*Backend)(nil)
	_ storage.Readier   = (*Backend)(nil)
	_ storage.Loader    = (*Backend)(nil)
)

// Open opens the file at path, or creates it (mode 0600) in an existing directory. Errors have the path, the cause and what
// to do. Causes are: the file is open in another process (reported after about a second), is not one of this package's, is of
// a later format, is truncated or damaged, has an unfinished Load, or cannot be read and written. A file that is refused is
// not changed. The caller closes the Backend.
//
// After a Close, Open reads a few pages, whatever the size of the file. After an unclean stop it reads every page of the
// trees once, several at a time, to find the free ones, and stores the list of free pages in the file. Values that have pages
// of their own are not read (BENCHMARKS.md has times). Damage to a value is found when the value is read, or by Verify. A
// transaction that fails, for example because the disk is full, reads the file's pages too.
//
// The file is mapped into 4 GiB of address space, or four times its size if that is more. This takes no memory. A process
// with a limit (ulimit -v) maps less, and then waits for readers when the file grows.
func Open(path string, opts Options) (*Backend, error) {
	if path == "" {
		return nil, errors.New("bolt: the path is empty: name a file")
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	f, st, tt, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	spared, spent := false, false
	err = guard(func() error {
		return f.View(func(tx *bbolt.Tx) error {
			spared, spent = hasSpare(tx), tx.Bucket([]byte(lastBucket)) == nil
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
	w := newWriter(b, st, tt, pressure{full: !spared, spent: spent})
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

// At returns a storage.Opener that opens the file at path with the zero Options.
func At(path string) storage.Opener { return With(path, Options{}) }

// With returns a storage.Opener that opens the file at path.
func With(path string, opts Options) storage.Opener {
	return func(context.Context) (storage.Backend, error) {
		b, err := Open(path, opts)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Close implements storage.Backend. Commits that wait are still written. Its error names the commits that could not be
// written (SyncInterval). In every mode, what was committed before a Close without error is durable.
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

// Health implements storage.Healther. It reads the file. If the last transaction failed, it also tries to write. It also
// returns an error if damage in the file prevents keys from expiring. A full file is no error as long as deletions work: see
// Ready.
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

// Ready implements storage.Readier: it returns nil if commits that make the store grow are accepted now. While they are not,
// each call of Ready checks the room again, and tries to make the reserve of the file if there seems to be enough.
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
