package response

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/storage"
)

// Status returns the complete Status of err for clients, which is the first of these:
//
//   - the Status of an apimachinery StatusError in the chain of err, even if it is a Status of success;
//   - the Status of an error of package storage, such as 410 for an ExpiredError;
//   - 504 Timeout for a context that has ended;
//   - otherwise 500 with the text of the error and no reason.
//
// Long texts are cut: see [MaxMessage].
func Status(err error) metav1.Status {
	status := statusOf(err)
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code < 200 || status.Code > 599 { // not a final HTTP status: net/http would panic, or wait for another
		status.Code = http.StatusInternalServerError
		if status.Status == metav1.StatusSuccess {
			status.Code = http.StatusOK
		}
	}
	return bounded(status)
}

// Rejected returns a TooManyRequests error, with the seconds after which to try again, for a *flowcontrol.RejectedError. It
// returns any other error unchanged.
func Rejected(err error) error {
	var full *flowcontrol.RejectedError
	if errors.As(err, &full) {
		return apierrors.NewTooManyRequests(full.Reason, full.Seconds())
	}
	return err
}

func statusOf(err error) metav1.Status {
	if err == nil {
		err = errors.New("an error was to be answered, but there is none")
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	var (
		expired    *storage.ExpiredError
		future     *storage.FutureError
		unreadable *storage.UnreadableError
		file       *storage.FileError
	)
	switch {
	case errors.As(err, &expired):
		return apierrors.NewResourceExpired(expired.Error()).ErrStatus
	case errors.As(err, &future):
		return futureStatus(future)
	case errors.As(err, &unreadable):
		return metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: unreadable.Error()}
	case errors.Is(err, storage.ErrNoSpace):
		return metav1.Status{Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage", Message: storage.Public(err)}
	case errors.As(err, &file):
		return metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: storage.Public(err)}
	case errors.Is(err, storage.ErrUnavailable):
		return apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %v", err), 0).ErrStatus
	}
	return metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
}

func futureStatus(err *storage.FutureError) metav1.Status {
	out := apierrors.NewTimeoutError(err.Error(), 1).ErrStatus
	out.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return out
}
