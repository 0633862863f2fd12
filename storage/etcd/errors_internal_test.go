package etcd

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrors(t *testing.T) {
	sentinels := []error{
		storage.ErrCompacted, storage.ErrFuture, storage.ErrTooLarge, storage.ErrNoSpace, storage.ErrUnavailable, errNoLease,
	}
	for _, test := range []struct {
		err  error
		want error // nil: none of the sentinels
		text string
	}{
		{rpctypes.ErrGRPCCompacted, storage.ErrCompacted, ""},
		{rpctypes.ErrCompacted, storage.ErrCompacted, ""},
		{rpctypes.ErrGRPCFutureRev, storage.ErrFuture, ""},
		{rpctypes.ErrGRPCRequestTooLarge, storage.ErrTooLarge, "request is too large"},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (3 vs. 2)"), storage.ErrTooLarge, "3 vs. 2"},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (3 vs. 2)"), storage.ErrTooLarge, "3 vs. 2"},
		{rpctypes.ErrGRPCNoSpace, storage.ErrNoSpace, "database space exceeded"},
		{rpctypes.ErrGRPCRequestTooManyRequests, storage.ErrUnavailable, "too many requests"},
		{rpctypes.ErrGRPCNoLeader, storage.ErrUnavailable, "no leader"},
		{rpctypes.ErrGRPCNotLeader, storage.ErrUnavailable, "not leader"},
		{rpctypes.ErrGRPCLeaderChanged, storage.ErrUnavailable, "leader changed"},
		{rpctypes.ErrGRPCTimeout, storage.ErrUnavailable, "timed out"},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, storage.ErrUnavailable, "leader failure"},
		{rpctypes.ErrGRPCTimeoutDueToConnectionLost, storage.ErrUnavailable, "connection lost"},
		{rpctypes.ErrGRPCTimeoutWaitAppliedIndex, storage.ErrUnavailable, "applied index"},
		{rpctypes.ErrGRPCStopped, storage.ErrUnavailable, "server stopped"},
		{rpctypes.ErrGRPCUnhealthy, storage.ErrUnavailable, "unhealthy"},
		{rpctypes.ErrGRPCCorrupt, storage.ErrUnavailable, "corrupt cluster"},
		{rpctypes.ErrGRPCNotSupportedForLearner, storage.ErrUnavailable, "learner"},
		{rpctypes.ErrGRPCNotCapable, storage.ErrUnavailable, "not capable"},
		{rpctypes.ErrGRPCDeadlineExceeded, storage.ErrUnavailable, "deadline"},
		{status.Error(codes.Unavailable, "connection error: refused"), storage.ErrUnavailable, "connection error: refused"},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM"), storage.ErrUnavailable, "RST_STREAM"},
		{context.DeadlineExceeded, storage.ErrUnavailable, "deadline"},
		{status.Error(codes.Unknown, "raft proposal dropped"), storage.ErrUnavailable, "dropped"},
		{rpctypes.ErrGRPCLeaseNotFound, errNoLease, ""},
		{rpctypes.ErrGRPCPermissionDenied, nil, "role with read and write permission"},
		{rpctypes.ErrGRPCAuthFailed, nil, "Options.Username"},
		{rpctypes.ErrGRPCUserEmpty, nil, "Options.Username"},
		{rpctypes.ErrGRPCInvalidAuthToken, nil, "invalid auth token"},
		{rpctypes.ErrGRPCAuthOldRevision, nil, "Options.Username"},
		{rpctypes.ErrGRPCLeaseTTLTooLarge, nil, "too large lease TTL"},
		{status.Error(codes.Unknown, "something else"), nil, "etcd: something else"},
		{errors.New("something else"), nil, "etcd: something else"},
	} {
		got := translate(test.err)
		for _, s := range sentinels {
			if errors.Is(got, s) != (s == test.want) {
				t.Errorf("%v became %v, want %v", test.err, got, test.want)
			}
		}
		if got == nil || !strings.Contains(got.Error(), test.text) || strings.Contains(got.Error(), "rpc error") {
			t.Errorf("%v became %q, want %q in it and no frame of gRPC", test.err, got, test.text)
		}
	}
	if translate(nil) != nil {
		t.Error("no error became one")
	}
}

func TestWhatEndsAStream(t *testing.T) {
	b := &Backend{}
	for name, test := range map[string]struct {
		err  error
		ends bool
	}{
		"end of the stream": {lost(io.EOF), false},
		"connection":        {lost(status.Error(codes.Unavailable, "gone")), false},
		"no leader":         {lost(rpctypes.ErrGRPCNoLeader), false},
		"old token":         {lost(rpctypes.ErrGRPCInvalidAuthToken), false},
		"wrong password":    {lost(rpctypes.ErrGRPCAuthFailed), true},
		"canceled, token":   {b.canceled(&pb.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrGRPCInvalidAuthToken.Error()}), false},
		"canceled, denied":  {b.canceled(&pb.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrGRPCPermissionDenied.Error()}), true},
		"canceled, user":    {b.canceled(&pb.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrGRPCUserEmpty.Error()}), true},
		"canceled, unknown": {b.canceled(&pb.WatchResponse{Canceled: true, CancelReason: "whatever"}), false},
		"compacted":         {b.canceled(&pb.WatchResponse{Canceled: true, CompactRevision: 9}), true},
		"compacted, told":   {b.canceled(&pb.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrCompacted.Error()}), true},
	} {
		if final(test.err) != test.ends {
			t.Errorf("%s: %v ends the feed: %v, want %v", name, test.err, final(test.err), test.ends)
		}
	}
	var expired *storage.ExpiredError
	if err := b.expired(storage.ErrCompacted, 5); !errors.As(err, &expired) || expired.Oldest != 9 || expired.Revision != 5 {
		t.Errorf("%v, want an ExpiredError with 5 and 9", err)
	}
	if err := b.expired(storage.ErrCompacted, 9); !errors.As(err, &expired) || expired.Oldest != 0 {
		t.Errorf("%v, want an ExpiredError that does not know the oldest revision", err)
	}
	if b.learn(7); b.compacted.Load() != 9 {
		t.Errorf("the oldest revision went back to %d", b.compacted.Load())
	}
}
