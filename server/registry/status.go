package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Texts of kube-apiserver for history that is gone.
const (
	listExpired     = "The resourceVersion for the provided list is too old."
	watchExpired    = "The resourceVersion for the provided watch is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter."
	continueInconsistent = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may " +
		"show up in the list."
)

// status makes the StatusError of a storage error about the object called name. Errors which already are one, and
// errors that are not the storage's, are returned as they are. This file is the only place where that happens.
func (r *Registry) status(err error, name string) error {
	var (
		expired    *storage.ExpiredError
		future     *storage.FutureError
		unreadable *storage.UnreadableError
	)
	switch {
	case err == nil || isStatus(err):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return apierrors.NewNotFound(r.resource, name)
	case errors.Is(err, storage.ErrExists):
		return apierrors.NewAlreadyExists(r.resource, name)
	case errors.As(err, &expired):
		return apierrors.NewResourceExpired(expired.Error())
	case errors.As(err, &future):
		return tooLargeVersion(future)
	case errors.As(err, &unreadable):
		return r.unreadable(unreadable, name)
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, storage.ErrBadContinue):
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	case errors.Is(err, storage.ErrNoSpace):
		return apierrors.NewInternalError(fmt.Errorf("the storage cannot take the write: %w", err))
	case errors.Is(err, storage.ErrClosed):
		return apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	}
	return err
}

// listStatus is status for lists; continued says that there was a continue token.
func (r *Registry) listStatus(err error, continued bool) error {
	var expired *storage.ExpiredError
	if !errors.As(err, &expired) {
		return r.status(err, "")
	}
	switch {
	case expired.Continue != "":
		gone := apierrors.NewResourceExpired(continueInconsistent)
		gone.ErrStatus.Continue = expired.Continue
		return gone
	case continued:
		return apierrors.NewResourceExpired(continueExpired)
	}
	return apierrors.NewResourceExpired(listExpired)
}

// watchStatus is status for watches, but leaves what ends a watch without an error event as it is.
func (r *Registry) watchStatus(err error) error {
	var expired *storage.ExpiredError
	switch {
	case errors.Is(err, storage.ErrClosed) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &expired) && expired.Oldest == 0:
		return apierrors.NewResourceExpired(watchExpired)
	}
	return r.status(err, "")
}

func tooLargeVersion(future *storage.FutureError) error {
	err := apierrors.NewTimeoutError(future.Error(), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

func (r *Registry) unreadable(err *storage.UnreadableError, name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInternalServerError,
		Reason: metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{
			Group: r.resource.Group, Kind: r.resource.Resource, Name: name,
			Causes: []metav1.StatusCause{{
				Type: metav1.CauseTypeUnexpectedServerResponse, Field: err.Key, Message: err.Err.Error(),
			}},
		},
		Message: fmt.Sprintf("failed to read one or more %s from the storage: %v", r.resource.String(), err),
	}}
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// refused makes the error of an admission plug-in a StatusError: any plain error is a Forbidden.
func (r *Registry) refused(err error, name string) error {
	return refused(err, r.resource, name)
}
