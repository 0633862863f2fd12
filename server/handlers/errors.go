package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/runtime/patch"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fail answers with err. Nothing of an answer may have been written.
func (c *call) fail(err error) {
	if c.isWithdrawn() && isFault(err) {
		err = apierrors.NewServiceUnavailable("the resource was withdrawn while the request was under way")
	}
	response.Error(c.w, c.r, err)
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

// statusIn returns the StatusError that err wraps, or nil: a conversion of the program's own may say what is wrong with an
// object.
func statusIn(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return nil
}

// inStream reports whether a watch that could not begin tells err as an event: those that are about the
// resourceVersion it was to begin at.
func inStream(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	code := response.Status(err).Code
	return code == http.StatusGone || code == http.StatusGatewayTimeout
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
