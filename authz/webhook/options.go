package webhook

import (
	"cmp"
	"context"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/runtime/review"
)

// Versions of SubjectAccessReview.
const (
	V1      = "v1"
	V1beta1 = "v1beta1"
)

const (
	// SubjectAccessReviews is the path of SubjectAccessReviews in a server of the Kubernetes API.
	SubjectAccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	// MaxAnswer is the default of Options.Client.MaxAnswer, in bytes.
	MaxAnswer = review.MaxAnswer
	// MaxRemembered is the size of the attributes of a request, in bytes, from which on its answer is not remembered: verb, path, and what
	// names the object. The user and selectors do not count.
	MaxRemembered = 10_000
)

// Options are the options of New. The zero values stand for the defaults, which are those of kube-apiserver, except for Version.
type Options struct {
	// Name is the name of the webhook, for Hooks.
	Name string
	// Version is the version of the SubjectAccessReviews in the group authorization.k8s.io; "" means V1. The flag of kube-apiserver has the
	// default v1beta1.
	Version string
	// Path is below the URL of the Config, such as [SubjectAccessReviews]; "" means that URL itself.
	Path string
	// Deny makes a failure of the webhook, or of Match, a denial. By default it is no opinion, so that another authorizer may allow.
	Deny bool
	// Match reports whether the webhook is asked about a request; otherwise it has no opinion. nil is always. Package condition makes a
	// Match of expressions in CEL. It must not change the Spec, nor keep it.
	Match func(ctx context.Context, s *Spec) (bool, error)
	// Authorized and Unauthorized are how long it is remembered that a request is allowed, and that it is not; 0 means 5 minutes and
	// 30 seconds, less than 0 not at all.
	Authorized, Unauthorized time.Duration
	// Entries and Bytes bound the answers that are remembered; 0 means 8192 and 16 MiB. Those that were not used for the longest time are
	// dropped.
	Entries, Bytes int
	// Attempts is how often a review is sent if the webhook fails; 0 means 5. See review.Options.
	Attempts int
	// Backoff is the time before the second attempt; 0 means 500 ms. It grows by half with each further attempt.
	Backoff time.Duration
	// Timeout bounds an attempt; 0 means 30 s. Time bounds all of them, with the pauses; 0 means a minute.
	Timeout, Time time.Duration
	// Client are options of the connections. Its Timeout and Retries are those of the webhook.
	Client client.Options
	// Hooks tell what happens.
	Hooks Hooks
}

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, V1)
	o.Authorized, o.Unauthorized = cmp.Or(o.Authorized, 5*time.Minute), cmp.Or(o.Unauthorized, 30*time.Second)
	o.Entries, o.Bytes = cmp.Or(o.Entries, 8192), cmp.Or(o.Bytes, 16<<20)
	o.Timeout, o.Time = cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.Time, time.Minute)
	o.Hooks = o.Hooks.withDefaults()
	return o
}

// Results of attempts and of calls, for Hooks.
const (
	Success  = "success"  // the webhook has answered
	Error    = "error"    // it has failed
	Timeout  = "timeout"  // it has not answered in time, or with the code 504
	Canceled = "canceled" // the request has ended
)

// Hooks are functions that an Authorizer calls; any of them may be nil. They must return quickly, and may be called concurrently. name is
// Options.Name.
type Hooks struct {
	// Attempted is called after each attempt to send a review, with what became of it, and how long that took.
	Attempted func(name, result string, took time.Duration)
	// FailedOpen is called when the webhook has failed and this is no opinion, with the result. A failure of Match does not count, as in
	// kube-apiserver.
	FailedOpen func(name, result string)
	// Failed is called when there is no usable answer, with an error that has what the user is not told, and when Match has failed.
	Failed func(name string, err error)
	// Matched is called after each Match, with its error, whether the webhook is asked, and how long it took. It tells how often Match fails;
	// Failed tells why.
	Matched func(name string, asked bool, err error, took time.Duration)
}

func (h Hooks) withDefaults() Hooks {
	if h.Attempted == nil {
		h.Attempted = func(string, string, time.Duration) {}
	}
	if h.FailedOpen == nil {
		h.FailedOpen = func(string, string) {}
	}
	if h.Failed == nil {
		h.Failed = func(string, error) {}
	}
	if h.Matched == nil {
		h.Matched = func(string, bool, error, time.Duration) {}
	}
	return h
}
