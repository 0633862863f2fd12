// Package response answers requests with a Kubernetes Status, in a format that the client accepts:
//
//	response.Error(w, r, apierrors.NewNotFound(widgets, name))
//
// [Status] converts any error to a Status, and [Error] writes it. Handlers and filters convert all errors that clients see, in
// answers and in the ERROR events of watches, by this package.
package response

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
)

// Error answers with the [Status] of err. The format is one that the request accepts: JSON, YAML, protobuf or, see [WithCBOR],
// CBOR. If it accepts none of them, the answer is indented JSON, so that every client can read the reason. JSON is indented for
// ?pretty and for people (curl, wget, browsers). A Status with RetryAfterSeconds sets Retry-After. A Status with code 204 has no
// body. The response must not have begun. For a code of 500 or more, Error calls [SetCause] with err, or with the result of the
// method Cause() error of an error in its chain.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	status := Status(err)
	if status.Code >= http.StatusInternalServerError {
		var fault interface{ Cause() error }
		if errors.As(err, &fault) {
			SetCause(w, fault.Cause())
		} else {
			SetCause(w, err)
		}
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag"} { // headers of another answer, which was not written
		h.Del(name)
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusNoContent {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	rec := request.RecordingFrom(r.Context())
	mediaType, body, accepted := encode(r, status)
	if accepted { // as in kube-apiserver, an answer in a format that the client does not accept is not recorded
		Record(rec, &status)
	}
	h.Set("Content-Type", mediaType)
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body) // the only error is that the client has gone
}

// Record tells the audit of a request that the answer is a Status. [Error] does it.
func Record(rec *audit.Recording, status *metav1.Status) {
	rec.Answered(status)
	if !rec.Wants(audit.RequestResponse) {
		return
	}
	if text, err := json.Marshal(status); err == nil { // see encode
		rec.Response(text)
	}
}

// TimedOut returns the error with code 504 for a request whose time is over.
func TimedOut() error {
	return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
}

// Refuse answers with an HTTP status code, and with the text that apimachinery has for the code.
func Refuse(w http.ResponseWriter, r *http.Request, code int) {
	Error(w, r, apierrors.NewGenericServerResponse(code, strings.ToLower(r.Method), schema.GroupResource{}, "", "", 0, false))
}

// Routed is for paths that kube-apiserver serves by its router. It reports whether r is a GET whose Accept header names one of types,
// the media types of the answer, or */*. Otherwise it answers the request.
func Routed(w http.ResponseWriter, r *http.Request, types []string) bool {
	switch {
	case r.Method != http.MethodGet:
		Refuse(w, r, http.StatusMethodNotAllowed)
	case !codec.Names(r.Header.Get("Accept"), types):
		Error(w, r, codec.Unnamed(types))
	default:
		return true
	}
	return false
}

// encode returns a Status in a format that the request accepts. If it accepts none, accepted is false.
func encode(r *http.Request, status metav1.Status) (mediaType string, body []byte, accepted bool) {
	text, err := json.Marshal(&status)
	if err != nil { // cannot happen: a Status has only texts and numbers
		return "text/plain; charset=utf-8", []byte(status.Message + "\n"), false
	}
	formats := []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf()}
	if servesCBOR(r.Context()) {
		formats = append(formats, codec.CBOR())
	}
	accept, accepted := codec.NegotiateResponse(r.Header.Get("Accept"), formats, codec.Limits{})
	if !accepted {
		accept = codec.Accept{Format: codec.JSON(), Pretty: true}
	}
	if f, is := accept.Format.(*codec.ProtobufFormat); is {
		body, err = f.Encode(&status, metav1.Unversioned.WithKind("Status"))
	} else {
		body, err = accept.Format.FromJSON(text, request.Pretty(r, accept.Pretty))
	}
	if err != nil {
		return codec.JSON().MediaType(), append(text, '\n'), accepted
	}
	return accept.Format.MediaType(), body, accepted
}
