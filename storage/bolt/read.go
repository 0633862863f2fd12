package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// A Range reads portions of about this size. Each portion is read in its own transaction, at the same revision, so that a
// long Range does not keep the writer from growing the file.
const (
	portionKeys  = 4096
	portionBytes = 4 << 20
)

// view runs fn in a read transaction. The transaction may see a state that is not durable yet: callers read at a revision
// that the tail has shown.
func (b *Backend) view(fn func(txn) error) error {
	err := guard(func() error {
		return b.db.View(func(tx *bbolt.Tx) error {
			t, err := newTxn(tx)
			if err != nil {
				return err
			}
			return fn(t)
		})
	})
	switch {
	case errors.Is(err, bbolterrors.ErrDatabaseNotOpen):
		return storage.ErrClosed
	case errors.Is(err, errDamaged):
		return b.fault("bolt: read", err)
	}
	return err
}

// expired returns the error for a revision that is no longer retained.
func expired(revision, oldest int64) error {
	return &storage.ExpiredError{Revision: revision, Oldest: oldest}
}

// read runs fn in read transactions at a revision: at, or the latest one shown when at is 0. It calls reset first, and again
// if compaction has overtaken the latest revision. It calls fn until fn returns done. The overlay that reset receives has the
// changes that the file may not have yet; it must be searched before the file.
func (b *Backend) read(ctx context.Context, at int64, reset func(revision int64, o *overlay), fn func(txn) (done bool, err error)) error {
	for {
		revision, o, err := b.at(ctx, at)
		if err != nil {
			return err
		}
		reset(revision, o)
		if err = b.readPortions(ctx, revision, fn); at != 0 || !errors.Is(err, storage.ErrCompacted) {
			return err
		}
	}
}

// at returns the revision of a read, and the overlay with the changes that the file may not have yet.
func (b *Backend) at(ctx context.Context, at int64) (int64, *overlay, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	now, err := b.tail.see()
	switch {
	case err != nil:
		return 0, nil, err
	case at == 0:
		return now.revision, now.overlay, nil
	case at > now.revision:
		return 0, nil, storage.ErrFuture
	case at < now.floor:
		return 0, nil, expired(at, now.floor)
	}
	return at, now.overlay, nil
}

func (b *Backend) readPortions(ctx context.Context, revision int64, fn func(txn) (bool, error)) error {
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := b.view(func(t txn) error {
			s, err := t.state()
			if err != nil {
				return err
			}
			if revision < s.compacted {
				return expired(revision, s.compacted)
			}
			done, err = fn(t)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Get implements storage.Backend.
func (b *Backend) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if err := checkRead(key); err != nil {
		return storage.GetResult{}, err
	}
	var res storage.GetResult
	var unflushed *change
	err := b.read(ctx, at, func(revision int64, o *overlay) {
		res = storage.GetResult{Revision: revision}
		unflushed = o.version(key, revision)
	}, func(t txn) (done bool, err error) {
		if unflushed != nil {
			res.KV, res.Found = unflushed.kv()
			return true, nil
		}
		found, err := t.version(key, res.Revision)
		if err != nil || found.live() == 0 {
			return true, err
		}
		res.KV, err = t.kvAt(key, found.live())
		res.Found = err == nil
		return true, err
	})
	if err != nil {
		return storage.GetResult{}, err
	}
	return res, nil
}

// Stat implements storage.Stater.
func (b *Backend) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if err := checkRead(key); err != nil {
		return storage.Stat{}, err
	}
	var out storage.Stat
	var unflushed *change
	err := b.read(ctx, 0, func(revision int64, o *overlay) {
		out = storage.Stat{At: revision}
		unflushed = o.version(key, revision)
	}, func(t txn) (done bool, err error) {
		if unflushed != nil {
			if !unflushed.deleted {
				out.Revision = unflushed.revision
			}
			return true, nil
		}
		found, err := t.version(key, out.At)
		out.Revision = found.live()
		return true, err
	})
	if err != nil {
		return storage.Stat{}, err
	}
	return out, nil
}

// Known implements storage.Knower.
func (b *Backend) Known() (revision int64, ok bool) {
	now, err := b.tail.see()
	return now.revision, err == nil
}

// Oldest implements storage.Historian.
func (b *Backend) Oldest(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now, err := b.tail.see()
	if err != nil {
		return 0, err
	}
	return max(now.floor, firstRevision), nil
}

// Range implements storage.Backend.
func (b *Backend) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if r.To != "" && r.From >= r.To { // empty, but the result has a revision
		revision, _, err := b.at(ctx, r.At)
		return storage.RangeResult{Revision: revision}, err
	}
	var s *scan
	err := b.read(ctx, r.At, func(revision int64, o *overlay) {
		s = &scan{Range: r, next: []byte(r.From), res: storage.RangeResult{Revision: revision}}
		s.unflushed = o.between(r.From, r.To, revision)
	}, func(t txn) (bool, error) { return s.portion(t) })
	if err != nil {
		return storage.RangeResult{}, err
	}
	return s.res, nil
}

// scan is a Range in progress.
type scan struct {
	storage.Range
	next      []byte    // the key of the index at which the next portion begins
	unflushed []*change // changes that the file may not have: one for each key, in key order
	res       storage.RangeResult
	bytes     int64 // total size of the values in res
}

// portion continues at next and reports whether the Range is complete.
func (s *scan) portion(t txn) (done bool, err error) {
	var seek []byte
	size, c, values := 0, t.index.Cursor(), t.log.Cursor()
	k, v := c.Seek(s.next)
	for visited := 0; k != nil; visited++ {
		key, revision, err := splitIndexKey(k)
		switch {
		case err != nil:
			return true, err
		case s.To != "" && string(key) >= s.To:
			s.overlaid(nil)
			return true, nil
		case s.enough():
			return true, nil
		case visited == portionKeys || size > portionBytes:
			s.next = bytes.Clone(k)
			return false, nil
		case string(key) < s.From: // if From ends in NUL, all versions of the key without that NUL follow
			seek = append(append(seek[:0], key...), 1)
			k, v = c.Seek(seek)
			continue
		case revision > s.res.Revision:
			seek = indexKey(seek[:0], key, s.res.Revision)
			k, v = c.Seek(seek)
			continue
		case len(v) != 1:
			return true, fmt.Errorf("%w: version of key %q", errDamaged, key)
		}
		if !s.overlaid(key) && v[0]&deletedFlag == 0 {
			n, err := s.take(t, values, key, revision)
			if err != nil {
				return true, err
			}
			size += n
		}
		seek = append(append(seek[:0], key...), 1)
		if k, v = c.Next(); k != nil && bytes.Compare(k, seek) < 0 { // an older version: skip all versions of the key
			k, v = c.Seek(seek)
		}
	}
	s.overlaid(nil)
	return true, nil
}

// overlaid adds the values of the overlay up to key, or all of them if key is nil, and reports whether the overlay has one
// for key.
func (s *scan) overlaid(key []byte) (found bool) {
	for len(s.unflushed) > 0 && !found {
		c := s.unflushed[0]
		if key != nil && c.key > string(key) {
			return false
		}
		s.unflushed = s.unflushed[1:]
		found = key != nil && c.key == string(key)
		if kv, live := c.kv(); live && s.wanted() {
			s.add(kv)
		}
	}
	return found
}

// wanted counts a key and reports whether its value belongs to the result.
func (s *scan) wanted() bool {
	s.res.Count++
	return !s.Full(len(s.res.KVs), s.bytes)
}

func (s *scan) add(kv storage.KV) {
	s.res.KVs = append(s.res.KVs, kv)
	s.bytes += int64(len(kv.Value))
}

// enough reports whether no more keys need to be counted.
func (s *scan) enough() bool { return s.Enough(len(s.res.KVs), s.bytes, s.res.Count) }

// take counts a key. If its value is wanted, take reads it with a cursor of the log and adds it. It returns the size of what
// it added.
func (s *scan) take(t txn, values *bbolt.Cursor, key []byte, revision int64) (int, error) {
	if !s.wanted() {
		return 0, nil
	}
	e, err := changeAt(values, revision)
	if err != nil {
		return 0, err
	}
	kv, err := t.kv(string(key), revision, e)
	if err != nil {
		return 0, err
	}
	s.add(kv)
	return len(kv.Value), nil
}
