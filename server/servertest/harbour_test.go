package servertest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type Boat = keelson.Resource[struct {
	Length int32 `json:"length"`
}, struct {
	Afloat bool `json:"afloat"`
}]

// harbour is a server of boats with an HTTP client.
type harbour struct {
	*servertest.Server
	t testing.TB
}

const boats = "/apis/sea.example.com/v1/namespaces/port/boats"

func newHarbour(t testing.TB, o server.Options) harbour {
	t.Helper()
	return harbour{servertest.Start(t, o, boatGroup()), t}
}

func boatGroup() server.Group {
	return server.Group{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Boat", server.KindOptions[*Boat]{}),
	}}}}
}

// reply is the result for a client. err is the error of the connection.
type reply struct {
	code   int
	header http.Header
	body   string
	err    error
}

func (h harbour) do(method, path, body string, header ...string) reply {
	h.t.Helper()
	return h.doIn(h.t.Context(), method, path, body, header...)
}

func (h harbour) doIn(ctx context.Context, method, path, body string, header ...string) reply {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := h.Client()
	defer client.CloseIdleConnections()
	resp, err := client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

func (a reply) status(t testing.TB) metav1.Status {
	t.Helper()
	var s metav1.Status
	if a.err != nil || json.Unmarshal([]byte(a.body), &s) != nil || s.Kind != "Status" {
		t.Fatalf("want a Status, got %+v", a)
	}
	return s
}

func (h harbour) want(code int, a reply) reply {
	h.t.Helper()
	if a.err != nil || a.code != code {
		h.t.Fatalf("answered %d %s, error %v; want %d", a.code, a.body, a.err, code)
	}
	return a
}

// wantDropped checks that the client got no complete answer.
func (h harbour) wantDropped(a reply) {
	h.t.Helper()
	if a.err == nil {
		h.t.Fatalf("answered %d %s; want a dropped connection", a.code, a.body)
	}
}

func (h harbour) create(name string) reply {
	h.t.Helper()
	return h.do("POST", boats, `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"`+name+`"},"spec":{"length":3}}`)
}

func (h harbour) get(name string) reply {
	h.t.Helper()
	return h.do("GET", boats+"/"+name, "")
}

func (h harbour) merge(name, patch string) reply {
	h.t.Helper()
	return h.do("PATCH", boats+"/"+name, patch, "Content-Type", "application/merge-patch+json")
}

func versionOf(t testing.TB, a reply) string {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(a.body), &obj); err != nil || obj.ResourceVersion == "" {
		t.Fatalf("no resourceVersion in %s: %v", a.body, err)
	}
	return obj.ResourceVersion
}

// eventsOf reads the events of a watch.
func eventsOf(t testing.TB, a reply) (types []string, last metav1.Status) {
	t.Helper()
	for line := range strings.Lines(a.body) {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		types = append(types, e.Type)
		last = metav1.Status{}
		_ = json.Unmarshal(e.Object, &last)
	}
	return types, last
}

func on(verb ...string) servertest.Match {
	return servertest.Match{Verbs: verb, Resources: []string{"boats"}}
}

func boatResource() schema.GroupResource {
	return schema.GroupResource{Group: "sea.example.com", Resource: "boats"}
}

// admin returns the name of the user of Client.
func (h harbour) admin() string {
	h.t.Helper()
	rec := h.Record(servertest.Match{})
	defer rec.Stop()
	h.do("GET", boats, "")
	return rec.Requests()[0].User
}
