package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A stream that was lost is opened again at once, and then after increasing pauses.
const (
	reopenPause = 50 * time.Millisecond
	reopenMost  = 2 * time.Second
)

// stream is one watch of etcd, on its own gRPC stream.
type stream struct {
	pb.Watch_WatchClient
	after int64 // the stream shows changes with a greater revision
}

// requestProgress is called by Next only. It would only block if etcd did not read hundreds of requests, and the connection
// is closed before that.
func (s *stream) requestProgress() {
	// An error is returned where the stream is read.
	_ = s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// run is the goroutine of the feed. It follows etcd until the feed or the history ends.
func (f *feed) run() {
	defer func() {
		f.cancel(nil)
		f.b.mu.Lock()
		delete(f.b.feeds, f)
		f.b.mu.Unlock()
	}()
	j := &joiner{layout: f.b.layout, prev: f.w.Prev, after: f.w.From}
	var pauses wait.Backoff // zero is no pause
	for start := f.start; ; start = startAfter(j.after, 0) {
		before := j.after
		opened, err := f.follow(j, start)
		switch {
		case f.ctx.Err() != nil:
			return
		case final(err):
			f.err = f.b.expired(err, j.after)
			close(f.over)
			return
		case j.after != before:
			pauses = wait.Backoff{}
		case opened && pauses.Duration > 0:
			pauses = doubling(reopenPause, reopenMost)
		}
		if hook := f.b.opts.Hooks.Reconnecting; hook != nil {
			hook(f.w.Prefix, err)
		}
		if !sleep(f.ctx, pauses.Step()) {
			return
		}
		if pauses.Duration == 0 {
			pauses = doubling(reopenPause, reopenMost)
		}
	}
}

// startAfter returns the revision at which a watch of etcd must start to deliver the changes after a revision. It is that
// revision itself. The reason is that etcd shows changes from the revision at which it was compacted, and releases before
// 3.5.18 may have lost deletions at that revision (https://github.com/etcd-io/etcd/issues/19179). A watch that starts there
// fails with ErrCompacted in that case. Only if nothing has happened after the revision, which is then the head, the watch
// starts after it, because etcd would first read the past for a moment.
func startAfter(after, head int64) int64 {
	if after == head {
		return after + 1
	}
	return max(after, 1)
}

// final reports whether opening the stream again is useless.
func final(err error) bool {
	if err == nil || errors.Is(err, storage.ErrUnavailable) {
		return false
	}
	var old *tokenError
	return !errors.As(err, &old)
}

// tokenError is the error of a watch that etcd refused because of an old token. The next stream has a new token.
type tokenError struct{ reason string }

func (e *tokenError) Error() string { return e.reason }

// follow opens a stream at a revision and delivers the changes after j.after, until the stream breaks. opened reports whether
// etcd accepted it.
func (f *feed) follow(j *joiner, start int64) (opened bool, err error) {
	after := j.after
	j.held = nil
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(f.ctx))
	defer cancel()
	w, err := f.b.watches.watch.Watch(ctx, f.b.callOptions...)
	if err != nil {
		return false, translate(err)
	}
	in := f.b.layout.under(f.w.Prefix)
	err = w.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: in.from, RangeEnd: in.to, StartRevision: start,
		PrevKv: f.w.Prev, Fragment: true, ProgressNotify: true,
	}}})
	if err != nil {
		_, err = w.Recv() // returns the reason
		return opened, lost(err)
	}
	defer f.stream.Store(nil)
	for {
		res, err := w.Recv()
		switch {
		case err != nil:
			return opened, lost(err)
		case res.Canceled:
			return opened, f.b.canceled(res)
		case res.Created:
			opened = true
			f.stream.Store(&stream{w, after})
			f.wake()
			continue
		}
		out, err := j.add(res)
		if err != nil {
			return opened, err
		}
		if out.Progress == 0 {
			continue
		}
		select {
		case f.out <- out:
		case <-f.ctx.Done():
			return opened, f.ctx.Err()
		}
	}
}

// lost returns the error of a stream that broke.
func lost(err error) error {
	if err == nil { // the stream could not be written, but something was read: the stream cannot be used
		return storage.ErrUnavailable
	}
	if isRefused(err) {
		return &tokenError{text(err)}
	}
	if code(err) == codes.Unknown { // the end of the stream, and errors for which gRPC has no code
		return fmt.Errorf("%w: %v", storage.ErrUnavailable, text(err))
	}
	return translate(err)
}

// canceled returns the error of a watch that etcd has ended.
func (b *Backend) canceled(res *pb.WatchResponse) error {
	reason := res.CancelReason
	is := func(err error) bool { return strings.Contains(reason, rpctypes.ErrorDesc(err)) }
	switch {
	case res.CompactRevision != 0:
		b.learn(res.CompactRevision)
		return storage.ErrCompacted
	case is(rpctypes.ErrGRPCCompacted):
		return storage.ErrCompacted
	case is(rpctypes.ErrGRPCInvalidAuthToken), is(rpctypes.ErrGRPCAuthOldRevision):
		return &tokenError{reason}
	case is(rpctypes.ErrGRPCPermissionDenied):
		return translate(rpctypes.ErrGRPCPermissionDenied)
	case is(rpctypes.ErrGRPCUserEmpty):
		return translate(rpctypes.ErrGRPCUserEmpty)
	}
	return fmt.Errorf("%w: etcd has canceled the watch: %s", storage.ErrUnavailable, reason)
}

// wake makes a waiting Next look again.
func (f *feed) wake() {
	select {
	case f.nudge <- struct{}{}:
	default:
	}
}
