package etcd

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/storage"
)

// Replay implements storage.Replayer. A member of etcd sends a thousand revisions at a time to a watch that begins in the
// past, and pauses for a tenth of a second before the next ones (watchBatchMaxRevs in
// https://github.com/etcd-io/etcd/blob/main/server/storage/mvcc/watchable_store.go).
func (b *Backend) Replay() int64 { return 2000 }

// Oldest implements storage.Historian. Readers cannot get from etcd the revision at which it was compacted, and
// compact_rev_key only has the compactions of the servers that use it. So Oldest finds the first revision that can be read by
// a binary search, in which it counts one key at each revision. The number of counts is one more than the binary logarithm of
// the number of revisions since the last compaction that is known here. It is two if nothing was compacted since then. An
// etcd that was never compacted begins at revision 1.
func (b *Backend) Oldest(ctx context.Context) (int64, error) {
	known := b.compacted.Load()
	head, err := b.now(ctx, 0)
	if err != nil {
		return 0, err
	}
	// Revisions below oldest cannot be read, and never can again; retained could be read a moment ago.
	oldest, retained := max(known, 1), head.Header.Revision
	if known > retained { // etcd was restored to an older state
		oldest = 1
		b.compacted.CompareAndSwap(known, 0)
	}
	for at := oldest; oldest < retained; at = oldest + (retained-oldest)/2 {
		_, err := b.now(ctx, at)
		switch {
		case err == nil:
			retained = at
		case errors.Is(err, storage.ErrCompacted):
			oldest = at + 1
		default:
			return 0, err
		}
	}
	if oldest > 1 {
		b.learn(oldest)
	}
	return oldest, nil
}
