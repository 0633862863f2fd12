package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review, _ := io.ReadAll(r.Body)
		fmt.Print(string(review))
		_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true,"reason":"ann may"}}`)
	}))
	defer server.Close()
	hook, err := webhook.New(client.Config{Server: server.URL}, webhook.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hook.Close()
	for range 2 { // the second time the answer is remembered
		verdict, reason, err := hook.Authorize(context.Background(), authz.Attributes{User: &authn.User{Name: "ann"}, Verb: "get", Path: "/version"})
		fmt.Println(verdict == authz.Allow, reason, err)
	}
	// Output:
	// {"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"nonResourceAttributes":{"path":"/version","verb":"get"},"user":"ann"},"status":{"allowed":false}}
	// true ann may <nil>
	// true ann may <nil>
}
