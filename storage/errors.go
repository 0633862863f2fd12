package storage

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Errors of a Backend.
var (
	// ErrCompacted is returned when the requested history is no longer retained.
	ErrCompacted = errors.New("revision has been compacted")
	// ErrFuture is returned by a read at a revision that the store has not reached yet.
	ErrFuture = errors.New("required revision is a future revision")
	// ErrConflict is returned by a commit whose key is not at the expected revision.
	ErrConflict = errors.New("key is at another revision")
	// ErrNoSpace is returned by a commit when the device or the quota had no space for it. Deletions may still work.
	ErrNoSpace = errors.New("no space left")
	// ErrTooLarge is returned when a value, or the encoded object, is larger than the store accepts.
	ErrTooLarge = errors.New("object is too large")
	// ErrUnavailable is returned when the store cannot be used at present: it cannot be reached, has no leader, or does not
	// answer in time. The same call may succeed later.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotEmpty is returned by Load and Copy for a destination that is in use.
	ErrNotEmpty = errors.New("the destination is not empty")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("storage is closed")
	// ErrUnsupported is returned for an optional ability that the backend does not have.
	ErrUnsupported = errors.New("not supported by this storage backend")
)

// Errors of an Interface, besides ErrClosed, ErrNoSpace, ErrTooLarge and ErrUnavailable.
var (
	// ErrNotFound is returned when there is no object under the key.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by Create when there is an object under the key.
	ErrExists = errors.New("already exists")
	// ErrReadable is returned by DeleteUnreadable for an object that can be read.
	ErrReadable = errors.New("the object can be read")
	// ErrBadKey is returned by Create for a key under which nothing can be stored. Such a key has the wrong number of
	// segments for the resource, an empty segment, "." or ".." as a segment, or a NUL byte, or is longer than the backend
	// accepts. In the last case the backend's Commit returns ErrBadKey. Reads and updates of such a key return ErrNotFound.
	ErrBadKey = errors.New("invalid key")
	// ErrBadContinue is returned for a continue token that this library did not make.
	ErrBadContinue = errors.New("continue key is not valid")
)

// FileError is an error of a Backend about one of its own files. Its text names the file and is for the operator of the
// server. Clients receive only the text that [Public] returns.
type FileError struct {
	Op, Path string // the operation that failed, and the file
	Err      error  // the cause; one of this package's errors if one fits
}

// Error returns the operation, the path and the cause.
func (e *FileError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Public returns the text of an error for clients: the text of err without what a FileError in err says about files.
func Public(err error) string {
	var file *FileError
	switch {
	case !errors.As(err, &file):
		return err.Error()
	case errors.Is(err, ErrNoSpace):
		return ErrNoSpace.Error()
	}
	return "the storage failed, and the log of the server says why"
}

// ExpiredError is returned by List and Watch for a revision, or a continue token, that is no longer retained.
type ExpiredError struct {
	// Revision is the requested revision. Oldest is the oldest retained revision, 0 if unknown.
	Revision, Oldest int64
	// Continue is set by an expired continue token. It is a token that continues at the same key at the latest revision.
	Continue string
}

// Error returns the text that kube-apiserver uses.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("too old resource version: %d (%d)", e.Revision, e.Oldest)
}

// Unwrap makes an ExpiredError an ErrCompacted.
func (e *ExpiredError) Unwrap() error { return ErrCompacted }

// FutureError is returned by a read at, or not older than, a revision that the store did not reach while the read waited.
// Requested is the revision of the read, and Current is the store's revision.
type FutureError struct{ Requested, Current int64 }

// Error returns the text that kube-apiserver uses.
func (e *FutureError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Requested, e.Current)
}

// Unwrap makes a FutureError an ErrFuture.
func (e *FutureError) Unwrap() error { return ErrFuture }

// FillingError is returned by List and Watch of a cache that is being filled, when a read of the storage below would have to
// read everything again. The same call succeeds when the cache is filled.
type FillingError struct {
	// RetryAfter is the time after which the client should try again, in whole seconds.
	RetryAfter time.Duration
}

// Error returns the text that kube-apiserver uses.
func (e *FillingError) Error() string { return "storage is (re)initializing" }

// RaiseError is returned by Raise and Copy when more empty commits would be needed than are allowed.
type RaiseError struct {
	Current, Wanted int64 // the store's revision, and the revision that the new one must exceed
	Needed, Limit   int64 // number of empty commits
}

// Error returns a text with the four numbers.
func (e *RaiseError) Error() string {
	return fmt.Sprintf("the store's revision is %d and must become greater than %d: that takes %d empty commits, and at most %d are allowed",
		e.Current, e.Wanted, e.Needed, e.Limit)
}

// UnreadableError is returned for stored bytes that cannot be decoded.
type UnreadableError struct {
	// Key is relative to the resource, StoredKey is the backend's key, Revision is the revision of the value, and Err is the
	// reason. An Interface that does not have StoredKey or Revision leaves them zero.
	Key       string
	StoredKey string
	Revision  int64
	Err       error
	// More has the other unreadable values that a list has met, in key order. With this one they are at most a hundred. Their
	// own More is empty.
	More []*UnreadableError
	// Truncated means that there are further unreadable values, which are not named.
	Truncated bool
}

// All yields this error and those in More.
func (e *UnreadableError) All() iter.Seq[*UnreadableError] {
	return func(yield func(*UnreadableError) bool) {
		if !yield(e) {
			return
		}
		for _, other := range e.More {
			if !yield(other) {
				return
			}
		}
	}
}

// maxUnreadable is the maximum number of keys that an UnreadableError has.
const maxUnreadable = 100

// And returns the error of a list that has met e so far (nil for none) and now meets other. other is not changed. The result
// belongs to the list; once it is Truncated nothing is added.
func (e *UnreadableError) And(other *UnreadableError) *UnreadableError {
	switch {
	case e == nil:
		first := *other
		first.More = nil
		return &first
	case len(e.More) == maxUnreadable-1:
		e.Truncated = true
	default:
		e.More = append(e.More, other)
	}
	return e
}

// maxReported is the maximum number of keys that the text of an UnreadableError names.
const maxReported = 10

// Error returns a text that names up to ten keys.
func (e *UnreadableError) Error() string {
	if len(e.More) == 0 && !e.Truncated {
		return fmt.Sprintf("stored object %q cannot be read: %v", e.Key, e.Err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "stored objects cannot be read: %q: %v", e.Key, e.Err)
	reported := e.More[:min(len(e.More), maxReported-1)]
	for _, other := range reported {
		fmt.Fprintf(&text, "; %q: %v", other.Key, other.Err)
	}
	switch left := len(e.More) - len(reported); {
	case e.Truncated:
		text.WriteString("; and others")
	case left > 0:
		fmt.Fprintf(&text, "; and %d others", left)
	}
	return text.String()
}

// Unwrap returns the reason of the first error.
func (e *UnreadableError) Unwrap() error { return e.Err }
