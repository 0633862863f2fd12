package client

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

const (
	maxRefusal     = 1 << 20 // bytes that are read of an answer which is an error
	maxRefusalText = 2048    // and what of them is shown when they are text
)

// refusal is the error that an answer is: the Status in its body, or what its code means. It does not close the body.
func refusal(r *Request, resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a part of a refusal is a refusal
	if err := statusError(body); err != nil {
		return err
	}
	message := "unknown"
	if isText(resp.Header.Get("Content-Type")) {
		message = strings.TrimSpace(string(body[:min(len(body), maxRefusalText)]))
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return apierrors.NewGenericServerResponse(resp.StatusCode, r.method(), r.about.resource, r.about.name, message, seconds, true)
}

// statusError returns the error that a JSON text is: a Status that is no success. Any other text is nil.
func statusError(text []byte) error {
	s := &metav1.Status{}
	if err := json.UnmarshalCaseSensitivePreserveInts(text, s); err != nil || s.Kind != "Status" || s.Status != metav1.StatusFailure {
		return nil
	}
	return apierrors.FromObject(s)
}

func isText(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}
