package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Messages of kube-apiserver for old resourceVersions that are no longer available.
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

// status returns the StatusError for a storage error about the object called name. StatusErrors, and errors that are not of the
// storage, are returned without a change. Storage errors are translated only in this file.
func (r *Registry) status(err error, name string) error {
	if err == nil {
		return nil // the variables of failure are allocated, so they are in a function of their own
	}
	return r.failure(err, name)
}

func (r *Registry) failure(err error, name string) error {
	var (
		expired    *storage.ExpiredError
		future     *storage.FutureError
		filling    *storage.FillingError
		unreadable *storage.UnreadableError
		conversion *runtime.ConversionError
		file       *storage.FileError
	)
	switch {
	case isStatus(err):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return apierrors.NewNotFound(r.resource, name)
	case errors.Is(err, storage.ErrExists):
		return apierrors.NewAlreadyExists(r.resource, name)
	case errors.As(err, &expired):
		return apierrors.NewResourceExpired(expired.Error())
	case errors.As(err, &filling):
		return apierrors.NewTooManyRequests(filling.Error(), int(filling.RetryAfter/time.Second))
	case errors.As(err, &future):
		return tooLargeVersion(future)
	case errors.As(err, &unreadable):
		return apierrors.NewInternalError(corrupt(unreadable))
	case errors.As(err, &conversion) && !isEnd(err): // the object to store could not be converted; nothing was stored
		return apierrors.NewBadRequest(fmt.Sprintf("the object cannot be stored: %v", err))
	case errors.Is(err, storage.ErrBadKey): // the rules of the kind allow the name
		why := field.Invalid(field.NewPath("metadata", "name"), name, "the storage cannot hold an object of this name or namespace")
		return excerpt.Invalid(r.kind.GVK.GroupKind(), name, field.ErrorList{why})
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, storage.ErrBadContinue):
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	case errors.Is(err, storage.ErrNoSpace):
		return &faultError{r.insufficientStorage(name), err}
	case errors.As(err, &file):
		return &faultError{apierrors.NewInternalError(errors.New(storage.Public(err))), err}
	case errors.Is(err, storage.ErrClosed):
		return apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, storage.ErrUnavailable):
		// No Retry-After: with it, clients would repeat a change that may have been made.
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%v; if this was a change, it may have been made", err))
	case errors.Is(err, context.DeadlineExceeded): // still the end of this request, and no error of others that wait for the same result
		return &faultError{apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0), err}
	}
	return err
}

// isEnd reports whether err means that the request has ended: its time is over, or its client is gone.
func isEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// insufficientStorage returns the status of a write for which the storage has no room. kube-apiserver returns the error of etcd
// in a 500. No reason of apimachinery fits. There is no Retry-After, because an operator has to make room.
func (r *Registry) insufficientStorage(name string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: "the storage is full: what makes it grow is refused until something has been deleted or the operator has made room",
		Details: &metav1.StatusDetails{Group: r.resource.Group, Kind: r.resource.Resource, Name: name},
	}}
}

// faultError is a StatusError whose cause is for the server's log and not for clients.
type faultError struct {
	*apierrors.StatusError
	cause error
}

// Cause returns the cause, for the log.
func (e *faultError) Cause() error { return e.cause }

func (e *faultError) Unwrap() []error { return []error{e.StatusError, e.cause} }

// readStatus is status for reads. It sets no Retry-After either: with it, clients would try ten times before they show an error
// to the user.
func (r *Registry) readStatus(err error, name string) error {
	if err == nil || isStatus(err) || !errors.Is(err, storage.ErrUnavailable) {
		return r.status(err, name)
	}
	return apierrors.NewServiceUnavailable(err.Error())
}

// listStatus is readStatus for lists. continued says that the request has a continue token.
func (r *Registry) listStatus(err error, continued bool) error {
	var (
		expired    *storage.ExpiredError
		unreadable *storage.UnreadableError
	)
	switch {
	case isStatus(err):
		return err
	case errors.As(err, &unreadable):
		return r.unreadable(unreadable, "list") // the name that kube-apiserver uses
	case !errors.As(err, &expired):
		return r.readStatus(err, "")
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

// watchStatus is readStatus for watches. It does not change errors that end a watch without an error event.
func (r *Registry) watchStatus(err error) error {
	var (
		expired    *storage.ExpiredError
		unreadable *storage.UnreadableError
	)
	switch {
	case isStatus(err):
		return err
	case errors.As(err, &unreadable):
		return r.unreadable(unreadable, "")
	case errors.Is(err, storage.ErrClosed) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &expired) && expired.Oldest == 0:
		return apierrors.NewResourceExpired(watchExpired)
	}
	return r.readStatus(err, "")
}

func tooLargeVersion(future *storage.FutureError) error {
	err := apierrors.NewTimeoutError(future.Error(), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// corrupt returns the error of kube-apiserver for one object that cannot be read.
func corrupt(err *storage.UnreadableError) error {
	return fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=%d: %w",
		storedKey(err), err.Revision, err.Err)
}

// storedKey returns the key in the backend. An administrator can find the value with it.
func storedKey(err *storage.UnreadableError) string { return cmp.Or(err.StoredKey, err.Key) }

// unreadable returns the error for objects that a list or a watch cannot read, with a cause for each object. The message names
// several of the objects, because kubectl shows only the message. The message of kube-apiserver names the first.
func (r *Registry) unreadable(err *storage.UnreadableError, name string) error {
	var causes []metav1.StatusCause
	for one := range err.All() {
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: storedKey(one), Message: fmt.Sprint(one.Err),
		})
	}
	if err.Truncated {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: r.resource.Group, Kind: r.resource.Resource, Name: name, Causes: causes},
		Message: fmt.Sprintf("failed to read one or more %s from the storage: %v", r.resource.String(), err),
	}}
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// failed reports whether an error means that nothing was changed. For errors of the server that is not known, except for a full
// storage.
func failed(err error) bool {
	var status apierrors.APIStatus
	return errors.Is(err, storage.ErrNoSpace) || errors.As(err, &status) &&
		status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}

// refused returns a StatusError for the error of an admission plug-in. An error that is not a StatusError becomes a Forbidden.
func refused(err error, resource schema.GroupResource, name string) error {
	if err == nil || isStatus(err) || isEnd(err) {
		return err
	}
	if name == "" {
		name = "Unknown"
	}
	return apierrors.NewForbidden(resource, name, err)
}
