package response_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keelson-dev/keelson/server/response"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const notFoundJSON = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"a\" not found","reason":"NotFound","details":{"name":"a","group":"example.com","kind":"widgets"},"code":404}` + "\n"

const notFoundPretty = `{
  "kind": "Status",
  "apiVersion": "v1",
  "metadata": {},
  "status": "Failure",
  "message": "widgets.example.com \"a\" not found",
  "reason": "NotFound",
  "details": {
    "name": "a",
    "group": "example.com",
    "kind": "widgets"
  },
  "code": 404
}`

const notFoundYAML = `apiVersion: v1
code: 404
details:
  group: example.com
  kind: widgets
  name: a
kind: Status
message: widgets.example.com "a" not found
metadata: {}
reason: NotFound
status: Failure
`

const notFoundProtobuf = "k8s\x00\n\f\n\x02v1\x12\x06Status\x12`\n\x06\n\x00\x12\x00\x1a\x00\x12\aFailure\x1a!widgets.example.com \"a\" not found" +
	"\"\bNotFound*\x1d\n\x01a\x12\vexample.com\x1a\awidgets(\x002\x000\x94\x03\x1a\x00\"\x00"

func TestErrorFormat(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "a")
	for _, tc := range []struct{ name, query, accept, agent, mediaType, want string }{
		{"default", "", "", "", "application/json", notFoundJSON},
		{"client-go", "", "application/json, */*", "kubectl/v1.37", "application/json", notFoundJSON},
		{"table", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "", "application/json", notFoundJSON},
		{"table only", "", "application/json;as=Table;v=v1;g=meta.k8s.io", "", "application/json", notFoundPretty},
		{"watch", "", "application/json;stream=watch", "", "application/json", notFoundJSON},
		{"yaml", "", "application/yaml", "", "application/yaml", notFoundYAML},
		{"yaml, stream or not", "", "application/yaml;stream=watch, application/yaml;q=0.5", "", "application/yaml", notFoundYAML},
		{"not acceptable", "", "text/html", "", "application/json", notFoundPretty},
		{"protobuf", "pretty=true", "application/vnd.kubernetes.protobuf,application/json", "", "application/vnd.kubernetes.protobuf", notFoundProtobuf},
		{"metadata in protobuf", "", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", "application/json", notFoundPretty},
		{"curl", "", "*/*", "curl/8.1", "application/json", notFoundPretty},
		{"wget", "", "", "Wget/1.2", "application/json", notFoundPretty},
		{"browser", "", "text/html,*/*;q=0.8", "Mozilla/5.0 (X11)", "application/json", notFoundPretty},
		{"asked for", "pretty=true", "", "", "application/json", notFoundPretty},
		{"curl, asked not to", "pretty=0", "", "curl/8.1", "application/json", notFoundJSON},
		{"empty question", "pretty=", "", "curl/8.1", "application/json", notFoundPretty},
		{"by parameter", "", "application/json;pretty=1", "", "application/json", notFoundPretty},
		{"nonsense", "", ";;,/,=", "", "application/json", notFoundPretty},
	} {
		r := httptest.NewRequest(http.MethodGet, "/x?"+tc.query, nil)
		if tc.accept != "" {
			r.Header.Set("Accept", tc.accept)
		}
		if tc.agent != "" {
			r.Header.Set("User-Agent", tc.agent)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Etag", "of what did not come")
		response.Error(w, r, notFound)
		if w.Code != 404 || w.Header().Get("Content-Type") != tc.mediaType || w.Body.String() != tc.want || w.Header().Get("Etag") != "" {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", tc.name, w.Code, w.Header(), w.Body, tc.want)
		}
	}
}

func TestErrorStatus(t *testing.T) {
	wrapped := fmt.Errorf("while listing: %w", apierrors.NewBadRequest("bad"))
	for _, tc := range []struct {
		name    string
		err     error
		code    int
		reason  metav1.StatusReason
		message string
		retry   string
	}{
		{"plain", errors.New("oops <&>"), 500, "", "oops <&>", ""},
		{"wrapped", wrapped, 400, "BadRequest", "bad", ""},
		{"deadline", fmt.Errorf("get: %w", context.DeadlineExceeded), 504, "Timeout", "Timeout: request did not complete within requested timeout - get: context deadline exceeded", ""},
		{"client gone", context.Canceled, 504, "Timeout", "Timeout: request did not complete within requested timeout - context canceled", ""},
		{"too many", apierrors.NewTooManyRequests("later", 7), 429, "TooManyRequests", "later", "7"},
		{"large version", apierrors.NewTimeoutError("Too large resource version", 1), 504, "Timeout", "Timeout: Too large resource version", "1"},
		{"history gone", fmt.Errorf("watch: %w", &storage.ExpiredError{Revision: 3, Oldest: 7}), 410, "Expired", "too old resource version: 3 (7)", ""},
		{"future", fmt.Errorf("list: %w", &storage.FutureError{Requested: 9, Current: 7}), 504, "Timeout", "Timeout: Too large resource version: 9, current: 7", "1"},
		{"unreadable", fmt.Errorf("list: %w", &storage.UnreadableError{Key: "a", Err: errors.New("rot")}), 500, metav1.StatusReasonStoreReadError, `stored object "a" cannot be read: rot`, ""},
		{"no storage", fmt.Errorf("get: %w", storage.ErrUnavailable), 503, "ServiceUnavailable", "get: storage is unavailable", ""},
		{"no code", &apierrors.StatusError{ErrStatus: metav1.Status{Message: "m"}}, 500, "", "m", ""},
		{"impossible code", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 7, Message: "m"}}, 500, "", "m", ""},
		{"nil", nil, 500, "", "an error was to be answered, but there is none", ""},
	} {
		w := httptest.NewRecorder()
		response.Error(w, httptest.NewRequest(http.MethodGet, "/", nil), tc.err)
		var s metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if w.Code != tc.code || int(s.Code) != tc.code || s.Status != "Failure" || s.Reason != tc.reason || s.Message != tc.message ||
			w.Header().Get("Retry-After") != tc.retry || s.Kind != "Status" || s.APIVersion != "v1" {
			t.Errorf("%s: %d %v %+v", tc.name, w.Code, w.Header(), s)
		}
	}
	for code, wantBody := range map[int32]bool{204: false, 0: true} {
		w := httptest.NewRecorder()
		response.Error(w, httptest.NewRequest(http.MethodGet, "/", nil), &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Success", Code: code}})
		if (w.Body.Len() > 0) != wantBody || (code == 0 && w.Code != 200) || (code != 0 && w.Code != int(code)) {
			t.Errorf("success with code %d: %d %q", code, w.Code, w.Body)
		}
	}
}
