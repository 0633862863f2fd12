package memory

import (
	"context"
	"sort"

	"github.com/keelson-dev/keelson/storage"
)

// at checks that the state at a revision can be read and returns its revision. The caller holds mu.
func (b *Backend) at(revision int64) (int64, error) {
	switch {
	case b.done:
		return 0, storage.ErrClosed
	case revision == 0:
		return b.revision, nil
	case revision > b.revision:
		return 0, storage.ErrFuture
	case revision < b.log.floor:
		return 0, b.log.expired(revision)
	}
	return revision, nil
}

// Get implements storage.Backend.
func (b *Backend) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if err := ctx.Err(); err != nil {
		return storage.GetResult{}, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	at, err := b.at(at)
	if err != nil {
		return storage.GetResult{}, err
	}
	res := storage.GetResult{Revision: at}
	if it, ok := b.items.Get(key); ok {
		if v, ok := it.at(at); ok {
			res.KV, res.Found = it.kv(v), true
		}
	}
	return res, nil
}

// Stat implements storage.Stater.
func (b *Backend) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if err := ctx.Err(); err != nil {
		return storage.Stat{}, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.done {
		return storage.Stat{}, storage.ErrClosed
	}
	out := storage.Stat{At: b.revision}
	if it, ok := b.items.Get(key); ok && !it.now.deleted {
		out.Revision = it.now.revision
	}
	return out, nil
}

// Range implements storage.Backend.
func (b *Backend) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if err := ctx.Err(); err != nil {
		return storage.RangeResult{}, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	at, err := b.at(r.At)
	if err != nil {
		return storage.RangeResult{}, err
	}
	res := storage.RangeResult{Revision: at}
	if r.To != "" && r.From >= r.To {
		return res, nil
	}
	fast := b.dead == 0 && at == b.revision // every item is a key of this state
	if fast {
		res.Count = b.between(r.From, r.To)
	}
	if r.CountOnly && fast {
		return res, nil
	}
	if fast {
		res.KVs = make([]storage.KV, 0, room(res.Count, r))
	}
	bytes := int64(0)
	full := func() bool { return r.Full(len(res.KVs), bytes) }
	b.items.Ascend(r.From, func(key string, it *item) bool {
		if r.To != "" && key >= r.To || fast && full() {
			return false
		}
		v, ok := it.at(at)
		if !ok {
			return true
		}
		if !full() {
			res.KVs = append(res.KVs, it.kv(v))
			bytes += int64(len(v.value))
		}
		if fast {
			return true
		}
		res.Count++
		return !r.Enough(len(res.KVs), bytes, res.Count)
	})
	return res, nil
}

// room returns for how many of count values the result allocates memory at the start.
func room(count int64, r storage.Range) int64 {
	if r.Limit > 0 {
		count = min(count, int64(r.Limit))
	}
	if r.Bytes > 0 {
		const mean = 1 << 10 // estimated size of a value
		count = min(count, max(r.Bytes/mean, 1))
	}
	return count
}

// between returns the number of items in [from, to) without walking them. The caller holds mu.
func (b *Backend) between(from, to string) int64 {
	first := b.rank(from)
	last := b.items.Len()
	if to != "" {
		last = b.rank(to)
	}
	return int64(max(last-first, 0))
}

// rank returns the number of items before key.
func (b *Backend) rank(key string) int {
	return sort.Search(b.items.Len(), func(i int) bool {
		k, _, _ := b.items.GetAt(i)
		return k >= key
	})
}
