package etcd_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// opened opens a backend of a fake member, and closes it with the test.
func opened(t *testing.T, m *member, o etcd.Options) *etcd.Backend {
	t.Helper()
	m.version = "3.7.3"
	o.Endpoints, o.CompactionInterval = []string{m.serve(t, nil)}, -1
	b, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	m.reads.Store(0)
	return b
}

func TestAWriteIsMadeOnce(t *testing.T) {
	var fail atomic.Value
	m := &member{txn: func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) { return nil, fail.Load().(error) }}
	b := opened(t, m, etcd.Options{})
	for i, err := range []error{
		rpctypes.ErrGRPCTimeout, rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCDeadlineExceeded, rpctypes.ErrGRPCCanceled,
		status.Error(codes.Unavailable, "gone"), status.Error(codes.Canceled, "by a proxy"),
		status.Error(codes.Unknown, "raft proposal dropped"), status.Error(codes.Unknown, "raft: stopped"),
	} {
		fail.Store(err)
		if _, got := b.Commit(t.Context(), storage.Commit{Key: "a"}); !errors.Is(got, storage.ErrUnavailable) {
			t.Errorf("%v became %v, want ErrUnavailable", err, got)
		}
		if n := m.writes.Load(); n != int64(i+1) {
			t.Fatalf("after %v there are %d writes, want %d", err, n, i+1)
		}
	}
}

func TestAWriteThatWasRefusedForItsTokenIsMadeAgain(t *testing.T) {
	m := &member{}
	m.txn = func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
		if m.writes.Load() < 3 {
			return nil, rpctypes.ErrGRPCAuthOldRevision
		}
		return &pb.TxnResponse{Header: m.header(), Succeeded: true}, nil
	}
	b := opened(t, m, etcd.Options{})
	if res, err := b.Commit(t.Context(), storage.Commit{Key: "a"}); err != nil || res.Revision != 7 {
		t.Errorf("%+v, %v", res, err)
	}
	m.txn = func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
		return nil, rpctypes.ErrGRPCAuthOldRevision
	}
	m.writes.Store(0)
	if _, err := b.Commit(t.Context(), storage.Commit{Key: "a"}); err == nil || m.writes.Load() > 10 {
		t.Errorf("refused for ever: %v after %d writes", err, m.writes.Load())
	}
}

func TestAReadIsTriedAgain(t *testing.T) {
	m := &member{}
	b := opened(t, m, etcd.Options{})
	m.read = func(context.Context) error {
		if m.reads.Load() < 4 {
			return rpctypes.ErrGRPCNoLeader
		}
		return nil
	}
	if res, err := b.Get(t.Context(), "a", 0); err != nil || res.Revision != 7 || m.reads.Load() != 4 {
		t.Errorf("%+v, %v after %d reads", res, err, m.reads.Load())
	}
	m.read = func(context.Context) error { return rpctypes.ErrGRPCCompacted }
	m.reads.Store(0)
	var expired *storage.ExpiredError
	if _, err := b.Get(t.Context(), "a", 3); !errors.As(err, &expired) || expired.Revision != 3 || m.reads.Load() != 1 {
		t.Errorf("%v after %d reads, want an ExpiredError after one", err, m.reads.Load())
	}
}

func TestTimeouts(t *testing.T) {
	hang := func(ctx context.Context) error { // like etcd, which has the deadline and may be early
		deadline, _ := ctx.Deadline()
		select {
		case <-time.After(time.Until(deadline) - 20*time.Millisecond):
		case <-ctx.Done():
		}
		return rpctypes.ErrGRPCDeadlineExceeded
	}
	m := &member{txn: func(ctx context.Context, _ *pb.TxnRequest) (*pb.TxnResponse, error) { return nil, hang(ctx) }}
	b := opened(t, m, etcd.Options{RequestTimeout: 200 * time.Millisecond, RangeTimeout: 300 * time.Millisecond})
	m.read = hang
	get := func(ctx context.Context) error { _, err := b.Get(ctx, "a", 0); return err }
	list := func(ctx context.Context) error { _, err := b.Range(ctx, storage.Range{From: "a", To: "b"}); return err }
	count := func(ctx context.Context) error {
		_, err := b.Range(ctx, storage.Range{From: "a", To: "b", CountOnly: true})
		return err
	}
	commit := func(ctx context.Context) error { _, err := b.Commit(ctx, storage.Commit{Key: "a"}); return err }
	watch := func(ctx context.Context) error { _, err := b.Watch(ctx, storage.WatchRange{From: 5}); return err }
	for name, test := range map[string]struct {
		call func(context.Context) error
		text string
	}{
		"get": {get, "200ms"}, "range": {list, "300ms"}, "count": {count, "200ms"}, "commit": {commit, "200ms"}, "watch": {watch, "200ms"},
	} {
		if err := test.call(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want ErrUnavailable after %s", name, err, test.text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := test.call(ctx); err != context.DeadlineExceeded {
			t.Errorf("%s: %v, want the caller's own error", name, err)
		}
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if err := test.call(ctx); err != context.Canceled {
			t.Errorf("%s: %v, want the caller's own error", name, err)
		}
	}
}

func TestLeasesAreShared(t *testing.T) {
	var used []int64
	gone := int64(0)
	m := &member{}
	m.txn = func(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
		lease := r.Success[0].GetRequestPut().Lease
		if lease == gone && gone != 0 {
			return nil, rpctypes.ErrGRPCLeaseNotFound
		}
		used = append(used, lease)
		return &pb.TxnResponse{Header: m.header(), Succeeded: true}, nil
	}
	var ttls []int64
	m.granted = func(ttl int64) { ttls = append(ttls, ttl) }
	b := opened(t, m, etcd.Options{LeaseMaxObjects: 2})
	commit := func(ttl time.Duration) {
		t.Helper()
		if _, err := b.Commit(t.Context(), storage.Commit{Key: "a", Expect: storage.AnyRevision, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ttl := range []time.Duration{time.Hour, time.Hour, time.Hour, time.Second, time.Second, time.Hour, 0} {
		commit(ttl)
	}
	// The lease of a TTL of a second is too short to be shared.
	if want := []int64{1, 1, 2, 3, 4, 2, 0}; !slices.Equal(used, want) {
		t.Errorf("the leases were %v, want %v", used, want)
	}
	if ttls[0] != 3660 || ttls[2] != 1 {
		t.Errorf("the leases last %v seconds", ttls)
	}
	used, gone = nil, m.leases.Load()+1
	m.writes.Store(0)
	commit(30 * time.Minute)
	if want := []int64{gone + 1}; !slices.Equal(used, want) || m.writes.Load() != 2 {
		t.Errorf("after a lease that was gone: %v, want %v", used, want)
	}
}

func TestLeasesThatAreAlwaysGone(t *testing.T) {
	m := &member{txn: func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}}
	b := opened(t, m, etcd.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	_, err := b.Commit(ctx, storage.Commit{Key: "a", TTL: time.Hour})
	if !errors.Is(err, storage.ErrUnavailable) || m.writes.Load() > 10 {
		t.Errorf("%v after %d writes, want ErrUnavailable after a few", err, m.writes.Load())
	}
}

func TestRaise(t *testing.T) {
	m := &member{}
	b := opened(t, m, etcd.Options{}) // at revision 7
	for _, wanted := range []int64{7, math.MaxInt64} {
		var many *storage.RaiseError
		err := b.Raise(t.Context(), wanted, 0)
		if !errors.As(err, &many) || many.Current != 7 || many.Needed != wanted-6 || m.writes.Load() != 0 {
			t.Errorf("above %d: %v after %d writes, want a RaiseError", wanted, err, m.writes.Load())
		}
	}
	// The revision is reached already, and an earlier Raise has compacted.
	m.compact = func() error { return rpctypes.ErrGRPCCompacted }
	if err := b.Raise(t.Context(), 6, 0); err != nil {
		t.Errorf("a second time: %v", err)
	}
	m.compact = func() error { return rpctypes.ErrGRPCNoLeader }
	if err := b.Raise(t.Context(), 6, 0); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("not compacted: %v, want ErrUnavailable", err)
	}
}

func TestCloseWaitsForCommits(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	m := &member{}
	m.txn = func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
		close(begun)
		<-finish
		return &pb.TxnResponse{Header: m.header(), Succeeded: true}, nil
	}
	b := opened(t, m, etcd.Options{})
	committed, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := b.Commit(t.Context(), storage.Commit{Key: "a"})
		committed <- err
	}()
	<-begun
	go func() { closed <- b.Close() }()
	for {
		if _, err := b.Get(t.Context(), "a", 0); errors.Is(err, storage.ErrClosed) {
			break
		}
	}
	select {
	case err := <-closed:
		t.Errorf("Close returned before the commit: %v", err)
	default:
	}
	close(finish)
	if err := <-committed; err != nil {
		t.Errorf("the commit under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := b.Commit(t.Context(), storage.Commit{Key: "a"}); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	_, get := b.Get(t.Context(), "", 0)
	_, old := b.Get(t.Context(), "a", -1)
	_, list := b.Range(t.Context(), storage.Range{At: -1})
	_, commit := b.Commit(t.Context(), storage.Commit{})
	_, watch := b.Watch(t.Context(), storage.WatchRange{From: -1})
	for i, err := range []error{get, old, list, commit, watch} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("bad call %d after Close: %v", i, err)
		}
	}
	if err := b.Health(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("Health after Close: %v", err)
	}
}

func TestCloseEndsReads(t *testing.T) {
	m := &member{}
	b := opened(t, m, etcd.Options{})
	begun := make(chan struct{}, 10)
	m.read = func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.Get(t.Context(), "a", 0)
		done <- err
	}()
	<-begun
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, storage.ErrClosed) {
		t.Errorf("the read under way: %v, want ErrClosed", err)
	}
}

func TestReservedKeys(t *testing.T) {
	m := &member{}
	b := opened(t, m, etcd.Options{})
	_, get := b.Get(t.Context(), "compact_rev_key", 0)
	_, commit := b.Commit(t.Context(), storage.Commit{Key: "compact_rev_key"})
	for _, err := range []error{get, commit} {
		if err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%v, want the key to be reserved", err)
		}
	}
	if m.writes.Load() != 0 {
		t.Error("it was written")
	}
}

// TestAPutThatReachesTheQuota: etcd refuses a put with which its quota is reached, but makes it.
func TestAPutThatReachesTheQuota(t *testing.T) {
	m := &member{}
	b := opened(t, m, etcd.Options{})
	m.txn = func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) { return nil, rpctypes.ErrGRPCNoSpace }
	for name, c := range map[string]struct {
		expect   int64
		found    string // "" is no value
		at       int64
		readable bool
		want     error
	}{
		"made":                     {expect: 5, found: "v", at: 7, readable: true},
		"made, created":            {found: "v", at: 7, readable: true},
		"not made":                 {expect: 5, found: "old", at: 5, readable: true, want: storage.ErrNoSpace},
		"not made, equal":          {expect: 5, found: "v", at: 5, readable: true, want: storage.ErrNoSpace},
		"not made, absent":         {readable: true, want: storage.ErrNoSpace},
		"somebody else's":          {expect: 5, found: "w", at: 7, readable: true, want: storage.ErrNoSpace},
		"whatever is there, equal": {expect: storage.AnyRevision, found: "v", at: 7, readable: true, want: storage.ErrUnavailable},
		"whatever is there, other": {expect: storage.AnyRevision, found: "w", at: 7, readable: true, want: storage.ErrNoSpace},
		"unknown":                  {expect: 5, want: storage.ErrUnavailable},
	} {
		m.read = func(context.Context) error {
			if !c.readable {
				return rpctypes.ErrGRPCPermissionDenied
			}
			return nil
		}
		m.ranged = func(r *pb.RangeRequest) *pb.RangeResponse {
			if c.found == "" {
				return &pb.RangeResponse{}
			}
			return &pb.RangeResponse{Count: 1, Kvs: []*mvccpb.KeyValue{{Key: r.Key, Value: []byte(c.found), ModRevision: c.at}}}
		}
		res, err := b.Commit(t.Context(), storage.Commit{Key: "a", Expect: c.expect, Value: []byte("v")})
		if !errors.Is(err, c.want) || c.want == nil && res.Revision != c.at {
			t.Errorf("%s: %+v, %v; want %v", name, res, err, c.want)
		}
	}
}

func TestHooks(t *testing.T) {
	type seen struct {
		operation string
		failed    bool
	}
	var all []seen
	m := &member{}
	b := opened(t, m, etcd.Options{Hooks: etcd.Hooks{Requested: func(operation string, took time.Duration, err error) {
		all = append(all, seen{operation, err != nil})
	}}})
	all = nil
	m.txn = func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) { return nil, rpctypes.ErrGRPCNoSpace }
	_, _ = b.Get(t.Context(), "a", 0)
	_, _ = b.Range(t.Context(), storage.Range{From: "a", To: "b"})
	_, _ = b.Range(t.Context(), storage.Range{From: "a", To: "b", CountOnly: true})
	_, _ = b.Commit(t.Context(), storage.Commit{Key: "a", TTL: time.Hour})
	want := []seen{{"get", false}, {"range", false}, {"count", false}, {"lease", false}, {"commit", true}, {"get", false}}
	if !slices.Equal(all, want) {
		t.Errorf("the hook saw %v, want %v", all, want)
	}
}
