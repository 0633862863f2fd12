package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Compact implements storage.Compactor. It compacts the whole etcd.
func (b *Backend) Compact(ctx context.Context, revision int64) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.calls.Done()
	return b.compact(ctx, revision)
}

func (b *Backend) compact(ctx context.Context, revision int64) error {
	if revision < 1 {
		return b.expired(storage.ErrCompacted, revision)
	}
	err := b.call(ctx, "compact", b.opts.RequestTimeout, b.small, false, func(ctx context.Context) error {
		_, err := b.small.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision}, b.callOptions...)
		return err
	})
	switch {
	case err == nil:
		b.learn(revision)
	case errors.Is(err, errDenied):
		return fmt.Errorf("%w: etcd lets only users with the role root compact: grant it, or set Options.CompactionInterval to -1 and let another user do it", errDenied)
	}
	return b.expired(err, revision)
}

// compactor compacts once in each interval, unless another server does, until the backend is closed.
func (b *Backend) compactor() {
	var t turn
	for sleep(b.ctx, b.opts.CompactionInterval) {
		revision, err := t.take(b.ctx, b)
		if b.ctx.Err() != nil {
			return
		}
		if hook := b.opts.Hooks.Compacted; hook != nil && (revision != 0 || err != nil) {
			hook(revision, err)
		}
	}
}

// turn is one server's part in the agreement on compaction, which is that of kube-apiserver. The version of compactKey counts
// the intervals. A server that finds the version unchanged after an interval raises it, and compacts at the revision that was
// current an interval ago. A server that finds another version was overtaken by another server, and remembers the version for
// the next time.
//
// A server without the permission to compact leaves this to others.
type turn struct {
	version  int64 // of compactKey
	revision int64 // current an interval ago; 0 before the first interval
	denied   bool  // etcd has refused this server's last compaction
}

// take does the work of one interval. It returns the revision at which it compacted, 0 when it was another server's turn.
func (t *turn) take(ctx context.Context, b *Backend) (int64, error) {
	if t.denied {
		if err := b.compact(ctx, 1); err != nil && !errors.Is(err, storage.ErrCompacted) { // compacts nothing: it is a test of the permission
			return 0, err
		}
		*t = turn{}
	}
	key := []byte(compactKey)
	req := &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_Version{Version: t.version},
		}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: key, Value: strconv.AppendInt(nil, t.revision, 10)},
		}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
	res, err := b.write(ctx, req)
	if err != nil {
		return 0, err
	}
	before := t.revision
	t.revision = res.Header.Revision
	if !res.Succeeded {
		t.version = 0
		if kvs := res.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			t.version = kvs[0].Version
		}
		return 0, nil
	}
	t.version++
	if before == 0 {
		return 0, nil
	}
	if err := b.compact(ctx, before); err != nil && !errors.Is(err, storage.ErrCompacted) {
		t.denied = errors.Is(err, errDenied)
		return before, err
	}
	return before, nil
}
