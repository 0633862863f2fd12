package storagetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// verb is the kind of a call of a client.
type verb int

const (
	verbGet verb = iota
	verbRange
	verbCommit
)

// outcome is the kind of a call's result.
type outcome int

const (
	answered outcome = iota
	conflicted
	unknown // the commit may have happened, or may still happen; a read had no result
	refused // the commit has not happened
)

// call is one call of a client, with its times and its result.
type call struct {
	client       int
	verb         verb
	begun, ended time.Duration // since the workload began
	key          string        // of Get
	at           int64         // of Get and Range; 0 is the latest
	commit       storage.Commit

	outcome  outcome
	err      error
	revision int64 // of the result; 0: unknown
	kv       storage.KV
	found    bool
	kvs      []storage.KV
	count    int64
}

// get, list and make execute the call and record the result. They set all fields except client and the times.

func (c *call) get(ctx context.Context, b storage.Backend) {
	res, err := b.Get(ctx, c.key, c.at)
	c.kv, c.found, c.revision = res.KV, res.Found, res.Revision
	c.note(err)
}

func (c *call) list(ctx context.Context, b storage.Backend, prefix string) {
	res, err := b.Range(ctx, storage.Range{From: prefix, To: prefixEnd(prefix), At: c.at})
	c.kvs, c.count, c.revision = res.KVs, res.Count, res.Revision
	c.note(err)
}

func (c *call) make(ctx context.Context, b storage.Backend) {
	c.key = c.commit.Key
	res, err := b.Commit(ctx, c.commit)
	c.kv, c.found, c.revision = res.Current, res.Found, res.Revision
	c.note(err)
}

func (c *call) note(err error) {
	c.err = err
	switch {
	case err == nil:
		c.outcome = answered
	case errors.Is(err, storage.ErrConflict) && c.verb == verbCommit:
		c.outcome = conflicted
	case errors.Is(err, storage.ErrNoSpace) && c.verb == verbCommit:
		c.outcome = refused
	default:
		c.outcome, c.revision = unknown, 0
	}
}

// tolerable reports whether a backend that keeps its promises may have returned this error.
func (c *call) tolerable() bool {
	return c.err == nil || c.outcome == conflicted || c.outcome == refused || transient(c.err)
}

// transient reports whether an error means that the same call may succeed later.
func transient(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// idle reports whether the commit may have succeeded without a change.
func (c *call) idle() bool { return c.commit.Delete && c.commit.Expect == storage.AnyRevision }

// met reports whether the commit's condition is met by the state of its key.
func (c *call) met(found bool, revision int64) bool {
	switch {
	case c.commit.Expect == storage.AnyRevision:
		return true
	case !found:
		return c.commit.Expect == 0 && !c.commit.Delete
	}
	return c.commit.Expect == revision
}

// String returns the call as text for a failure.
func (c *call) String() string {
	var ask, answer string
	switch c.verb {
	case verbGet:
		ask = fmt.Sprintf("Get(%q, %d)", c.key, c.at)
		answer = shown(c.kv, c.found)
	case verbRange:
		ask = fmt.Sprintf("Range(at %d)", c.at)
		answer = fmt.Sprintf("%s, count %d", versions(c.kvs), c.count)
	case verbCommit:
		ask = fmt.Sprintf("Commit(%s, value %q)", describe(c.commit), c.commit.Value)
		answer = "done"
		if c.outcome == conflicted {
			answer = "conflict with " + shown(c.kv, c.found)
		}
	}
	switch c.outcome {
	case unknown, refused:
		answer = fmt.Sprint("error: ", c.err)
	default:
		answer += fmt.Sprintf(" at revision %d", c.revision)
	}
	return fmt.Sprintf("client %d, %v to %v: %s: %s", c.client, c.begun, c.ended, ask, answer)
}

func shown(kv storage.KV, found bool) string {
	if !found {
		return "nothing"
	}
	return fmt.Sprintf("%q@%d", kv.Value, kv.Revision)
}

func versions(kvs []storage.KV) string {
	s := "["
	for i, kv := range kvs {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s=%s@%d", kv.Key, kv.Value, kv.Revision)
	}
	return s + "]"
}

// prefixEnd returns the first key after those with a prefix, "" if there is none.
func prefixEnd(prefix string) string {
	for n := len(prefix); n > 0; n-- {
		if last := prefix[n-1]; last < 0xff {
			return prefix[:n-1] + string([]byte{last + 1})
		}
	}
	return ""
}
