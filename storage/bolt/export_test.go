package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// WithSyncing makes fn run before every flush of the file; see Options.syncing.
func (o Options) WithSyncing(fn func(changes int) error) Options {
	o.syncing = fn
	return o
}

// WithBlock makes n revisions be reserved at a time; n is more than twice what commits at once.
func (o Options) WithBlock(n int64) Options {
	o.block = n
	return o
}

// WithWall makes fn the wall clock.
func (o Options) WithWall(fn func() time.Time) Options {
	o.wall = fn
	return o
}

// WriteUnseen leaves the file like a transaction whose last flush has failed after everything was written: the change is in
// the file, but not in the backend's memory.
func (b *Backend) WriteUnseen(key, value string) (revision int64, err error) {
	err = b.db.Update(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		s, err := t.state()
		if err != nil {
			return err
		}
		s.revision++
		s.total += int64(len(key) + len(value))
		revision = s.revision
		return errors.Join(
			t.put(&change{key: key, value: []byte(value), revision: revision, total: s.total}),
			t.setState(s),
		)
	})
	return revision, err
}

// Path is where the file is.
func (b *Backend) Path() string { return b.path }

// Pending counts the requests that wait for the writer.
func (b *Backend) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

// Versions counts what the log and the index hold.
func (b *Backend) Versions() (log, index int, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		log, index = t.log.Stats().KeyN, t.index.Stats().KeyN
		return nil
	})
	return log, index, err
}

// Unflushed counts the changes that are in memory only.
func (b *Backend) Unflushed() int {
	now, err := b.tail.see()
	if err != nil || now.overlay == nil {
		return 0
	}
	return now.overlay.versions.Len()
}

// Flush makes everything durable that was committed before.
func (b *Backend) Flush(ctx context.Context) error {
	_, err := b.submit(ctx, &request{kind: probe})
	return err
}

// Syncs tells whether every transaction is flushed.
func (b *Backend) Syncs() bool { return !b.db.NoSync || !b.db.NoGrowSync }

// FileRevision reads what the file at path says its revision is.
func FileRevision(path string) (int64, error) {
	s, err := fileState(path)
	return s.revision, err
}

// OpenedRevision reads from the file at path the revision at which it will be opened.
func OpenedRevision(path string) (int64, error) {
	s, err := fileState(path)
	return s.recovered().revision, err
}

func fileState(path string) (s state, err error) {
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return s, err
	}
	err = f.View(func(tx *bbolt.Tx) (err error) {
		if s, err = checkContent(tx); err != nil {
			return err
		}
		j, err := findJournal(tx, f.file)
		if err != nil || j == nil {
			return err
		}
		changes, _, err := j.read(f.file, s)
		if n := len(changes); n > 0 {
			s.revision, s.total = changes[n-1].revision, changes[n-1].total
		}
		return err
	})
	return s, errors.Join(err, f.Close())
}

// WaitStopped waits until Close has ended the writer.
func (b *Backend) WaitStopped() { <-b.stopped }

// edit is a change of what is in a file.
func edit(fn func(t txn, s state) error) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		s, err := t.state()
		if err != nil {
			return err
		}
		return fn(t, s)
	}
}

// EditState changes the counters of a file: revision, compacted, scrubbed, scrubbedTotal, total, clean, reserved.
func EditState(fn func([]int64)) func(tx *bbolt.Tx) error {
	return edit(func(t txn, s state) error {
		var counters []int64
		for _, f := range s.fields() {
			counters = append(counters, *f)
		}
		fn(counters)
		for i, f := range s.fields() {
			*f = counters[i]
		}
		return t.setState(s)
	})
}

// EditPrev makes the newest change refer to another revision as its previous one, with the right checksum.
func EditPrev(prev int64) func(tx *bbolt.Tx) error {
	return edit(func(t txn, s state) error {
		e, err := t.change(s.revision)
		if err != nil {
			return err
		}
		e.prev = prev
		return t.log.Put(revisionKey(s.revision), e.encode(s.revision))
	})
}

// AtRest runs fn while nothing is written to the file. A copy of the file is then what a process that is killed now would
// leave.
func (b *Backend) AtRest(fn func() error) error {
	tx, err := b.db.Begin(true)
	if err != nil {
		return err
	}
	return errors.Join(fn(), tx.Rollback())
}

// WriteUnflushed leaves the file like a flush of SyncInterval that has failed at its last step. The first n changes in memory
// are in the file too, with a reservation for more, but the backend does not have that state.
func (b *Backend) WriteUnflushed(n int) error {
	b.tail.mu.Lock()
	changes := b.tail.after(b.tail.shown.flushed)
	changes = changes[:min(n, len(changes)):min(n, len(changes))]
	b.tail.mu.Unlock()
	return b.db.Update(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		s, err := t.state()
		if err != nil {
			return err
		}
		for _, c := range changes {
			if c.revision <= s.revision {
				continue // the change is there already
			}
			if err := t.put(c); err != nil {
				return err
			}
			s.revision, s.total = c.revision, c.total
		}
		s.clean, s.reserved = 0, max(s.reserved, s.revision+b.opts.block)
		return t.setState(s)
	})
}

// MaxInline is the largest size of a value that is not split; PartBytes is the size of a part.
const (
	MaxInline = maxInline
	PartBytes = partBytes
)

// Parts returns the number of value parts in the file.
func (b *Backend) Parts() (n int, err error) {
	err = b.view(func(t txn) error {
		n = 0
		return t.parts.ForEach(func(_, _ []byte) error { n++; return nil })
	})
	return n, err
}

// MostExpiring is the maximum number of keys that expire at once.
const MostExpiring = stepChanges

// Rest returns how long the writer sleeps if nothing wakes it; false is for ever. Everything is durable then.
func (b *Backend) Rest(ctx context.Context) (d time.Duration, wakes bool, err error) {
	r := &request{kind: borrow, returned: make(chan struct{})}
	if _, err := b.submit(ctx, r); err != nil {
		return 0, false, err
	}
	defer close(r.returned)
	d, wakes = r.writer.rest(time.Now())
	return d, wakes, nil
}

// Scheduled counts the entries of the file's expiry bucket.
func (b *Backend) Scheduled() (n int, err error) {
	err = b.view(func(t txn) error {
		if e := t.expiry(); e != nil {
			n = e.Stats().KeyN
		}
		return nil
	})
	return n, err
}

// FileVersion reads the format version of the file at path.
func FileVersion(path string) (version uint64, err error) {
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return 0, err
	}
	err = f.View(func(tx *bbolt.Tx) error {
		version = binary.BigEndian.Uint64(tx.Bucket([]byte(metaBucket)).Get([]byte(versionKey)))
		return nil
	})
	return version, errors.Join(err, f.Close())
}

// PutExpiry adds an entry to a file's expiry bucket: the value of a revision expires at a second since 1970.
func PutExpiry(tx *bbolt.Tx, second, revision int64) error {
	return tx.Bucket([]byte(expiryBucket)).Put(expiring{second, revision}.key(), nil)
}

// WithJournal makes a backend create a journal once it has made more than after transactions, with halves of the given size
// in bytes.
func (o Options) WithJournal(half, after int64) Options {
	o.half, o.after = half, after
	return o
}

// Journaled reports whether WithJournal made the options.
func (o Options) Journaled() bool { return o.half != 0 }

// JournalRecord is a record of a journal: its position and its content.
type JournalRecord struct{ At, Size, First, Last int64 }

// Journal returns the records in the journal of the file at path that the trees do not have, in order. It also returns where
// in the file the journal begins and ends; 0 if there is none.
func Journal(path string) (records []JournalRecord, from, to int64, err error) {
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return nil, 0, 0, err
	}
	err = f.View(func(tx *bbolt.Tx) error {
		s, err := checkContent(tx)
		if err != nil {
			return err
		}
		j, err := findJournal(tx, f.file)
		if err != nil || j == nil {
			return err
		}
		from, to = j.at, j.at+2*j.half
		region := make([]byte, to-from)
		if _, err := f.file.ReadAt(region, from); err != nil {
			return err
		}
		for at := int64(0); at < to-from; at += recordBlock {
			if r, size, ok := j.find(region[at:]); ok && r.last > s.revision {
				records = append(records, JournalRecord{from + at, recordHeader + int64(len(r.changes)), r.first, r.last})
				at += size - recordBlock
			}
		}
		return nil
	})
	slices.SortFunc(records, func(a, b JournalRecord) int { return cmp.Compare(a.First, b.First) })
	return records, from, to, errors.Join(err, f.Close())
}

// JournalReader returns a func that reports the revision at which a file opens. The content of the file is that at path, with
// another journal.
func JournalReader(path string) (opens func(content []byte) (int64, error), err error) {
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		return nil, err
	}
	err = f.View(func(tx *bbolt.Tx) error {
		s, err := checkContent(tx)
		if err != nil {
			return err
		}
		j, err := findJournal(tx, f.file)
		opens = func(content []byte) (int64, error) {
			changes, _, err := j.read(bytes.NewReader(content), s)
			return s.revision + int64(len(changes)), err
		}
		return err
	})
	return opens, errors.Join(err, f.Close())
}

// SettleSome writes the first changes in the journal of the file at path, at most limit, into its trees, and returns how many
// are left.
func SettleSome(path string, limit int) (left int, err error) {
	f, err := openDB(path, openOptions{})
	if err != nil {
		return 0, err
	}
	err = f.Update(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err == nil {
			left, err = t.settle(f.file, limit)
		}
		return err
	})
	return left, errors.Join(err, f.Close())
}
