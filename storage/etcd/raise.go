package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// raisers is the number of concurrent empty commits. etcd writes commits that wait together at once.
const raisers = 128

// Raise implements storage.Raiser. The empty commits write a key that no store shows, and remove it at the end. Raise may be
// called again after an error.
func (b *Backend) Raise(ctx context.Context, revision, limit int64) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.calls.Done()
	res, err := b.now(ctx, 0)
	if err != nil {
		return err
	}
	current := res.Header.Revision
	needed := max(revision-current+1, 0)
	if needed > limit && needed > 0 {
		return &storage.RaiseError{Current: current, Wanted: revision, Needed: needed, Limit: limit}
	}
	if needed > 0 {
		if err := b.commitEmpty(ctx, needed-1); err != nil {
			return err
		}
		if current, err = b.removeRaiseKey(ctx); err != nil {
			return err
		}
	}
	if err := b.compact(ctx, current); !errors.Is(err, storage.ErrCompacted) { // ErrCompacted means that an earlier Raise has done it
		return err
	}
	return nil
}

// commitEmpty writes raiseKey n times, and at least once.
func (b *Backend) commitEmpty(ctx context.Context, n int64) error {
	n = max(n, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	put := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(raiseKey)},
	}}}}
	var all sync.WaitGroup
	var begun atomic.Int64
	for range min(n, raisers) {
		all.Go(func() {
			for begun.Add(1) <= n && ctx.Err() == nil {
				if _, err := b.write(ctx, put); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// removeRaiseKey makes the last empty commit and returns its revision.
func (b *Backend) removeRaiseKey(ctx context.Context) (int64, error) {
	res, err := b.write(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(raiseKey)},
	}}}})
	return res.GetHeader().GetRevision(), err
}
