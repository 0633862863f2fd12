package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/servertest"
)

// take returns "stage user verb uri decision reason" of the events since the last call.
func take(l *audittest.Log) []string {
	var lines []string
	for _, e := range l.Take() {
		line := strings.Join([]string{string(e.Stage), e.User.Username, e.Verb, e.RequestURI}, " ")
		if e.ResponseStatus != nil {
			line += " " + e.Annotations["authorization.k8s.io/decision"] + " " + string(e.ResponseStatus.Reason)
		}
		lines = append(lines, line)
	}
	return lines
}

func metadataOf(verbs ...string) *audit.Policy {
	return &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata, Verbs: verbs}}}
}

// Backends of the options and of extensions record requests, also those that are refused. They come and go while the server serves.
func TestAuditOfAServer(t *testing.T) {
	t.Parallel()
	var first, second audittest.Log
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Policy.Audit = []audit.Backend{{Name: "first", Policy: metadataOf("create", "get", "watch", "list"), Sink: &first}}
	srv := servertest.Start(t, o)
	c, h := srv.Client(), host(t, srv)
	take(&first)
	call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	call(t, c, "DELETE", srv.URL+widgetsPath+"/b", "")
	call(t, srv.Anonymous(), "GET", srv.URL+widgetsPath+"/a", "")
	call(t, srv.Anonymous(), "GET", srv.URL+widgetsPath+"/a", "", "Authorization", "Bearer wrong")
	call(t, c, "GET", srv.URL+widgetsPath+"?timeout=x", "")
	call(t, c, "GET", srv.URL+widgetsPath+"?watch=1&labelSelector=!", "")
	got := take(&first)
	if len(got) == 0 {
		t.Fatal("nothing is recorded")
	}
	admin := strings.Fields(got[0])[1]
	want := []string{
		"RequestReceived " + admin + " create " + widgetsPath,
		"ResponseComplete " + admin + " create " + widgetsPath + " allow ",
		"RequestReceived system:anonymous get " + widgetsPath + "/a",
		"ResponseComplete system:anonymous get " + widgetsPath + "/a forbid Forbidden",
		"ResponseStarted  get " + widgetsPath + "/a  Unauthorized",
		"ResponseStarted  list " + widgetsPath + "?timeout=x  BadRequest",
		"RequestReceived " + admin + " watch " + widgetsPath + "?watch=1&labelSelector=!",
		"ResponseStarted " + admin + " watch " + widgetsPath + "?watch=1&labelSelector=! allow BadRequest",
		"ResponseComplete " + admin + " watch " + widgetsPath + "?watch=1&labelSelector=! allow BadRequest",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := h.Audit(audit.Backend{Name: "second", Policy: metadataOf("delete"), Sink: &second}, audit.Backend{Name: "first", Policy: metadataOf("delete"), Sink: &first}); err != nil {
		t.Fatal(err)
	}
	call(t, c, "GET", srv.URL+widgetsPath+"/a", "")
	call(t, c, "DELETE", srv.URL+widgetsPath+"/b", "")
	if a, b := take(&first), take(&second); len(a) != 2 || !slices.Equal(a, b) {
		t.Errorf("%q, %q", a, b)
	}
	if err := h.RemoveAudit("second"); err != nil {
		t.Fatal(err)
	}
	call(t, c, "DELETE", srv.URL+widgetsPath+"/b", "")
	if a, b := take(&first), take(&second); len(a) != 2 || len(b) != 0 {
		t.Errorf("%q, %q", a, b)
	}
}

// A server refuses a policy that asks for more than it records.
func TestAuditLevels(t *testing.T) {
	t.Parallel()
	b := audit.Backend{Name: "b", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.None}, {Level: audit.RequestResponse}}}, Sink: &audittest.Log{}}
	const want = `audit backend "b": rules[1].level: RequestResponse: the objects of requests are not recorded yet: use Metadata or None`
	srv := servertest.New(t, widgets())
	if err := host(t, srv).Audit(b); err == nil || err.Error() != "server: Host.Audit: "+want {
		t.Error(err)
	}
	o := server.Options{}
	o.Policy.Audit = []audit.Backend{b}
	if _, err := server.New(o); err == nil || err.Error() != "server: Policy.Audit[0]: "+want {
		t.Error(err)
	}
	if err := host(t, srv).Audit(audit.Backend{Name: "b"}); !errors.Is(err, audit.ErrBackend) {
		t.Error(err)
	}
}
