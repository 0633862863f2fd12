package webhook

import (
	"errors"
	"fmt"
)

// Error is why a call failed. Its text is for clients: it names the webhook, and is the same whatever happened, unless
// Options.ShowErrors is set. Reason is for the log of the server.
//
// An Error is what errors.Is says of its Reason, such as context.DeadlineExceeded, but does not unwrap to it: an error of the API
// in it, such as a Status that was the answer, would be found by errors.As and be shown to clients.
type Error struct {
	// URL is what was asked, with the query.
	URL string
	// Reason says what happened: see the package about its texts. It is never nil.
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

// Reject returns the error of a call whose answer cannot be used for a reason that the caller of Post has found, since it is not
// one of a webhook of that kind: for clients, it is none of their business what answers there instead.
func (c *Client) Reject(reason error) *Error {
	return &Error{URL: c.target.url, Reason: reason, shown: c.caller.opts.ShowErrors}
}
