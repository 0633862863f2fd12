package webhook

import (
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	maxRefusal     = 1 << 20 // bytes that are read of an answer which is an error
	maxRefusalText = 2048    // and what of them is shown when they are text
	maxRefusalYAML = 64 << 10
)

// refusal is the error that an answer is: the Status that it has, or what its code means.
func refusal(resp *http.Response, body []byte, retryAfter int) error {
	if s := statusOf(body); s != nil {
		return apierrors.FromObject(s)
	}
	message := "unknown"
	if isText(resp.Header.Get("Content-Type")) {
		message = strings.TrimSpace(string(body[:min(len(body), maxRefusalText)]))
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", message, retryAfter, true)
}

// statusOf returns the Status that a body is, in JSON or YAML, if it tells of a failure.
func statusOf(body []byte) *metav1.Status {
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' {
		if len(body) > maxRefusalYAML {
			return nil
		}
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil
		}
	}
	s := &metav1.Status{}
	if err := json.UnmarshalCaseSensitivePreserveInts(body, s); err != nil {
		return nil
	}
	if s.Kind != "Status" || s.Status != metav1.StatusFailure { // of any apiVersion, as in kube-apiserver
		return nil
	}
	return s
}

func isText(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}
