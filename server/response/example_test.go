package response_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A handler answers with an error as clients of Kubernetes expect it.
func ExampleError() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Error(w, r, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "boats"}, "dinghy"))
	})
	r := httptest.NewRequest("GET", "/apis/example.com/v1/namespaces/default/boats/dinghy", nil)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Kind, status.Reason, status.Message)
	// Output:
	// 404 application/json
	// Status NotFound boats.example.com "dinghy" not found
}

// Every error has a Status.
func ExampleStatus() {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "boats"}, "dinghy", errors.New("it was changed"))
	for _, err := range []error{errors.New("the mast is broken"), fmt.Errorf("launching: %w", conflict)} {
		status := response.Status(err)
		fmt.Printf("%d %q %s\n", status.Code, status.Reason, status.Message)
	}
	// Output:
	// 500 "" the mast is broken
	// 409 "Conflict" Operation cannot be fulfilled on boats.example.com "dinghy": it was changed
}
