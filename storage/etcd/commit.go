package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxGone is the maximum number of leases that a commit tries, if they do not exist any more.
const maxGone = 5

// Commit implements storage.Backend.
func (b *Backend) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if err := b.begin(); err != nil {
		return storage.CommitResult{}, err
	}
	defer b.calls.Done()
	if err := b.layout.check(c.Key); err != nil {
		return storage.CommitResult{}, err
	}
	if c.Delete || c.TTL <= 0 {
		return b.commit(ctx, c, 0)
	}
	for range maxGone {
		l, err := b.lease(ctx, c.TTL)
		if err != nil {
			return storage.CommitResult{}, err
		}
		res, err := b.commit(ctx, c, l.id)
		if !errors.Is(err, errNoLease) {
			return res, err
		}
		b.leases.forget(ctx, l) // nothing was written
	}
	return storage.CommitResult{}, fmt.Errorf("%w: etcd has lost %d leases, one after the other", storage.ErrUnavailable, maxGone)
}

func (b *Backend) commit(ctx context.Context, c storage.Commit, lease int64) (storage.CommitResult, error) {
	key := b.layout.key(c.Key)
	res, err := b.write(ctx, transaction(c, key, lease))
	if errors.Is(err, storage.ErrNoSpace) && !c.Delete {
		return b.madeAnyway(ctx, c, err)
	}
	if err != nil {
		return storage.CommitResult{}, err
	}
	out := storage.CommitResult{Revision: res.Header.Revision}
	if res.Succeeded && !(c.Delete && c.Expect == 0) {
		return out, nil
	}
	if kvs := res.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		out.Current, out.Found = kv(c.Key, kvs[0]), true
	}
	return out, storage.ErrConflict
}

// madeAnyway finds out whether a put that was refused for lack of space was made. etcd makes the put with which it reaches
// its quota, and refuses the later ones.
func (b *Backend) madeAnyway(ctx context.Context, c storage.Commit, noSpace error) (storage.CommitResult, error) {
	res, err := b.read(ctx, "get", b.small, &pb.RangeRequest{Key: b.layout.key(c.Key)})
	if err != nil {
		return storage.CommitResult{}, fmt.Errorf("%w: %v: it is unknown whether it was made: %v", storage.ErrUnavailable, noSpace, err)
	}
	switch kvs := res.Kvs; {
	case len(kvs) == 0 || !bytes.Equal(kvs[0].Value, c.Value) || c.Expect > 0 && kvs[0].ModRevision <= c.Expect:
		return storage.CommitResult{}, noSpace
	case c.Expect == storage.AnyRevision: // the value may be from an earlier commit
		return storage.CommitResult{}, fmt.Errorf("%w: %v: it is unknown whether it was made", storage.ErrUnavailable, noSpace)
	default:
		return storage.CommitResult{Revision: kvs[0].ModRevision}, nil
	}
}

// write makes a transaction that changes something. It sends it once.
func (b *Backend) write(ctx context.Context, req *pb.TxnRequest) (res *pb.TxnResponse, err error) {
	err = b.call(ctx, "commit", b.opts.RequestTimeout, b.small, false, func(ctx context.Context) (err error) {
		res, err = b.small.kv.Txn(ctx, req, b.callOptions...)
		return err
	})
	return res, err
}

// transaction returns the etcd transaction of a commit. If the condition is not met, the transaction reads the key.
func transaction(c storage.Commit, key []byte, lease int64) *pb.TxnRequest {
	read := []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}}
	var write *pb.RequestOp
	switch {
	case c.Delete && c.Expect == 0: // a deletion of a key that must be absent never succeeds
		return &pb.TxnRequest{Success: read}
	case c.Delete:
		write = &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
	default:
		write = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: c.Value, Lease: lease}}}
	}
	req := &pb.TxnRequest{Success: []*pb.RequestOp{write}}
	if c.Expect != storage.AnyRevision {
		req.Failure = read
		req.Compare = []*pb.Compare{{
			Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: c.Expect},
		}}
	}
	return req
}
