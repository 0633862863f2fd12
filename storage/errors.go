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
	// ErrCompacted is returned when the history asked for is no longer retained.
	ErrCompacted = errors.New("revision has been compacted")
	// ErrFuture is returned by a read at a revision that has not happened yet.
	ErrFuture = errors.New("required revision is a future revision")
	// ErrConflict is returned by a commit whose key is not at the expected revision.
	ErrConflict = errors.New("key is at another revision")
	// ErrNoSpace is returned by a commit for which there was no room on the device or in the quota. Deletions may still work.
	ErrNoSpace = errors.New("no space left")
	// ErrTooLarge is returned when a value, or the encoded object, is larger than the store accepts.
	ErrTooLarge = errors.New("object is too large")
	// ErrUnavailable is returned when the store cannot be asked at present: it cannot be reached, has no leader, or
	// does not answer in time. The same call may work later.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotEmpty is returned by Load and Copy for a destination that is in use.
	ErrNotEmpty = errors.New("the destination is not empty")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("storage is closed")
	// ErrUnsupported is returned for a power the backend does not have.
	ErrUnsupported = errors.New("not supported by this storage backend")
)

// Errors of an Interface, besides ErrClosed, ErrNoSpace, ErrTooLarge and ErrUnavailable.
var (
	// ErrNotFound is returned when there is no object under the key.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by Create when there is one.
	ErrExists = errors.New("already exists")
	// ErrReadable is returned by DeleteUnreadable for an object that can be read.
	ErrReadable = errors.New("the object can be read")
	// ErrBadKey is returned by Create for a key under which nothing can be stored: one with the wrong number of
	// segments for the resource, with an empty segment, with "." or ".." as a segment, or with a NUL byte, and one that is
	// longer than the backend accepts, by whose Commit it is returned. Reads and updates of such a key are ErrNotFound.
	ErrBadKey = errors.New("invalid key")
	// ErrBadContinue is returned for a continue token that this library did not make.
	ErrBadContinue = errors.New("continue key is not valid")
)

// FileError is an error of a Backend about a file of its own. Its text names the file and is for whoever runs the server: clients
// are not told more of it than [Public].
type FileError struct {
	Op, Path string
	Err      error // what is wrong; one of this package's errors if one fits
}

func (e *FileError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns what is wrong.
func (e *FileError) Unwrap() error { return e.Err }

// Public is the text of an error for clients: that of err, but without what a FileError in it says of files.
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
	// Revision was asked for; Oldest is the oldest one retained, 0 when unknown.
	Revision, Oldest int64
	// Continue, set by an expired continue token, goes on from the same key at the latest revision.
	Continue string
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("too old resource version: %d (%d)", e.Revision, e.Oldest)
}

// Unwrap makes an ExpiredError an ErrCompacted.
func (e *ExpiredError) Unwrap() error { return ErrCompacted }

// FutureError is returned by a read at, or not older than, a revision that did not come within the time the
// store waits for it.
type FutureError struct{ Requested, Current int64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Requested, e.Current)
}

// Unwrap makes a FutureError an ErrFuture.
func (e *FutureError) Unwrap() error { return ErrFuture }

// FillingError is returned by List and Watch of a cache that is being filled, where to ask the storage below would be to read
// all once more. The same call works when the cache is filled.
type FillingError struct {
	// RetryAfter is when to ask again, in whole seconds.
	RetryAfter time.Duration
}

// Error implements error, with the words of kube-apiserver.
func (e *FillingError) Error() string { return "storage is (re)initializing" }

// RaiseError is returned by Raise and Copy when more empty commits would be needed than are allowed.
type RaiseError struct {
	Current, Wanted int64 // revisions
	Needed, Limit   int64 // commits
}

func (e *RaiseError) Error() string {
	return fmt.Sprintf("the store's revision is %d and must become greater than %d: that takes %d empty commits, and at most %d are allowed",
		e.Current, e.Wanted, e.Needed, e.Limit)
}

// UnreadableError is returned for stored bytes that cannot be decoded.
type UnreadableError struct {
	// Key is relative to the resource, StoredKey is the backend's, Revision the value's own, and Err what is wrong with it.
	// An Interface that does not know StoredKey or Revision leaves them zero.
	Key       string
	StoredKey string
	Revision  int64
	Err       error
	// More are the others that a list has met, in key order, up to a hundred with this one. They have no More.
	More []*UnreadableError
	// Truncated says that there are others still, which are not named.
	Truncated bool
}

// All are this one and the others that a list has met.
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

// maxUnreadable is how many keys an UnreadableError names.
const maxUnreadable = 100

// And returns the error of a list that has met e so far, nil for none, and then other, which is not changed. It is the
// list's own; once it is Truncated nothing is added.
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

// maxTold is how many keys the text of an UnreadableError names.
const maxTold = 10

func (e *UnreadableError) Error() string {
	if len(e.More) == 0 && !e.Truncated {
		return fmt.Sprintf("stored object %q cannot be read: %v", e.Key, e.Err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "stored objects cannot be read: %q: %v", e.Key, e.Err)
	told := e.More[:min(len(e.More), maxTold-1)]
	for _, other := range told {
		fmt.Fprintf(&text, "; %q: %v", other.Key, other.Err)
	}
	switch left := len(e.More) - len(told); {
	case e.Truncated:
		text.WriteString("; and others")
	case left > 0:
		fmt.Fprintf(&text, "; and %d others", left)
	}
	return text.String()
}

// Unwrap returns what is wrong with the first.
func (e *UnreadableError) Unwrap() error { return e.Err }
