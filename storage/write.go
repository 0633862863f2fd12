package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
)

// Create implements Interface.
func (s *Store) Create(ctx context.Context, key string, obj runtime.Object, opts WriteOptions) (Record, error) {
	if err := s.checkKey(key); err != nil {
		return Record{}, err
	}
	body, read, err := s.encode(obj)
	if err != nil {
		return Record{}, err
	}
	if err := s.checkSize(body); err != nil {
		return Record{}, err
	}
	if opts.DryRun {
		res, err := s.backend.Get(ctx, s.root+key, 0)
		if err == nil && res.Found {
			err = ErrExists
		}
		if err != nil {
			return Record{}, err
		}
		return read.of(s.recordOf(key, 0, body, false)), nil
	}
	res, err := s.backend.Commit(ctx, Commit{Key: s.root + key, Value: body.Bytes(), TTL: s.ttl(opts)})
	if errors.Is(err, ErrConflict) {
		err = ErrExists
	}
	if err != nil {
		return Record{}, err
	}
	return read.of(s.written(key, res.Revision, body)), nil
}

// Update implements Interface.
func (s *Store) Update(ctx context.Context, key string, opts WriteOptions, change ChangeFunc) (Record, error) {
	return s.update(ctx, Record{Key: key}, opts, change)
}

// UpdateFrom implements Source. If from has no revision or no body, UpdateFrom is Update.
func (s *Store) UpdateFrom(ctx context.Context, from Record, opts WriteOptions, change ChangeFunc) (Record, error) {
	return s.update(ctx, from, opts, change)
}

// update calls change with before, if it is a state, and then with the stored states, until an outcome is committed or needs
// no commit.
func (s *Store) update(ctx context.Context, before Record, opts WriteOptions, change ChangeFunc) (Record, error) {
	key := before.Key
	if s.checkKey(key) != nil {
		return Record{}, ErrNotFound
	}
	current := false // before is known to be the stored state
	if before.Revision <= 0 || before.Body.Size() == 0 {
		var err error
		if before, err = s.current(ctx, key); err != nil {
			return Record{}, err
		}
		current = true
	}
	for {
		after, commit, err := s.plan(ctx, before, opts, change)
		if err != nil || commit == nil || opts.DryRun {
			if current || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return after, err
			}
			now, failed := s.changed(ctx, before)
			if failed != nil {
				return Record{}, failed
			}
			if now.Revision == before.Revision {
				return after, err
			}
			before, current = now, true
			continue
		}
		commit.TTL = s.ttl(opts)
		done, err := s.backend.Commit(ctx, *commit)
		switch {
		case err == nil && commit.Delete:
			after.Revision = done.Revision
			return after, nil
		case err == nil:
			return after.read.of(s.written(key, done.Revision, after.Body)), nil
		case !errors.Is(err, ErrConflict):
			return Record{}, err
		}
		if err := ctx.Err(); err != nil {
			return Record{}, err
		}
		if before, err = s.present(done.Current, done.Found); err != nil {
			return Record{}, err
		}
		current = true
	}
}

// ttl returns the TTL of what a write stores.
func (s *Store) ttl(opts WriteOptions) time.Duration {
	if opts.TTL != 0 {
		return opts.TTL
	}
	return s.opts.TTL
}

// current reads the record under a key.
func (s *Store) current(ctx context.Context, key string) (Record, error) {
	res, err := s.get(ctx, key, 0)
	if err != nil {
		return Record{}, err
	}
	return s.present(res.KV, res.Found)
}

func (s *Store) present(kv KV, found bool) (Record, error) {
	if !found {
		return Record{}, ErrNotFound
	}
	return s.record(kv)
}

// changed returns before if it is the stored state, and otherwise the stored record.
func (s *Store) changed(ctx context.Context, before Record) (Record, error) {
	if s.stater != nil {
		now, err := s.stater.Stat(ctx, s.root+before.Key)
		switch {
		case err != nil:
			return Record{}, err
		case now.Revision == 0:
			return Record{}, ErrNotFound
		case now.Revision == before.Revision:
			return before, nil
		}
	}
	return s.current(ctx, before.Key)
}

// DeleteUnreadable implements UnreadableDeleter.
func (s *Store) DeleteUnreadable(ctx context.Context, key string, opts WriteOptions) (int64, error) {
	if s.checkKey(key) != nil {
		return 0, ErrNotFound
	}
	res, err := s.backend.Get(ctx, s.root+key, 0)
	if err != nil {
		return 0, err
	}
	for kv, found := res.KV, res.Found; ; {
		if !found {
			return 0, ErrNotFound
		}
		if err := s.readable(kv); err == nil {
			return 0, ErrReadable
		}
		if opts.DryRun {
			return kv.Revision, nil
		}
		done, err := s.backend.Commit(ctx, Commit{Key: kv.Key, Expect: kv.Revision, Delete: true})
		if !errors.Is(err, ErrConflict) {
			return done.Revision, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		kv, found = done.Current, done.Found
	}
}

// readable returns nil if Update could decode an object from the value. It also returns nil if the error may pass: such an
// error comes from a conversion outside this process, and does not mean that the value is unreadable.
func (s *Store) readable(kv KV) error {
	r, err := s.record(kv)
	if err != nil {
		return err
	}
	if _, err = s.Decode(r); runtime.MayPass(err) {
		return nil
	}
	return err
}

// plan calls change with the state before. It returns the record after the change, whose revision is still that of before,
// and the commit that is needed; commit is nil if none is needed.
func (s *Store) plan(ctx context.Context, before Record, opts WriteOptions, change ChangeFunc) (after Record, commit *Commit, err error) {
	if err := opts.hold(before); err != nil {
		return Record{}, nil, err
	}
	current, err := s.Decode(before)
	if err != nil {
		return Record{}, nil, err
	}
	out, err := change(ctx, current, before)
	if err != nil {
		return Record{}, nil, err
	}
	commit = &Commit{Key: s.root + before.Key, Expect: before.Revision, Delete: out.Delete}
	switch {
	case out.Delete:
		return before, commit, nil
	case out.Object == nil:
		return before, nil, nil
	}
	body, read, err := s.encode(out.Object)
	if err != nil {
		return Record{}, nil, err
	}
	if !before.Stale && body.Size() == before.Body.Size() && bytes.Equal(body.Bytes(), before.Body.Bytes()) {
		return read.of(before), nil, nil
	}
	if err := s.checkSize(body); err != nil {
		return Record{}, nil, err
	}
	commit.Value = body.Bytes()
	return read.of(s.recordOf(before.Key, before.Revision, body, false)), commit, nil
}

// encode encodes an object. read has the object that the codec decoded from the document, or is nil.
func (s *Store) encode(obj runtime.Object) (d codec.Document, read *readBack, err error) {
	checked, ok := s.opts.Codec.(CheckedCodec)
	if !ok {
		d, err = s.opts.Codec.Encode(obj)
		return d, nil, err
	}
	d, of, err := checked.EncodeChecked(obj)
	if err == nil && of != nil {
		read = &readBack{}
		read.obj.Store(&of)
	}
	return d, read, err
}

// readBack is the object that was decoded from a record when the record was written. The caller that takes it owns it alone.
type readBack struct {
	obj atomic.Pointer[runtime.Object]
}

// of returns the record with this readBack.
func (b *readBack) of(r Record) Record {
	r.read = b
	return r
}

func (s *Store) checkSize(body codec.Document) error {
	if n := body.Size(); s.opts.MaxObjectBytes > 0 && n > s.opts.MaxObjectBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are stored", ErrTooLarge, n, s.opts.MaxObjectBytes)
	}
	return nil
}

// written makes the record of what a commit has stored, whose bytes are canonical.
func (s *Store) written(key string, revision int64, body codec.Document) Record {
	s.known.add(revision)
	s.known.raise(revision)
	return s.recordOf(key, revision, body, false)
}
