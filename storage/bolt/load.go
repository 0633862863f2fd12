package bolt

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/keelson-dev/keelson/storage"
)

// loadBytes is about the number of bytes that one transaction of Load writes.
const loadBytes = 8 << 20

// Load implements storage.Loader, in many transactions. Open refuses a file whose Load was not finished. Load needs 16 bytes
// of memory for each value, and for a temporary file in the same directory as much disk space as all values take. Errors
// besides those of the interface: ErrNoSpace, an invalid key or revision, and two values with the same revision (each commit
// changes one key, so a revision has at most one value). A value with a TTL is ErrUnsupported, because kvs does not say how
// much of the TTL is left; Snapshot and Restore keep TTLs. After an error other than ErrNotEmpty the Backend refuses every
// write.
func (b *Backend) Load(ctx context.Context, revision int64, kvs iter.Seq2[storage.KV, error]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if revision < firstRevision {
		return fmt.Errorf("bolt: load: revision %d is below %d, where a store begins", revision, firstRevision)
	}
	if revision > maxRevision {
		return fmt.Errorf("bolt: load: revision %d is above %d, the greatest that a store may begin with", revision, int64(maxRevision))
	}
	r := &request{kind: borrow, returned: make(chan struct{})}
	if _, err := b.submit(context.WithoutCancel(ctx), r); err != nil {
		return err
	}
	defer close(r.returned)
	if s := r.writer.state; s.revision != firstRevision || s.total != 0 || s.compacted != 0 {
		return fmt.Errorf("%w: it is at revision %d, and a new one at %d", storage.ErrNotEmpty, s.revision, firstRevision)
	}
	l := &load{writer: r.writer, ctx: ctx, revision: revision}
	b.refuse(errUnfinished) // also if kvs panics
	err := l.run(kvs)
	if err != nil {
		if noSpace(err) {
			err = fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
		}
		err = fmt.Errorf("bolt: load %s: %w: the content is incomplete, delete the file and copy again", b.path, err)
	}
	b.refuse(err)
	return err
}

func (b *Backend) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = err
}

// load is a Load in progress.
type load struct {
	*writer
	ctx      context.Context // of Load
	revision int64
	spool    *spool
	last     string       // the previous key
	batch    []storage.KV // keys and revisions for the index
	size     int          // size of the batch
}

// run writes the index in the order of the keys while the values arrive. It stores the values in a spool, and then writes the
// log in the order of the revisions. So every page is written once.
func (l *load) run(kvs iter.Seq2[storage.KV, error]) error {
	if err := l.begin(); err != nil {
		return err
	}
	var err error
	if l.spool, err = newSpool(l.b.path); err != nil {
		return err
	}
	defer l.spool.close()
	noSync := l.b.db.NoSync
	l.b.db.NoSync = true // the last transaction flushes everything
	defer func() { l.b.db.NoSync = noSync }()
	for kv, err := range kvs {
		if err == nil {
			err = l.add(kv)
		}
		if err != nil {
			return err
		}
	}
	if err := l.writeIndex(); err != nil {
		return err
	}
	total, err := l.writeLog()
	if err != nil {
		return err
	}
	return l.complete(total)
}

// begin writes the mark of an unfinished Load. It is durable before anything else is written.
func (l *load) begin() error {
	err := l.update(func(t txn) error {
		s, err := t.state()
		if err != nil {
			return err
		}
		s.clean = 0
		return errors.Join(t.meta.Put([]byte(unfinishedKey), []byte{1}), t.setState(s))
	})
	if err == nil && l.b.opts.Sync == NoSync {
		err = l.b.sync()
	}
	return err
}

// add adds one value.
func (l *load) add(kv storage.KV) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if err := checkKey(kv.Key); err != nil {
		return err
	}
	switch {
	case kv.Key <= l.last:
		return fmt.Errorf("key %q comes after %q: want key order", kv.Key, l.last)
	case kv.Revision <= 0 || kv.Revision > l.revision:
		return fmt.Errorf("key %q is at revision %d, want one from 1 to the store's, %d", kv.Key, kv.Revision, l.revision)
	case kv.Expiring:
		return fmt.Errorf("key %q has a TTL, and how long is not known: %w", kv.Key, storage.ErrUnsupported)
	}
	l.last = kv.Key
	if err := l.spool.add(kv); err != nil {
		return err
	}
	l.batch = append(l.batch, storage.KV{Key: kv.Key, Revision: kv.Revision})
	if l.size += len(kv.Key) + 32; l.size < loadBytes {
		return nil
	}
	return l.writeIndex()
}

// writeIndex writes the index of the batch.
func (l *load) writeIndex() error {
	err := l.update(func(t txn) error {
		t.index.FillPercent = 0.9 // it is appended to
		for _, kv := range l.batch {
			if err := t.index.Put(indexKey(nil, kv.Key, kv.Revision), []byte{flags(false, 0)}); err != nil {
				return err
			}
		}
		return nil
	})
	l.batch, l.size = l.batch[:0], 0
	return err
}

// writeLog writes the values in the order of their revisions, and returns the sum of their sizes.
func (l *load) writeLog() (total int64, err error) {
	places, err := l.spool.sorted()
	if err != nil {
		return 0, err
	}
	for len(places) > 0 && err == nil {
		if err = l.ctx.Err(); err != nil {
			break
		}
		err = l.update(func(t txn) error {
			for size := 0; size < loadBytes && len(places) > 0; places = places[1:] {
				key, value, err := l.spool.read(places[0].at)
				if err != nil {
					return err
				}
				size += len(key) + len(value)
				total += int64(len(key) + len(value))
				if len(value) > maxInline {
					value = bytes.Clone(value) // its parts must stay in memory until the transaction ends
				}
				if err := t.putEntry(places[0].revision, entry{total: total, key: key, value: value}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return total, err
}

// complete removes the mark and makes everything durable.
func (l *load) complete(total int64) error {
	l.b.db.NoSync = false
	var s state
	err := l.update(func(t txn) (err error) {
		if s, err = t.state(); err != nil {
			return err
		}
		s.revision, s.compacted, s.scrubbed = l.revision, l.revision, l.revision
		s.total, s.scrubbedTotal = total, total
		return errors.Join(t.meta.Delete([]byte(unfinishedKey)), t.setState(s))
	})
	if err != nil {
		return err
	}
	l.state = s
	l.b.tail.restart(s)
	return nil
}

// spool is a temporary file of values. If the system allows an open file without a name, the spool has none. It is removed
// when it is closed.
type spool struct {
	file   *os.File
	out    *bufio.Writer
	size   int64
	places []spooled
	buf    []byte
}

// spooled is the position of a revision's value in a spool.
type spooled struct{ revision, at int64 }

// newSpool makes a spool in the directory of path: if there is no room for it there, there is none for the store either.
func newSpool(path string) (*spool, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".keelson-load-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return &spool{file: f, out: bufio.NewWriterSize(f, 1<<20), buf: make([]byte, 4096)}, nil
}

func (s *spool) close() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // for systems where an open file cannot be removed
}

// add appends the lengths of key and value, the key and the value.
func (s *spool) add(kv storage.KV) error {
	s.places = append(s.places, spooled{kv.Revision, s.size})
	var head [8]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(kv.Key)))
	binary.BigEndian.PutUint32(head[4:], uint32(len(kv.Value)))
	s.size += int64(len(head) + len(kv.Key) + len(kv.Value))
	_, err := s.out.Write(head[:])
	if err == nil {
		_, err = s.out.WriteString(kv.Key)
	}
	if err == nil {
		_, err = s.out.Write(kv.Value)
	}
	return err
}

// sorted flushes the spool and returns all positions in the order of the revisions.
func (s *spool) sorted() ([]spooled, error) {
	if err := s.out.Flush(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.places, func(a, b spooled) int { return cmp.Compare(a.revision, b.revision) })
	for i := 1; i < len(s.places); i++ {
		if a, b := s.places[i-1], s.places[i]; a.revision == b.revision {
			one, _, err := s.read(a.at)
			if err != nil {
				return nil, err
			}
			one = bytes.Clone(one)
			other, _, err := s.read(b.at)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("keys %q and %q are both at revision %d: here a revision has one value", one, other, a.revision)
		}
	}
	return s.places, nil
}

// read returns the key and the value at a position, which are valid until the next call.
func (s *spool) read(at int64) (key, value []byte, err error) {
	n, err := s.file.ReadAt(s.buf, at)
	if n < 8 {
		return nil, nil, err
	}
	k, v := int(binary.BigEndian.Uint32(s.buf)), int(binary.BigEndian.Uint32(s.buf[4:]))
	size := 8 + k + v
	if size > n {
		s.buf = slices.Grow(s.buf[:n], size-n)
		s.buf = s.buf[:cap(s.buf)]
		if _, err := s.file.ReadAt(s.buf[n:size], at+int64(n)); err != nil {
			return nil, nil, err
		}
	}
	return s.buf[8 : 8+k], s.buf[8+k : size], nil
}
