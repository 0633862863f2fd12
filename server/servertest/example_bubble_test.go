package servertest_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A whole server with its clients in a bubble of testing/synctest: time passes only when all of them wait, and then it passes at
// once.
func ExampleNew_bubble() {
	var t *testing.T // of the test

	synctest.Test(t, func(t *testing.T) {
		srv := servertest.New(t, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*Widget]{TTL: 8 * time.Hour}),
		}}}})
		widgets := srv.URL + "/apis/example.com/v1/namespaces/a/widgets"
		resp, err := srv.Client().Post(widgets, "application/json", strings.NewReader(`{"metadata":{"name":"w"}}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()

		time.Sleep(8 * time.Hour) // takes no time
		synctest.Wait()           // until the server has nothing left to do: the widget has expired and was deleted

		if resp, err = srv.Client().Get(widgets + "/w"); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("the widget is there after its time: %s", resp.Status)
		}
	})
}
