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

// Fault is something that goes wrong with requests while it is injected: see [Server.Inject]. Match says with which, the
// fields below it with which of those, and the others what. The zero value of each field means "not this".
//
//	remove := srv.Inject(servertest.Fault{
//		Match: servertest.Match{Verbs: []string{"update"}, Resources: []string{"widgets/status"}},
//		Times: 2,
//		Error: apierrors.NewTooManyRequests("slow down", 1),
//	})
//	defer remove()
//
// It befalls what authentication and authorization have let through, in the place of the handler or around it, and
// counts in the metrics as what a handler has answered.
//
// What may go together: at most one of Error, Drop, Expired and StorageError; Delay and Jitter with everything; Lost with
// one of Error, Drop and StorageError; Events and Lasts with each other, and with one of Error, Drop and Expired, which
// then say how the watch ends; Conflicts with Lost. Each is about some verbs only, and requests with another are passed
// over, uncounted: Events and Lasts about watch; Expired about list and watch; Conflicts and StorageError about create,
// update, patch, delete and deletecollection; Lost about all but watch. A Fault that could do nothing, one whose Match
// names none of its verbs included, is a mistake.
type Fault struct {
	Match
	// Skip passes over the first requests that match; Times is how many the fault then befalls, 0 being all.
	Skip, Times int
	// Rate is the share of the requests that it befalls, of those not skipped, between 0 and 1; 0 is all. Which ones is
	// drawn from a source of its own that starts from Seed, so that the same requests in the same order have the same fate.
	Rate float64
	// Seed is where Rate and Jitter draw from.
	Seed uint64

	// Delay passes before the request is handled, and up to Jitter more. It ends with the request: a deadline that passes
	// meanwhile is answered with 504 as always; and with the server, which drops the connection.
	Delay, Jitter time.Duration
	// Error is the answer: with the Status of an apimachinery StatusError (apierrors.NewTooManyRequests and the like), its
	// Retry-After included; otherwise 500 with its text and no reason.
	Error error
	// Drop is no answer: the connection is aborted. That is the end of one over HTTP/1.1, and RST_STREAM over HTTP/2,
	// whose other streams go on.
	Drop bool
	// Lost has the request done first: its effects are there, and only its answer is Error, or lost by Drop. With
	// StorageError it is the storage's answer that is lost: the commit is made, and fails nevertheless.
	Lost bool
	// Expired is the answer to a resourceVersion that is too old, as kube-apiserver words it: 410 to a list that names one
	// other than 0, or that goes on with a continue token; an ERROR event as the first to a watch that names one. Lists
	// and watches that name none are passed over. For 410 instead of a watch use Error. With Events or Lasts every watch
	// ends with that event.
	Expired bool

	// Events and Lasts end a watch under way: after so many events, bookmarks included, or after that time, whichever is
	// first. The stream ends cleanly, as at its timeout; with an ERROR event by Error or Expired; aborted by Drop. A
	// watch that ends before by itself does as always, and one over a WebSocket is passed over.
	Events int
	Lasts  time.Duration

	// Conflicts is how many rivals come between, for each request that the fault befalls: just before its commit reaches
	// the storage somebody else writes the same object with the content it had, so that it has a new resourceVersion and
	// watches see it modified. What follows is the server's own: a PUT with a resourceVersion is 409, and what has none is
	// tried again. With math.MaxInt a rival is there each time, until the request's time is up. In a create the rival
	// makes the object. A request that commits nothing meets none; dry runs are passed over, if the query says that they
	// are: a delete that says so in its body counts as one that the fault has befallen.
	Conflicts int
	// StorageError is what the storage answers to the request's commits, which are not made: storage.ErrUnavailable,
	// storage.ErrNoSpace, which becomes a 507, or anything else, which becomes a 500. Dry runs are passed over as by Conflicts.
	StorageError error
}

// check says what is wrong with a fault that could do nothing, or not all it says.
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

// answers are the fields that say what is answered.
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

// cuts reports whether the fault is about watches under way.
func (f *Fault) cuts() bool { return f.Events > 0 || f.Lasts > 0 }

// commits reports whether the fault happens in the storage.
func (f *Fault) commits() bool { return f.Conflicts > 0 || f.StorageError != nil }

// about lists the verbs of the requests that the fault can befall.
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
