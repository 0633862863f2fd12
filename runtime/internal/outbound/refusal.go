package outbound

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// MaxRefusal limits the bytes that are read of an error answer.
	MaxRefusal = 1 << 20

	maxRefusalText = 2048 // the largest part of a text body that is shown, in bytes
	maxRefusalYAML = 64 << 10
)

// Refusal returns the error for an answer whose code does not mean success: the Status in its body, or an error for its code with
// the text of client-go. method is that of the request before redirects. resource and name are those of the requested object, if
// any.
func Refusal(resp *http.Response, body []byte, method string, resource schema.GroupResource, name string) error {
	if err := StatusError(body); err != nil {
		return err
	}
	message := "unknown"
	if isText(resp.Header.Get("Content-Type")) {
		message = strings.TrimSpace(string(body[:min(len(body), maxRefusalText)]))
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return apierrors.NewGenericServerResponse(resp.StatusCode, method, resource, name, message, seconds, true)
}

// StatusError returns the error for a text in JSON or YAML that is a failure Status of any apiVersion, and nil for any other
// text.
func StatusError(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if text[0] != '{' {
		if len(text) > maxRefusalYAML {
			return nil
		}
		var err error
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return nil
		}
	}
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
