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

// errNoLease is returned by commits whose lease does not exist any more.
var errNoLease = errors.New("etcd: the lease is gone")

// errDenied is returned when the user lacks a permission.
var errDenied = errors.New("etcd: permission denied")

// translate returns the error of package storage for an error of etcd or of the connection. An error without a sentinel in
// that package keeps its text.
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
	case code(known) == codes.ResourceExhausted: // gRPC refuses to send or receive the message
		return fmt.Errorf("%w: %v", storage.ErrTooLarge, text(known))
	}
	return fmt.Errorf("etcd: %v", text(known))
}

// isAuth reports whether etcd does not accept the user.
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

// isUnavailable reports whether the same request may succeed later, or at another member. The request may have been executed.
func isUnavailable(err error) bool {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted, codes.DataLoss:
		return true
	case codes.ResourceExhausted:
		return !strings.Contains(err.Error(), "larger than max")
	case codes.FailedPrecondition:
		return true // the member is no leader, a learner, or not ready
	}
	// Errors of etcd's consensus have no code: there is no leader, the leader changes, or the member stops.
	if strings.Contains(err.Error(), "raft proposal dropped") || strings.Contains(err.Error(), "raft: stopped") {
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isRefused reports whether etcd did nothing because the user's token, or the member's data about users, was outdated. A new
// token has been fetched.
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

// text returns the text of an error without the prefix that gRPC adds.
func text(err error) string {
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}

// expired adds to an ErrCompacted the requested revision, and the oldest one when it is known.
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

// learn records that history below revision was compacted.
func (b *Backend) learn(revision int64) {
	for old := b.compacted.Load(); old < revision && !b.compacted.CompareAndSwap(old, revision); {
		old = b.compacted.Load()
	}
}
