package servertest_test

import (
	"net/http"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
)

// Groups are those of a program.
var groups = []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
	server.Kind("Widget", server.KindOptions[*Widget]{}),
}}}}}

// The test of the README.
func TestWidgets(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, groups[0], builtin.New(builtin.Options{}))
	resp, err := srv.Client().Get(srv.URL + "/apis/example.com/v1/namespaces/default/widgets")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}
