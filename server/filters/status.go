package filters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WriteStatus answers with err as a Status: that of an apimachinery StatusError anywhere in its chain; 504 Timeout
// for a deadline that passed; otherwise 500 with the error's text and no reason. A Status of success is written
// likewise. The format, JSON, YAML or protobuf, and below the filter CBOR that too, is one that the request accepts, or
// else indented JSON, so that no client is left without the reason. JSON is indented for ?pretty and for people (curl, wget, browsers). A Status that says
// when to try again sets Retry-After; one with code 204 has no body. The response must not have begun.
func WriteStatus(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status.Code >= http.StatusInternalServerError {
		tellCause(w, err)
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag"} { // of an answer that did not come
		h.Del(name)
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusNoContent {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	mediaType, body := encodeStatus(r, status)
	h.Set("Content-Type", mediaType)
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// statusOf makes a complete Status of any error.
func statusOf(err error) metav1.Status {
	if err == nil {
		err = errors.New("an error was to be answered, but there is none")
	}
	var status metav1.Status
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &api):
		status = api.Status()
	case errors.Is(err, context.DeadlineExceeded):
		status = errTimeout().ErrStatus
	default:
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code < 200 || status.Code > 599 { // no final HTTP status: net/http would panic, or wait for another
		status.Code = http.StatusInternalServerError
		if status.Status == metav1.StatusSuccess {
			status.Code = http.StatusOK
		}
	}
	return status
}

func encodeStatus(r *http.Request, status metav1.Status) (mediaType string, body []byte) {
	text, err := json.Marshal(&status)
	if err != nil { // a Status is texts and numbers
		return "text/plain; charset=utf-8", []byte(status.Message + "\n")
	}
	formats := []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf()}
	if servesCBOR(r) {
		formats = append(formats, codec.CBOR())
	}
	accept, ok := codec.NegotiateResponse(r.Header.Get("Accept"), formats, codec.Limits{})
	if !ok {
		accept = codec.Accept{Format: codec.JSON(), Pretty: true}
	}
	if f, is := accept.Format.(*codec.ProtobufFormat); is {
		body, err = f.Encode(&status, metav1.Unversioned.WithKind("Status"))
	} else {
		body, err = accept.Format.FromJSON(text, request.Pretty(r, accept.Pretty))
	}
	if err != nil {
		return codec.JSON().MediaType(), append(text, '\n')
	}
	return accept.Format.MediaType(), body
}

func errTimeout() *apierrors.StatusError {
	return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
}
