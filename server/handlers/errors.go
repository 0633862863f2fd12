package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/patch"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fail answers with err. Nothing of an answer may have been written.
func (c *call) fail(err error) {
	if c.isWithdrawn() && isFault(err) {
		err = apierrors.NewServiceUnavailable("the resource was withdrawn while the request was under way")
	}
	writeError(c.w, c.r, err)
}

// isWithdrawn reports whether the scheme knows the resource's kind no longer, or another one by that name: what a request
// that is under way then stumbles over is no fault of anybody's.
func (r *Resource) isWithdrawn() bool { return r.scheme.Lookup(r.main.Kind) != r.main.Known }

// isFault reports whether err blames the server or what the request says, rather than tell how things are.
func isFault(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusBadRequest || code >= http.StatusInternalServerError
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	filters.WriteStatus(w, r, shownError(err))
}

// statusIn returns the StatusError that err wraps, or nil: a conversion of the program's own may say what is wrong with an
// object.
func statusIn(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return nil
}

// shownError is err as clients are told it. StatusErrors are, others get their text: a deadline that passed is 504.
func shownError(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %v", err), 0)
	}
	return err
}

// watchStatus is the Status by which an ERROR event tells err.
func watchStatus(err error) metav1.Status {
	var (
		status     apierrors.APIStatus
		expired    *storage.ExpiredError
		unreadable *storage.UnreadableError
		future     *storage.FutureError
		out        metav1.Status
	)
	switch {
	case errors.As(err, &status):
		out = status.Status()
	case errors.As(err, &expired):
		out = apierrors.NewResourceExpired(expired.Error()).ErrStatus
	case errors.As(err, &future):
		out = futureStatus(future)
	case errors.As(err, &unreadable):
		out = metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Reason: metav1.StatusReasonStoreReadError, Message: unreadable.Error(),
		}
	case errors.Is(err, storage.ErrUnavailable):
		out = apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	default:
		out = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	out.Kind, out.APIVersion = "Status", "v1"
	return out
}

func futureStatus(err *storage.FutureError) metav1.Status {
	out := apierrors.NewTimeoutError(err.Error(), 1).ErrStatus
	out.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return out
}

// inStream reports whether a watch that could not begin tells err as an event: those that are about the
// resourceVersion it was to begin at.
func inStream(err error) bool {
	switch watchStatus(err).Code {
	case http.StatusGone, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func isTooLarge(err error) bool { return err != nil && apierrors.IsRequestEntityTooLargeError(err) }

// patchError words why a patch cannot be applied.
func patchError(err error) error {
	var bad *patch.Error
	if !errors.As(err, &bad) {
		return err
	}
	switch bad.Code {
	case http.StatusRequestEntityTooLarge:
		return apierrors.NewRequestEntityTooLargeError(bad.Message)
	case http.StatusUnprocessableEntity:
		return apierrors.NewGenericServerResponse(bad.Code, "", schema.GroupResource{}, "", bad.Message, 0, false)
	}
	return apierrors.NewBadRequest(bad.Message)
}
