package webhook

import (
	"errors"
	"fmt"
)

// Error is the error of a failed call. Its text is for clients: it names the webhook, and is the same for every failure, unless
// Options.ShowErrors is set. Reason is for the log of the server.
//
// errors.Is of an Error compares its Reason, such as context.DeadlineExceeded. An Error does not unwrap to its Reason: otherwise
// errors.As would find an API error in it, such as a Status from the webhook's answer, and that error would be shown to clients.
type Error struct {
	// URL is the URL of the request, with the query.
	URL string
	// Reason is the cause, with the text that kube-apiserver shows its clients. It is never nil.
	//
	//   - A *url.Error if there was no answer: `Post "https://hooks.example.com/convert?timeout=30s": dial tcp ...: connection
	//     refused`, or the problem with the certificate. It names the webhook.
	//   - A *apierrors.StatusError if the answer was an error. Its text is that of the Status in the body, or depends on the
	//     code: `the server could not find the requested resource`, `an error on the server ("...") has prevented the request
	//     from succeeding`, and so on. It does not name the webhook: see [Client.String].
	//   - Another error if the answer could not be read.
	Reason error

	shown bool
}

// Error implements error.
func (e *Error) Error() string {
	if e.shown {
		return e.Reason.Error()
	}
	return fmt.Sprintf("Post %q: no usable answer; the log of the server says why", e.URL)
}

// Is implements errors.Is.
func (e *Error) Is(target error) bool { return errors.Is(e.Reason, target) }

// Reject returns the error of a call whose answer is not valid for this kind of webhook. The caller of Post decodes the answer,
// and gives the reason. The text for clients does not show what the server at that address answered.
func (c *Client) Reject(reason error) *Error {
	return &Error{URL: c.target.url, Reason: reason, shown: c.caller.opts.ShowErrors}
}
