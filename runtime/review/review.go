// Package review sends reviews to a webhook that a kubeconfig names: the TokenReviews of package authn/webhook, and the
// SubjectAccessReviews of package authz/webhook. The webhook answers with the review, whose status it has filled in.
//
//	hook, err := review.New(cfg, review.Options{Name: "authorization webhook", Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"})
//	defer hook.Close()
//	err = hook.Ask(ctx, text, &answer)
//
// Webhooks that a URL and a bundle of certificates name are those of package runtime/webhook.
//
// # Bounds
//
// A review is sent up to Options.Attempts times, each bounded by Options.Timeout, with pauses that grow by half. An answer has at most
// [MaxAnswer] bytes. A redirect to another server is refused. A webhook that hangs so costs a caller at most about a minute with the
// defaults, or the time of its context.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/runtime/internal/outbound"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	kjson "sigs.k8s.io/json"
)

// MaxAnswer is the default of Options.Client.MaxAnswer, in bytes.
const MaxAnswer = 1 << 20

// Options are the options of New. Name, Kind and APIVersion are required. The zero values of the others stand for the defaults, which
// are those of kube-apiserver.
type Options struct {
	// Name is what errors begin with, such as "authentication webhook".
	Name string
	// Kind and APIVersion are those of the reviews. An answer with others is an error; one without them is taken for the review.
	Kind, APIVersion string
	// Path is below the URL of the Config; "" means that URL itself.
	Path string
	// Attempts is how often a review is sent if the webhook fails; 0 means 5. It is sent again if the connection is lost, and after
	// answers with the codes 429, 500 and 504 and all that have Retry-After.
	Attempts int
	// Backoff is the time before the second attempt; 0 means 500 ms. It grows by half with each further attempt.
	Backoff time.Duration
	// Timeout bounds an attempt; 0 means 10 s.
	Timeout time.Duration
	// Client are options of the connections. Its Timeout and Retries are those of the webhook.
	Client client.Options
	// Attempted is called after each attempt with its error and how long it took. A nil Attempted is not called.
	Attempted func(err error, took time.Duration)
}

// Webhook sends reviews. Make one with New, and Close it. All methods may be called concurrently.
type Webhook struct {
	o      Options
	client *client.Client
	pauses wait.Backoff
	closed atomic.Bool
}

// New returns the webhook of cfg. The error names the wrong field of cfg or of the options. New connects to nothing.
func New(cfg client.Config, o Options) (*Webhook, error) {
	if o.Attempts < 0 || o.Backoff < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("%s: Options.Attempts, Backoff and Timeout must not be negative", o.Name)
	}
	o.Attempts = cmp.Or(o.Attempts, 5)
	o.Client.Timeout, o.Client.Retries = cmp.Or(o.Timeout, 10*time.Second), -1
	o.Client.MaxAnswer = cmp.Or(o.Client.MaxAnswer, MaxAnswer)
	c, err := client.New(cfg, o.Client)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	pauses := wait.Backoff{Duration: cmp.Or(o.Backoff, 500*time.Millisecond), Factor: 1.5, Jitter: 0.2, Steps: o.Attempts}
	return &Webhook{o: o, client: c, pauses: pauses}, nil
}

// Close ends the calls in progress, which fail, and closes the connections. From then on Ask and Ready fail. A second call has no
// effect.
func (w *Webhook) Close() {
	w.closed.Store(true)
	w.client.Close()
}

// Ready fails after Close. Until then it returns nil: it does not ask the webhook, whose failure would make the server fail, too.
func (w *Webhook) Ready(context.Context) error {
	if w.closed.Load() {
		return fmt.Errorf("%s: it is closed", w.o.Name)
	}
	return nil
}

// Ask sends a review, which is JSON, until the webhook answers or all attempts are made. It decodes the answer, in which a field must have
// the name of its tag exactly: "Allowed" is not "allowed". The error may have a text of the webhook. It wraps that of package client.
func (w *Webhook) Ask(ctx context.Context, review []byte, answer any) error {
	pauses := w.pauses
	for try := 1; ; try++ {
		err := w.attempt(ctx, review, answer)
		if err == nil {
			return nil
		}
		if wrong := (*answerError)(nil); errors.As(err, &wrong) {
			return fmt.Errorf("%s: the answer %w", w.o.Name, err)
		}
		after := pauses.Step()
		if try == w.o.Attempts || !again(err) || !outbound.Lasts(ctx, after) || !outbound.Sleep(ctx, after) {
			return fmt.Errorf("%s: %s: %w", w.o.Name, w.outcome(err, try), err)
		}
	}
}

// attempt sends a review once. The query has the time that the webhook has, as that of kube-apiserver.
func (w *Webhook) attempt(ctx context.Context, review []byte, answer any) (err error) {
	if w.o.Attempted != nil {
		begun := time.Now()
		defer func() { w.o.Attempted(err, time.Since(begun)) }()
	}
	query := url.Values{"timeout": {w.o.Client.Timeout.String()}}
	resp, err := w.client.Do(ctx, client.Request{Method: http.MethodPost, Path: w.o.Path, Query: query, Body: review})
	if err != nil {
		return err
	}
	return w.read(resp.Body, answer)
}

// outcome says what came of a number of attempts, of which the last failed with err.
func (w *Webhook) outcome(err error, attempts int) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Sprintf("no answer in %d attempts", attempts)
	}
	switch code := status.Status().Code; {
	case code == http.StatusNotFound && w.o.Path == "":
		return fmt.Sprintf("refused: the server at that URL serves no %ss at its path", w.o.Kind)
	case code == http.StatusNotFound:
		return fmt.Sprintf("refused: the server at that URL serves no %ss at the path %s", w.o.Kind, w.o.Path)
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		return fmt.Sprintf("%d attempts failed, the last with the code %d", attempts, code)
	default:
		return "refused"
	}
}

// answerError is the error of an answer that cannot be used. The webhook is not asked again.
type answerError struct{ reason string }

// Error implements error.
func (e *answerError) Error() string { return e.reason }

// read decodes the answer of the webhook.
func (w *Webhook) read(body []byte, answer any) error {
	var of struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(body, &of) // as kube-apiserver: "Allowed" is not "allowed"
	if err == nil && (cmp.Or(of.Kind, w.o.Kind) != w.o.Kind || cmp.Or(of.APIVersion, w.o.APIVersion) != w.o.APIVersion) {
		return &answerError{fmt.Sprintf("is a %.100q of %.100q: want a %s of %s", of.Kind, of.APIVersion, w.o.Kind, w.o.APIVersion)}
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, answer)
	}
	if err != nil {
		return &answerError{fmt.Sprintf("is no %s in JSON: %v", w.o.Kind, err)}
	}
	return nil
}

// again reports whether a review is sent again after an error.
func again(err error) bool {
	if _, asked := apierrors.SuggestsClientDelay(err); asked {
		return true
	}
	return utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}
