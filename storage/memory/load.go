package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/keelson-dev/keelson/storage"
	"github.com/tidwall/btree"
)

// firstRevision is the revision of a backend to which nothing was ever written.
const firstRevision = 1

// Load implements storage.Loader. It loads everything or nothing: after an error the backend is unchanged. Until Load
// returns, other calls see the empty backend.
func (b *Backend) Load(ctx context.Context, revision int64, kvs iter.Seq2[storage.KV, error]) error {
	if err := b.loadable(); err != nil {
		return err
	}
	var items btree.Map[string, *item]
	last := ""
	for kv, err := range kvs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = checkLoaded(kv, last, revision)
		}
		if err != nil {
			return err
		}
		last = kv.Key
		items.Set(kv.Key, &item{key: kv.Key, now: version{revision: kv.Revision, value: kv.Value}})
	}
	if revision < firstRevision {
		return fmt.Errorf("memory: load: revision %d is below %d, where a store begins", revision, firstRevision)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.unwritten(); err != nil {
		return err
	}
	b.items, b.revision, b.log = items, revision, changelog{floor: revision}
	b.loaded = true
	return nil
}

// loadable returns nil if the backend may be loaded now.
func (b *Backend) loadable() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.unwritten()
}

// unwritten returns nil if nothing was ever written or loaded. The caller holds mu.
func (b *Backend) unwritten() error {
	switch {
	case b.done:
		return storage.ErrClosed
	case b.loaded || b.revision != firstRevision:
		return fmt.Errorf("%w: it is at revision %d, and a new one at %d", storage.ErrNotEmpty, b.revision, firstRevision)
	}
	return nil
}

// checkLoaded returns an error for a value that no backend can have. last is the previous key, "" for none.
func checkLoaded(kv storage.KV, last string, revision int64) error {
	switch {
	case kv.Key == "":
		return errors.New("memory: load: a key is empty")
	case kv.Key <= last:
		return fmt.Errorf("memory: load: key %q comes after %q: want key order", kv.Key, last)
	case kv.Revision <= 0 || kv.Revision > revision:
		return fmt.Errorf("memory: load: key %q is at revision %d, want one from 1 to the store's, %d", kv.Key, kv.Revision, revision)
	case kv.Expiring:
		return fmt.Errorf("memory: load: key %q has a TTL, which is not known", kv.Key)
	}
	return nil
}
