package accounts

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
)

// only is an extension that has the tracking, with a time after which the ConfigMap is made again.
type only struct{ remake time.Duration }

func (o only) Install(h *server.Host) error {
	t, err := newTracking(h, zap.NewNop())
	if err != nil {
		return err
	}
	if o.remake > 0 {
		t.remake = o.remake
	}
	h.Go(t.run)
	return nil
}

// trackedBy starts a server with the tracking, and returns a function that sends a request for the ConfigMap. The function returns the
// data of the answer, or nil unless its code is 200.
func trackedBy(t *testing.T, remake time.Duration) func(method, patch string) map[string]string {
	t.Helper()
	srv := servertest.New(t, builtin.New(builtin.Options{}), only{remake})
	return func(method, patch string) map[string]string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/api/v1/namespaces/kube-system/configmaps/"+trackingName, strings.NewReader(patch))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/merge-patch+json")
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var m corev1.ConfigMap
		if resp.StatusCode != http.StatusOK {
			return nil
		}
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m.Data
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// The ConfigMap is made with the date, and gets it again if it has none. Another date and other data stay, as in kube-apiserver 1.37.1.
func TestTracking(t *testing.T) {
	t.Parallel()
	send := trackedBy(t, 0)
	isToday := func() bool { return send("GET", "")[sinceKey] == today() }
	eventually(t, "it is not made", isToday)
	for _, date := range []string{"2020-01-02", "2030-01-02"} {
		send("PATCH", `{"data":{"since":"`+date+`","x":"y"}}`)
		time.Sleep(100 * time.Millisecond)
		if got := send("GET", ""); got[sinceKey] != date || got["x"] != "y" {
			t.Errorf("another date: %v", got)
		}
	}
	for _, wrong := range []string{`"bad"`, `"2020-13-02"`, `"2020-01-02T00:00:00Z"`, `""`, `null`} {
		send("PATCH", `{"data":{"since":`+wrong+`}}`)
		eventually(t, wrong+" stays", isToday)
		if got := send("GET", ""); got["x"] != "y" {
			t.Errorf("after %s: %v", wrong, got)
		}
	}
	send("PATCH", `{"data":null}`)
	eventually(t, "no data stays", isToday)
	send("DELETE", "")
	time.Sleep(300 * time.Millisecond)
	if got := send("GET", ""); got != nil {
		t.Errorf("a short time after it was made and deleted: %v", got)
	}
}

// An immutable ConfigMap without a date stays, and nothing is tried for ever.
func TestImmutableTracking(t *testing.T) {
	t.Parallel()
	send := trackedBy(t, 0)
	eventually(t, "it is not made", func() bool { return send("GET", "") != nil })
	send("PATCH", `{"immutable":true,"data":{"since":"bad"}}`)
	time.Sleep(200 * time.Millisecond)
	if got := send("GET", ""); got[sinceKey] != "bad" {
		t.Errorf("immutable: %v", got)
	}
}

// A deleted ConfigMap is made again after a time.
func TestTrackingAfterDeletion(t *testing.T) {
	t.Parallel()
	send := trackedBy(t, time.Millisecond)
	for range 3 {
		eventually(t, "it is not made", func() bool { return send("GET", "") != nil })
		send("DELETE", "")
	}
	eventually(t, "it is not made again", func() bool { return send("GET", "")[sinceKey] == today() })
}
