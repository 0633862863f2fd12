package servertest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// rivalry is what faults do to the commits of one request. It is in the request's context, which reaches the storage.
type rivalry struct {
	mu        sync.Mutex // guards all below
	conflicts int        // rivals that are still to come
	refusal   error      // what the storage answers; nil: what it does
	lost      bool       // the commit is made nevertheless
}

type rivalryKey struct{}

// add adds what a fault does.
func (v *rivalry) add(f *Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conflicts = max(v.conflicts, v.conflicts+f.Conflicts) // there may be no greater number
	if v.refusal == nil {
		v.refusal, v.lost = f.StorageError, f.Lost
	}
}

// next says what happens to the next commit.
func (v *rivalry) next() (conflict bool, refusal error, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if conflict = v.conflicts > 0; conflict {
		v.conflicts--
	}
	return conflict, v.refusal, v.lost
}

// opener makes an opener of the storage that open opens, with what faults do to commits. A server opens its storage in a
// context that lasts as long as itself.
func (i *interceptor) opener(open storage.Opener) storage.Opener {
	return func(ctx context.Context) (storage.Backend, error) {
		b, err := open(ctx)
		if err != nil {
			return nil, err
		}
		i.ended = ctx.Done()
		c := contested{b, i}
		if r, ok := b.(storage.Readier); ok {
			return contestedReadier{c, r}, nil
		}
		return c, nil
	}
}

// contested is a Backend for whose keys a request may have rivals.
//
// It has every optional power, since it must lose none: where the backend has not, it does what the package storage does
// without (Oldest, Known, Stat), finds nothing wrong (Health), or says ErrUnsupported, as storage has it (Compact, Load,
// Raise). Only Ready would show, as a health check, and is there when the backend has it. Feeds are the backend's own.
type contested struct {
	storage.Backend
	i *interceptor
}

var (
	_ storage.Compactor = contested{}
	_ storage.Historian = contested{}
	_ storage.Replayer  = contested{}
	_ storage.Stater    = contested{}
	_ storage.Knower    = contested{}
	_ storage.Holder    = contested{}
	_ storage.Healther  = contested{}
	_ storage.Loader    = contested{}
	_ storage.Raiser    = contested{}
)

// contestedReadier is contested, for a Backend that is a Readier.
type contestedReadier struct {
	contested
	storage.Readier
}

// Commit implements storage.Backend.
func (c contested) Commit(ctx context.Context, change storage.Commit) (storage.CommitResult, error) {
	if c.i.now.Load() == nil {
		return c.Backend.Commit(ctx, change)
	}
	v, _ := ctx.Value(rivalryKey{}).(*rivalry)
	if v == nil {
		return c.Backend.Commit(ctx, change)
	}
	conflict, refusal, lost := v.next()
	if conflict {
		if err := c.rival(ctx, change); err != nil {
			return storage.CommitResult{}, err
		}
	}
	if refusal != nil && !lost {
		return storage.CommitResult{}, refusal
	}
	done, err := c.Backend.Commit(ctx, change)
	if err == nil && refusal != nil {
		return storage.CommitResult{}, refusal
	}
	return done, err
}

// rival commits what is stored under the key of a change once more; or, where the change creates it, what it is to be.
func (c contested) rival(ctx context.Context, change storage.Commit) error {
	now, err := c.Get(ctx, change.Key, 0)
	if err != nil {
		return err
	}
	first := storage.Commit{Key: change.Key, Expect: now.KV.Revision, Value: slices.Clone(now.KV.Value)}
	switch {
	case !now.Found && (change.Delete || change.Expect != 0):
		return nil // it is gone already
	case !now.Found:
		first.Value, first.TTL = slices.Clone(change.Value), change.TTL
	case now.KV.Expiring:
		// What is left of its own only the backend knows. A delete brings none, and must not leave behind what stays
		// for ever: then it is an hour, which is what kube-apiserver gives an event.
		first.TTL = cmp.Or(change.TTL, time.Hour)
	}
	if _, err = c.Backend.Commit(ctx, first); errors.Is(err, storage.ErrConflict) {
		return nil // somebody else has been quicker, who will do as a rival
	}
	return err
}

// Compact implements storage.Compactor.
func (c contested) Compact(ctx context.Context, revision int64) error {
	if b, ok := c.Backend.(storage.Compactor); ok {
		return b.Compact(ctx, revision)
	}
	return storage.ErrUnsupported
}

// Oldest implements storage.Historian.
func (c contested) Oldest(ctx context.Context) (int64, error) {
	if b, ok := c.Backend.(storage.Historian); ok {
		return b.Oldest(ctx)
	}
	// It may retain anything, and says so only of what it does not.
	const first = 1
	_, err := c.Get(ctx, "/", first)
	var expired *storage.ExpiredError
	switch {
	case err == nil:
		return first, nil
	case errors.As(err, &expired) && expired.Oldest > 0:
		return expired.Oldest, nil
	case errors.Is(err, storage.ErrCompacted):
		now, err := c.Get(ctx, "/", 0)
		return now.Revision, err
	}
	return 0, err
}

// Replay implements storage.Replayer.
func (c contested) Replay() int64 {
	if b, ok := c.Backend.(storage.Replayer); ok {
		return b.Replay()
	}
	return math.MaxInt64
}

// Stat implements storage.Stater.
func (c contested) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if b, ok := c.Backend.(storage.Stater); ok {
		return b.Stat(ctx, key)
	}
	res, err := c.Get(ctx, key, 0)
	return storage.Stat{Revision: res.KV.Revision, At: res.Revision}, err
}

// Known implements storage.Knower.
func (c contested) Known() (revision int64, ok bool) {
	if b, ok := c.Backend.(storage.Knower); ok {
		return b.Known()
	}
	return 0, false
}

// Holds implements storage.Holder.
func (c contested) Holds() bool {
	b, ok := c.Backend.(storage.Holder)
	return ok && b.Holds()
}

// Health implements storage.Healther.
func (c contested) Health(ctx context.Context) error {
	if b, ok := c.Backend.(storage.Healther); ok {
		return b.Health(ctx)
	}
	return nil
}

// Load implements storage.Loader.
func (c contested) Load(ctx context.Context, revision int64, kvs iter.Seq2[storage.KV, error]) error {
	if b, ok := c.Backend.(storage.Loader); ok {
		return b.Load(ctx, revision, kvs)
	}
	return storage.ErrUnsupported
}

// Raise implements storage.Raiser.
func (c contested) Raise(ctx context.Context, revision, limit int64) error {
	if b, ok := c.Backend.(storage.Raiser); ok {
		return b.Raise(ctx, revision, limit)
	}
	return storage.ErrUnsupported
}
