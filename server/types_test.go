package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	appsv1 "k8s.io/api/apps/v1"
)

// The types of an existing api package are served by a server that is made with New.
func TestTypes(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	if err := srv.Install(server.Types{AddToScheme: appsv1.AddToScheme, Without: []string{"ControllerRevision"}}); err != nil {
		t.Fatal(err)
	}
	code, body := call(t, &http.Client{Transport: srv.Loopback(authn.System())}, "GET", "http://loopback/apis/apps/v1", "")
	if code != 200 || !strings.Contains(body, `"deployments/status"`) || strings.Contains(body, "controllerrevisions") {
		t.Errorf("%d %s", code, body)
	}
	if err := srv.Install(server.Types{AddToScheme: appsv1.AddToScheme, Without: []string{"Deploy"}}); err == nil || !strings.Contains(err.Error(), `server.Types: Without names the kind "Deploy"`) {
		t.Error(err)
	}
}
