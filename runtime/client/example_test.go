package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/client"
)

// The program reads the roles of another server like those of its own server.
func Example() {
	serve := func(ctx context.Context, kubeconfig string) error {
		cfg, err := client.Kubeconfig(kubeconfig, "")
		if err != nil {
			return err
		}
		c, err := client.New(cfg, client.Options{UserAgent: "my-server/1.0"})
		if err != nil {
			return err
		}
		defer c.Close()
		scheme := runtime.NewScheme()
		if _, err := scheme.Import(rbacv1.AddToScheme); err != nil {
			return err
		}
		readers := client.NewReaders(c, client.ReadersOptions{Scheme: scheme})
		defer readers.Close()
		admin, err := runtime.Read[*rbacv1.ClusterRole](readers).Get(ctx, "", "admin", runtime.Freshness{})
		if err != nil {
			return err
		}
		fmt.Println(len(admin.Rules))
		return nil
	}
	fmt.Println(serve(context.Background(), "does-not-exist.kubeconfig"))
	// Output: kubeconfig: open does-not-exist.kubeconfig: no such file or directory
}

// A webhook is called at the URL of its kubeconfig.
func ExampleClient_Do() {
	webhook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"asked":%q}`, r.URL.Path)
	}))
	defer webhook.Close()
	c, err := client.New(client.Config{Server: webhook.URL + "/authorize"}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.Do(context.Background(), client.Request{Method: http.MethodPost, Body: []byte(`{"kind":"SubjectAccessReview"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Body))
	// Output: {"asked":"/authorize"}
}
