package servertest

import (
	"cmp"
	"context"
	"errors"
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
		return contested{b, i}, nil
	}
}

// contested is a Backend for whose keys a request may have rivals. It has the powers of the backend below.
type contested struct {
	storage.Backend
	i *interceptor
}

// Unwrap implements storage.Unwrapper.
func (c contested) Unwrap() storage.Backend { return c.Backend }

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
