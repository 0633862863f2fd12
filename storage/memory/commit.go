package memory

import (
	"container/heap"
	"context"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// Commit implements storage.Backend.
func (b *Backend) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if err := ctx.Err(); err != nil {
		return storage.CommitResult{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return storage.CommitResult{}, storage.ErrClosed
	}
	it, _ := b.items.Get(c.Key)
	found := it != nil && !it.now.deleted
	if !expected(c, it, found) {
		res := storage.CommitResult{Revision: b.revision, Found: found}
		if found {
			res.Current = it.kv(it.now)
		}
		return res, storage.ErrConflict
	}
	if c.Delete && !found {
		return storage.CommitResult{Revision: b.revision}, nil
	}
	b.apply(c, it, found, time.Now())
	return storage.CommitResult{Revision: b.revision}, nil
}

func expected(c storage.Commit, it *item, found bool) bool {
	switch {
	case c.Expect == storage.AnyRevision:
		return true
	case !found:
		return c.Expect == 0 && !c.Delete
	}
	return it.now.revision == c.Expect
}

// apply makes the change, whose conditions are met, and wakes the feeds. The caller holds mu.
func (b *Backend) apply(c storage.Commit, it *item, found bool, now time.Time) {
	b.revision++
	e := entry{revision: b.revision, at: now, bytes: entryBytes + int64(len(c.Key)+len(c.Value))}
	v := version{revision: b.revision, value: c.Value, deleted: c.Delete, expiring: c.TTL > 0 && !c.Delete}
	if c.Delete {
		v.value = nil
	}
	switch {
	case it == nil:
		it = &item{key: c.Key, now: v}
		b.items.Set(c.Key, it)
	default:
		if found {
			prev := it.kv(it.now)
			e.prev = &prev
		} else {
			b.dead--
		}
		it.old = append(it.old, it.now)
		it.now = v
	}
	if v.deleted {
		b.dead++
	}
	e.item, e.version = it, v
	b.log.append(e)
	b.trim(now)
	if v.expiring {
		b.expireAt(c.Key, v.revision, now.Add(c.TTL))
	}
	b.idle.wake(c.Key, b.revision)
}

// expire deletes the keys that are due and sets the timer again.
func (b *Backend) expire() {
	defer b.expiring.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	b.expiry.armed = time.Time{}
	for now := time.Now(); len(b.expiry.due) > 0 && !b.expiry.due[0].at.After(now); {
		d := heap.Pop(&b.expiry.due).(deadline)
		it, ok := b.items.Get(d.key)
		if ok && !it.now.deleted && it.now.revision == d.revision {
			b.apply(storage.Commit{Key: d.key, Delete: true}, it, true, now)
		}
	}
	b.arm()
}

// Compact implements storage.Compactor.
func (b *Backend) Compact(ctx context.Context, revision int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.done:
		return storage.ErrClosed
	case revision > b.revision:
		return storage.ErrFuture
	case revision <= b.log.floor:
		return b.log.expired(revision)
	}
	for b.log.floor < revision {
		b.forget()
	}
	return nil
}

// trim removes what is outside the window from the log. The caller holds mu.
func (b *Backend) trim(now time.Time) {
	for b.log.len() > 1 && (b.log.bytes > b.opts.WindowBytes || now.Sub(b.log.first().at) > b.opts.Window) {
		b.forget()
	}
}

// forget drops the oldest change of the log and the versions that only older states have. The caller holds mu.
func (b *Backend) forget() {
	e := b.log.drop()
	it := e.item
	n := 0
	for n < len(it.old) && it.old[n].revision < e.version.revision {
		n++
	}
	if n < len(it.old) && e.version.deleted {
		n++ // the deletion itself: the key does not exist before the next version
	}
	clear(it.old[:n])
	it.old = it.old[n:]
	if len(it.old) == 0 {
		it.old = nil
		if it.now.deleted && it.now.revision == e.version.revision {
			b.items.Delete(it.key)
			b.dead--
		}
	}
}
