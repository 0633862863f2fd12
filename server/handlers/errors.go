package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fail answers with err. It must be called before the first byte of an answer is written.
func (c *call) fail(err error) {
	if c.isWithdrawn() && isFault(err) {
		err = apierrors.NewServiceUnavailable("the resource was withdrawn while the request was under way")
	}
	response.Error(c.w, c.r, err)
}

// isWithdrawn reports whether the kind of the resource was removed from the scheme, or replaced by another kind of the same name.
// A request that is running then may fail for that reason.
func (r *Resource) isWithdrawn() bool { return r.scheme.Lookup(r.main.Kind) != r.main.Known }

// isFault reports whether err is an error of the server or a bad request. Other errors, such as NotFound, describe the state of
// the objects.
func isFault(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusBadRequest || code >= http.StatusInternalServerError
}

// statusIn returns the StatusError that err wraps, or nil. A conversion function of the program may return a StatusError for an
// invalid object.
func statusIn(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return nil
}

// inTime returns the error of a conversion of a sent object. If the time of the request is over, that is no mistake in the object.
func inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && statusIn(err) == nil {
		return response.TimedOut()
	}
	return err
}

// inStream reports whether the error of a watch that could not begin is sent as an event. That is so for errors about the
// resourceVersion that the watch was to begin at.
func inStream(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	code := response.Status(err).Code
	return code == http.StatusGone || code == http.StatusGatewayTimeout
}

func isTooLarge(err error) bool { return err != nil && apierrors.IsRequestEntityTooLargeError(err) }
