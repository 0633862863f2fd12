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
	// MaxRefusal is how many bytes are read of an answer that is an error.
	MaxRefusal = 1 << 20

	maxRefusalText = 2048 // bytes that are shown when they are text
	maxRefusalYAML = 64 << 10
)

// Refusal is the error that an answer is whose code is not one of success: the Status in its body, or what its code means, in
// the words of client-go. The method is that of the request before redirects; the resource and the name are those of the object
// that was asked for, if any.
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

// StatusError returns the error that a text in JSON or YAML is: a Status of a failure, of any apiVersion. Any other text is nil.
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
