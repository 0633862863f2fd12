package servertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestRecordedRequests(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	admin := h.admin()
	rec := h.Record(servertest.Match{})
	h.want(201, h.do("POST", boats+"?fieldManager=mate&dryRun=All", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"}}`, "User-Agent", "mate/1.0"))
	h.want(201, h.create("sloop"))
	h.want(200, h.do("PATCH", boats+"/sloop/status", `{"status":{"afloat":true}}`, "Content-Type", "application/merge-patch+json"))
	h.want(200, h.do("PATCH", boats+"/sloop?fieldManager=cook&force=true", "apiVersion: sea.example.com/v1\nkind: Boat\nmetadata: {name: sloop}\nspec: {length: 4}\n", "Content-Type", "application/apply-patch+yaml"))
	h.want(200, h.do("GET", boats+"?labelSelector=a%3Db", ""))
	h.want(404, h.get("none"))
	h.want(200, h.do("GET", "/apis/sea.example.com/v1", "")) // no request for a resource

	type brief struct{ verb, sub, name, method, query, body string }
	want := []brief{
		{"create", "", "sloop", "POST", "dryRun=All&fieldManager=mate", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"}}`},
		{"create", "", "sloop", "POST", "", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"},"spec":{"length":3}}`},
		{"patch", "status", "sloop", "PATCH", "", `{"status":{"afloat":true}}`},
		{"patch", "", "sloop", "PATCH", "fieldManager=cook&force=true", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"},"spec":{"length":4}}`},
		{"list", "", "", "GET", "labelSelector=a%3Db", ""},
		{"get", "", "none", "GET", "", ""},
	}
	codes := []int{201, 201, 200, 200, 200, 404}
	got := rec.Requests()
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d: %+v", len(got), len(want), got)
	}
	for i, r := range got {
		if b := (brief{r.Verb, r.Subresource, r.Name, r.Method, r.Query.Encode(), string(r.Body)}); b != want[i] {
			t.Errorf("request %d is %q, want %q", i, b, want[i])
		}
		if r.Group != "sea.example.com" || r.Version != "v1" || r.Resource != "boats" || r.Namespace != "port" || !strings.HasPrefix(r.Path, boats) {
			t.Errorf("request %d: %+v", i, r)
		}
		if r.Code != codes[i] || !r.Ended || !r.Completed || r.User != admin {
			t.Errorf("request %d by %q: %d, ended %v, completed %v", i, r.User, r.Code, r.Ended, r.Completed)
		}
		if i > 0 && r.Time.Before(got[i-1].Time) {
			t.Errorf("request %d came before the one before it", i)
		}
		if r.IsApply() != (i == 3) {
			t.Errorf("request %d: apply is %v", i, r.IsApply())
		}
	}
	if got[0].UserAgent != "mate/1.0" || got[2].ContentType != "application/merge-patch+json" || !strings.HasPrefix(string(got[3].Sent), "apiVersion: ") {
		t.Errorf("got %+v", got)
	}

	// The returned requests belong to the caller.
	got[0].Body[0], got[0].Sent[0] = '!', '!'
	got[0].Query.Set("dryRun", "None")
	if again := rec.Requests()[0]; again.Body[0] != '{' || again.Sent[0] != '{' || again.Query.Get("dryRun") != "All" {
		t.Errorf("a copy was not one: %+v", again)
	}

	rec.Reset()
	h.want(404, h.get("none"))
	rec.Stop()
	rec.Stop()
	h.want(404, h.get("none"))
	if got := rec.Requests(); len(got) != 1 {
		t.Errorf("%d requests after Reset and Stop, want 1", len(got))
	}
}

func TestRecordedProtobuf(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, servertest.Types{AddToScheme: corev1.AddToScheme})
	h := harbour{srv, t}
	rec := h.Record(servertest.Match{Resources: []string{"configmaps"}})
	const path, protobuf = "/api/v1/namespaces/port/configmaps", "application/vnd.kubernetes.protobuf"
	body, err := codec.Protobuf().Encode(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "log"}, Data: map[string]string{"wind": "fair"}}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err != nil {
		t.Fatal(err)
	}
	h.want(201, h.do("POST", path, string(body), "Content-Type", protobuf))
	background := metav1.DeletePropagationBackground
	options, err := (&metav1.DeleteOptions{PropagationPolicy: &background}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Raw: options}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	h.want(200, h.do("DELETE", path+"/log", "k8s\x00"+string(envelope), "Content-Type", protobuf))
	h.want(400, h.do("POST", path, "k8s\x00nonsense", "Content-Type", protobuf))
	got := rec.Requests()
	if len(got) != 3 {
		t.Fatalf("%d requests", len(got))
	}
	var cm corev1.ConfigMap
	if err := json.Unmarshal(got[0].Body, &cm); err != nil || got[0].Name != "log" || cm.Data["wind"] != "fair" || cm.Kind != "ConfigMap" {
		t.Errorf("create %q with %s: %v", got[0].Name, got[0].Body, err)
	}
	if !strings.Contains(string(got[1].Body), `"propagationPolicy":"Background"`) {
		t.Errorf("delete with %s", got[1].Body)
	}
	if got[2].Body != nil || string(got[2].Sent) != "k8s\x00nonsense" {
		t.Errorf("a body that is none is shown as %q, sent %q", got[2].Body, got[2].Sent)
	}
}

// The body of a delete has the kind DeleteOptions in every group.
func TestRecordedOptions(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	rec := h.Record(servertest.Match{})
	zero := int64(0)
	text, err := (&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "sea.example.com/v1", Kind: "DeleteOptions"}, Raw: text}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	h.want(404, h.do("DELETE", boats+"/none", "k8s\x00"+string(envelope), "Content-Type", "application/vnd.kubernetes.protobuf"))
	if got := rec.Requests(); len(got) != 1 || string(got[0].Body) != `{"kind":"DeleteOptions","apiVersion":"sea.example.com/v1","gracePeriodSeconds":0}` {
		t.Errorf("recorded %s", got[0].Body)
	}
}

func TestRecordedUsers(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	type who struct {
		user string
		code int
	}
	cook := h.ClientOf(h.AddUser(authn.User{Name: "cook", Groups: []string{"system:masters"}}))
	guest := h.ClientOf(h.AddUser(authn.User{Name: "guest"}))
	want := []who{{"cook", 200}, {"guest", 403}, {"", 401}, {h.admin(), 200}}
	all, his := h.Record(servertest.Match{}), h.Record(servertest.Match{User: "cook"})
	for _, client := range []*http.Client{cook, guest, h.ClientOf("nobody's"), h.Client()} {
		resp, err := client.Get(h.URL + boats)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		client.CloseIdleConnections()
	}
	got := all.Requests()
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d", len(got), len(want))
	}
	for i, r := range got {
		if (who{r.User, r.Code}) != want[i] {
			t.Errorf("request %d is by %q and answered %d, want %v", i, r.User, r.Code, want[i])
		}
	}
	if got := his.Requests(); len(got) != 1 || got[0].User != "cook" {
		t.Errorf("the cook's requests are %+v", got)
	}
}

func TestRecordedEnds(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{Limits: server.Limits{MaxBodyBytes: 1000}})
	h.want(201, h.create("sloop"))
	rec := h.Record(servertest.Match{})
	last := func() servertest.Request {
		t.Helper()
		got := rec.Requests()
		if len(got) != 1 {
			t.Fatalf("%d requests, want 1", len(got))
		}
		rec.Reset()
		return got[0]
	}

	remove := h.Inject(servertest.Fault{Match: on("get"), Drop: true})
	h.wantDropped(h.get("sloop"))
	remove()
	if r := last(); r.Code != 0 || !r.Ended || r.Completed {
		t.Errorf("a dropped request is %+v", r)
	}

	remove = h.Inject(servertest.Fault{Match: on("create"), Error: errors.New("oops"), Lost: true})
	h.want(500, h.create("lost"))
	remove()
	if r := last(); r.Code != 500 || !r.Completed || !strings.Contains(string(r.Body), `"lost"`) {
		t.Errorf("a lost answer is %+v", r)
	}

	// If a handler does not read the body, it is not recorded. A body that is too long is not kept as a whole.
	h.want(413, h.do("POST", boats, `{"metadata":{"name":"`+strings.Repeat("x", 2000)+`"}}`))
	if r := last(); r.Code != 413 || len(r.Sent) > 1000 || r.Body != nil {
		t.Errorf("of a body that is too large %d bytes are kept", len(r.Sent))
	}

	r, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+boats, io.MultiReader(strings.NewReader(strings.Repeat("x", 2000)))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := last(); r.Code != 413 || len(r.Sent) != 1000 || r.Body != nil {
		t.Errorf("answered %d; of a body that is too large %d bytes are kept", r.Code, len(r.Sent))
	}

	// A watch is recorded when it begins, and marked when it ends.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", h.URL+boats+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := h.Client()
	defer client.CloseIdleConnections()
	if resp, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := rec.Requests(); len(got) != 1 || got[0].Verb != "watch" || got[0].Code != 200 || got[0].Ended || got[0].Completed {
		t.Errorf("a watch under way is %+v", got)
	}
	if err := h.Close(); err != nil { // ends it cleanly
		t.Fatal(err)
	}
	if r := last(); r.Code != 200 || !r.Ended || !r.Completed {
		t.Errorf("a watch that has ended is %+v", r)
	}
}

func TestRecordOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	srv, err := servertest.Run(server.Options{}, boatGroup())
	if err != nil {
		t.Fatal(err)
	}
	h := harbour{srv, t}
	rec := srv.Record(servertest.Match{Verbs: []string{"look"}})
	rec.Stop()
	if s := h.want(500, h.get("sloop")).status(t); !strings.Contains(s.Message, `Record at record_test.go:`) || !strings.Contains(s.Message, `no verb "look"`) {
		t.Errorf("answered %q", s.Message)
	}
	if len(rec.Requests()) != 0 {
		t.Error("something is recorded")
	}
	if err := srv.Close(); err == nil || !strings.Contains(err.Error(), `no verb "look"`) {
		t.Errorf("Close said %v", err)
	}
}
