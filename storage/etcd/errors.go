package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errNoLease is returned by commits with a lease that is gone.
var errNoLease = errors.New("etcd: the lease is gone")

// errDenied is returned when the user lacks a permission.
var errDenied = errors.New("etcd: permission denied")

// translate makes an error of etcd, or of the way to it, one of package storage. What has no sentinel there keeps
// its text.
func translate(err error) error {
	if err == nil {
		return nil
	}
	known := rpctypes.Error(err)
	switch {
	case errors.Is(known, rpctypes.ErrCompacted):
		return storage.ErrCompacted
	case errors.Is(known, rpctypes.ErrFutureRev):
		return storage.ErrFuture
	case errors.Is(known, rpctypes.ErrLeaseNotFound):
		return errNoLease
	case errors.Is(known, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %v", storage.ErrTooLarge, known)
	case errors.Is(known, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %v: the quota of etcd is reached", storage.ErrNoSpace, known)
	case errors.Is(known, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: the user needs a role with read and write permission for the store's keys", errDenied)
	case isAuth(known):
		return fmt.Errorf("etcd: %v: check Options.Username and Options.Password, or the client certificate", known)
	case isUnavailable(known):
		return fmt.Errorf("%w: %v", storage.ErrUnavailable, text(known))
	case code(known) == codes.ResourceExhausted: // a message that gRPC would not send or receive
		return fmt.Errorf("%w: %v", storage.ErrTooLarge, text(known))
	}
	return fmt.Errorf("etcd: %v", text(known))
}

// isAuth says that etcd does not accept who asks.
func isAuth(err error) bool {
	for _, e := range []error{
		rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthOldRevision, rpctypes.ErrInvalidAuthMgmt, rpctypes.ErrRoleNotFound,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return code(err) == codes.Unauthenticated
}

// isUnavailable says that the same request may work later, or at another member. It may have been carried out.
func isUnavailable(err error) bool {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted, codes.DataLoss:
		return true
	case codes.ResourceExhausted:
		return !strings.Contains(err.Error(), "larger than max")
	case codes.FailedPrecondition:
		return true // a member that is no leader, a learner, or not ready
	}
	// What etcd's consensus says has no code: there is no leader, another becomes it, or the member stops.
	if strings.Contains(err.Error(), "raft proposal dropped") || strings.Contains(err.Error(), "raft: stopped") {
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isRefused says that etcd did nothing because the token of the user, or what it knows about users, has become old. A
// new token has been fetched.
func isRefused(err error) bool {
	known := rpctypes.Error(err)
	return errors.Is(known, rpctypes.ErrInvalidAuthToken) || errors.Is(known, rpctypes.ErrAuthOldRevision)
}

func code(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Unknown
}

// text is what an error says without the frame that gRPC puts around it.
func text(err error) string {
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}

// expired adds to an ErrCompacted which revision was asked for, and the oldest one when it is known.
func (b *Backend) expired(err error, revision int64) error {
	if !errors.Is(err, storage.ErrCompacted) {
		return err
	}
	e := &storage.ExpiredError{Revision: revision}
	if oldest := b.compacted.Load(); oldest > revision {
		e.Oldest = oldest
	}
	return e
}

// learn notes that history below revision is gone.
func (b *Backend) learn(revision int64) {
	for old := b.compacted.Load(); old < revision && !b.compacted.CompareAndSwap(old, revision); {
		old = b.compacted.Load()
	}
}
