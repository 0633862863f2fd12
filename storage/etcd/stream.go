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

// A stream that was lost is opened again at once, and then after pauses that grow.
const (
	reopenPause = 50 * time.Millisecond
	reopenMost  = 2 * time.Second
)

// stream is one watch of etcd on a gRPC stream of its own.
type stream struct {
	pb.Watch_WatchClient
	after int64 // it shows changes with a greater revision
}

// requestProgress is called by Next alone. It would wait only when hundreds of requests are not read by etcd, and the
// connection is given up before.
func (s *stream) requestProgress() {
	// An error shows where the stream is read.
	_ = s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// run is the feed's goroutine: it follows etcd until the feed or history ends.
func (f *feed) run() {
	defer func() {
		f.cancel(nil)
		f.b.mu.Lock()
		delete(f.b.feeds, f)
		f.b.mu.Unlock()
	}()
	j := &joiner{layout: f.b.layout, prev: f.w.Prev, after: f.w.From}
	var pauses wait.Backoff // the zero one is none
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

// startAfter returns the revision from which etcd is to show changes, so that those after a revision can be had: it
// is that revision itself, because etcd shows changes from the one it was compacted at, and releases before 3.5.18
// may have lost deletions among these (https://github.com/etcd-io/etcd/issues/19179). It then says that they are
// compacted. Only where nothing has happened after the revision, which is the head, etcd begins after it: it would
// first look back for a moment.
func startAfter(after, head int64) int64 {
	if after == head {
		return after + 1
	}
	return max(after, 1)
}

// final says that opening the stream again is of no use.
func final(err error) bool {
	if err == nil || errors.Is(err, storage.ErrUnavailable) {
		return false
	}
	var old *tokenError
	return !errors.As(err, &old)
}

// tokenError is a watch that etcd refused because of an old token: the next stream has a new one.
type tokenError struct{ reason string }

func (e *tokenError) Error() string { return e.reason }

// follow opens a stream from a revision on and hands over what it brings after j.after, until it breaks. opened says
// that etcd accepted it.
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
		_, err = w.Recv() // says why
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

// lost says why a stream broke.
func lost(err error) error {
	if err == nil { // the stream could not be written, but something was read: it is of no use
		return storage.ErrUnavailable
	}
	if isRefused(err) {
		return &tokenError{text(err)}
	}
	if code(err) == codes.Unknown { // the end of the stream, and what gRPC has no code for
		return fmt.Errorf("%w: %v", storage.ErrUnavailable, text(err))
	}
	return translate(err)
}

// canceled says why etcd has ended a watch.
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
