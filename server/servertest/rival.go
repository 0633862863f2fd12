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
	mu        sync.Mutex // guards all fields below
	conflicts int        // number of conflicting writes left
	refusal   error      // the error that the storage returns, or nil
	lost      bool       // the commit is made before refusal is returned
}

type rivalryKey struct{}

// add adds the effects of a fault.
func (v *rivalry) add(f *Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conflicts = max(v.conflicts, v.conflicts+f.Conflicts) // not less than before if the sum overflows
	if v.refusal == nil {
		v.refusal, v.lost = f.StorageError, f.Lost
	}
}

// next returns the effects for the next commit.
func (v *rivalry) next() (conflict bool, refusal error, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if conflict = v.conflicts > 0; conflict {
		v.conflicts--
	}
	return conflict, v.refusal, v.lost
}

// opener returns an opener of a storage that applies faults to commits. A server opens its storage with a context that ends with
// the server.
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

// contested is a Backend with conflicting writes. It has the optional methods of the backend below.
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

// rival makes a conflicting write: it writes the stored value of a key again. If the change creates the key, it writes the value
// of the change.
func (c contested) rival(ctx context.Context, change storage.Commit) error {
	now, err := c.Get(ctx, change.Key, 0)
	if err != nil {
		return err
	}
	first := storage.Commit{Key: change.Key, Expect: now.KV.Revision, Value: slices.Clone(now.KV.Value)}
	switch {
	case !now.Found && (change.Delete || change.Expect != 0):
		return nil // already deleted
	case !now.Found:
		first.Value, first.TTL = slices.Clone(change.Value), change.TTL
	case now.KV.Expiring:
		// Only the backend has the rest of the TTL. A delete has no TTL, and the key must not become permanent. Then the TTL is
		// an hour, as kube-apiserver has it for an event.
		first.TTL = cmp.Or(change.TTL, time.Hour)
	}
	if _, err = c.Backend.Commit(ctx, first); errors.Is(err, storage.ErrConflict) {
		return nil // another writer was faster, which is a conflict as well
	}
	return err
}
