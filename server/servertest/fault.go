package servertest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
)

// Fault is a fault that [Server.Inject] adds to requests. Match selects requests. Skip, Times and Rate select some of these
// requests. The fields from Delay on say what happens to them; a field that is zero has no effect.
//
//	remove := srv.Inject(servertest.Fault{
//		Match: servertest.Match{Verbs: []string{"update"}, Resources: []string{"widgets/status"}},
//		Times: 2,
//		Error: apierrors.NewTooManyRequests("slow down", 1),
//	})
//	defer remove()
//
// A fault affects requests that have passed authentication and authorization. It happens in place of the handler or around it,
// and the metrics count its answer as an answer of a handler.
//
// These fields may be combined:
//
//   - at most one of Error, Drop, Expired and StorageError
//   - Delay and Jitter with all others
//   - Lost with one of Error, Drop and StorageError
//   - Events and Lasts with each other, and with one of Error, Drop and Expired, which then say how the watch ends
//   - Conflicts with Lost
//
// Some fields affect only some verbs. Requests with other verbs are not affected and not counted. Events and Lasts affect watch;
// Expired affects list and watch; Conflicts and StorageError affect create, update, patch, delete and deletecollection; Lost
// affects all but watch. A Fault that can never affect a request is a mistake, for example if its Match has none of the verbs
// that its fields affect.
type Fault struct {
	// Match selects the requests.
	Match
	// Skip is the number of matching requests that pass before the fault affects one. Times is the number of requests that are
	// affected after that; 0 means all.
	Skip, Times int
	// Rate is the share of the requests after Skip that are affected, between 0 and 1; 0 means all. They are chosen by a random
	// source that starts from Seed, so that the choice is the same for the same requests in the same order.
	Rate float64
	// Seed is the seed of the random source of Rate and Jitter.
	Seed uint64

	// Delay and a random time up to Jitter pass before the request is handled. The delay ends with the request: a deadline in
	// this time is answered with 504 as usual. It also ends with the server, which drops the connection.
	Delay, Jitter time.Duration
	// Error is the answer. An apimachinery StatusError (apierrors.NewTooManyRequests and the like) is answered with its Status
	// and its Retry-After. Any other error is answered with 500, its text and no reason.
	Error error
	// Drop aborts the request without an answer. Over HTTP/1.1 the connection is closed. Over HTTP/2 the stream ends with
	// RST_STREAM, and the other streams continue.
	Drop bool
	// Lost handles the request first: its effects remain, and only its answer is replaced by Error or dropped by Drop. With
	// StorageError the storage makes the commit and returns the error nevertheless.
	Lost bool
	// Expired is the answer to a resourceVersion that is too old, with the text of kube-apiserver. A list with a resourceVersion
	// other than 0 or with a continue token is answered with 410. A watch with a resourceVersion gets an ERROR event first. Lists
	// and watches without one are not affected. To answer a watch with 410, use Error. With Events or Lasts every watch ends with
	// the ERROR event.
	Expired bool

	// Events and Lasts end a watch in progress: after this number of events, bookmarks included, or after this time, whichever
	// comes first. The stream ends normally, as at its timeout, with an ERROR event (Error or Expired), or aborted (Drop). A
	// watch that ends earlier is not affected, and neither is one over a WebSocket.
	Events int
	// Lasts is described at Events.
	Lasts time.Duration

	// Conflicts is the number of conflicting writes for each affected request. Just before its commit reaches the storage, the
	// same object is written with its old content, so that it has a new resourceVersion and watches receive an event. The server
	// then reacts as usual: a PUT with a resourceVersion is answered with 409, and a request without one is tried again. With
	// math.MaxInt there is a conflicting write each time, until the request's timeout. For a create the conflicting write creates
	// the object. A request that commits nothing has no conflict. Dry runs are not affected if the query has dryRun; a delete
	// with dryRun in its body counts as affected.
	Conflicts int
	// StorageError is the error that the storage returns for the request's commits, which are not made: storage.ErrUnavailable,
	// storage.ErrNoSpace, which becomes a 507, or any other error, which becomes a 500. Dry runs are treated as described at
	// Conflicts.
	StorageError error
}

// check returns an error for a fault that could never happen, or not with all its fields.
func (f *Fault) check(served []catalogue.Kind) error {
	if err := f.Match.check(served); err != nil {
		return err
	}
	switch {
	case f.Skip < 0 || f.Times < 0 || f.Events < 0 || f.Conflicts < 0:
		return errors.New("none of Skip, Times, Events and Conflicts may be negative")
	case f.Delay < 0 || f.Jitter < 0 || f.Lasts < 0:
		return errors.New("none of Delay, Jitter and Lasts may be negative")
	case math.IsNaN(f.Rate) || f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("the Rate %v is not between 0 and 1", f.Rate)
	case f.Seed != 0 && f.Rate == 0 && f.Jitter == 0:
		return errors.New("a Seed is for Rate or Jitter: set one of them, or leave it out")
	}
	if err := f.checkEffects(); err != nil {
		return err
	}
	about := f.about()
	if len(f.Verbs) == 0 || slices.ContainsFunc(f.Verbs, func(v string) bool {
		return v == anything || v == applyVerb && slices.Contains(about, "patch") || slices.Contains(about, v)
	}) {
		return nil
	}
	return fmt.Errorf("the fault is about %s, and Match about %s only: it would never happen", strings.Join(about, ", "), strings.Join(f.Verbs, ", "))
}

func (f *Fault) checkEffects() error {
	answers := f.answers()
	switch {
	case len(answers) == 0 && !f.cuts() && f.Conflicts == 0 && f.Delay == 0 && f.Jitter == 0:
		return errors.New("the fault does nothing: set Delay, Error, Drop, Expired, Events, Lasts, Conflicts or StorageError")
	case len(answers) > 1:
		return fmt.Errorf("only one of %s can be what happens", strings.Join(answers, ", "))
	case f.Lost && (len(answers) == 0 || f.Expired):
		return errors.New("with Lost one of Error, Drop and StorageError has to say what comes in place of the answer")
	case f.cuts() && (f.Lost || f.Conflicts > 0 || f.StorageError != nil):
		return errors.New("a watch, which Events and Lasts end, has no commit and no answer to lose: leave out Lost, Conflicts and StorageError")
	case f.Conflicts > 0 && len(answers) > 0 && (!f.Lost || f.StorageError != nil):
		return fmt.Errorf("with %s no commit is made that Conflicts could meet: leave one out, or, with Error and Drop, set Lost", answers[0])
	}
	return nil
}

// answers returns the names of the set fields that replace the answer.
func (f *Fault) answers() (out []string) {
	if f.Error != nil {
		out = append(out, "Error")
	}
	if f.Drop {
		out = append(out, "Drop")
	}
	if f.Expired {
		out = append(out, "Expired")
	}
	if f.StorageError != nil {
		out = append(out, "StorageError")
	}
	return out
}

// cuts reports whether the fault ends watches in progress.
func (f *Fault) cuts() bool { return f.Events > 0 || f.Lasts > 0 }

// commits reports whether the fault happens in the storage.
func (f *Fault) commits() bool { return f.Conflicts > 0 || f.StorageError != nil }

// about returns the verbs of the requests that the fault can affect.
func (f *Fault) about() []string {
	switch {
	case f.cuts():
		return []string{"watch"}
	case f.Expired:
		return []string{"list", "watch"}
	case f.commits():
		return []string{"create", "update", "patch", "delete", "deletecollection"}
	case f.Lost:
		return slices.DeleteFunc(verbs(), func(v string) bool { return v == "watch" })
	}
	return verbs()
}
