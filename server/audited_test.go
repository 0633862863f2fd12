package server_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
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

// A server refuses a backend that cannot be used.
func TestAuditRefuses(t *testing.T) {
	t.Parallel()
	b := audit.Backend{Name: "b", Policy: &audit.Policy{Rules: []audit.Rule{{Level: "All"}}}, Sink: &audittest.Log{}}
	srv := servertest.New(t, widgets())
	if err := host(t, srv).Audit(b); err == nil || !strings.HasPrefix(err.Error(), "server: Host.Audit: rules[0].level: ") {
		t.Error(err)
	}
	o := server.Options{}
	o.Policy.Audit = []audit.Backend{b}
	if _, err := server.New(o); err == nil || !strings.HasPrefix(err.Error(), "server: Policy.Audit[0]: rules[0].level: ") {
		t.Error(err)
	}
	if err := host(t, srv).Audit(audit.Backend{Name: "b"}); !errors.Is(err, audit.ErrBackend) {
		t.Error(err)
	}
}

// The object of an event is that of the answer in JSON, whatever the form of the answer, its length and its compression.
func TestAuditedAnswers(t *testing.T) {
	t.Parallel()
	var log audittest.Log
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Policy.Audit = []audit.Backend{{Name: "log", Policy: &audit.Policy{Rules: []audit.Rule{
		{Level: audit.None, Users: []string{"unseen"}}, {Level: audit.RequestResponse, Verbs: []string{"get", "list"}},
	}}, Sink: &log}}
	srv := servertest.Start(t, o)
	c := srv.Client()
	unseen := srv.ClientOf(srv.AddUser(authn.User{Name: "unseen", Groups: []string{"system:masters"}}))
	recorded := func(accept, query string) string {
		t.Helper()
		log.Take()
		call(t, c, "GET", srv.URL+widgetsPath+query, "", "Accept", accept, "Accept-Encoding", "gzip")
		for _, e := range log.Take() {
			if e.Stage == audit.ResponseComplete && strings.HasPrefix(e.RequestURI, widgetsPath) {
				if e.Annotations[audit.TruncatedAnnotation] != "" {
					return "truncated"
				}
				return string(e.ResponseObject)
			}
		}
		t.Fatal("there is no event")
		return ""
	}
	for n, size := range []int{10, 10_000, 200_000} { // in one write, in several, and compressed
		object := `{"metadata":{"name":"w` + strconv.Itoa(n) + `","annotations":{"a":"` + strings.Repeat("x", size) + `"}}}`
		if code, body := call(t, c, "POST", srv.URL+widgetsPath, object); code != 201 {
			t.Fatal(code, body)
		}
		for _, query := range []string{"", "/w" + strconv.Itoa(n)} {
			for _, as := range []string{"", ";as=Table;g=meta.k8s.io;v=v1"} {
				_, body := call(t, unseen, "GET", srv.URL+widgetsPath+query, "", "Accept", "application/json"+as)
				if _, seen := call(t, c, "GET", srv.URL+widgetsPath+query, "", "Accept", "application/json"+as); as == "" && seen != body {
					t.Errorf("%s: the answer is another if it is recorded: %.300s", query, seen)
				}
				want := strings.TrimSuffix(body, "\n")
				if as != "" {
					want = want[:100] // the rest has ages
				}
				for _, format := range []string{"application/json", "application/yaml", "application/json;pretty=1"} {
					if got := recorded(format+as, query); !strings.HasPrefix(got, want) || as == "" && got != want {
						t.Errorf("%s%s %s: got %.300s\nwant %.300s", format, as, query, got, want)
					}
				}
			}
		}
	}
	for i := range 70 {
		object := `{"metadata":{"name":"large` + strconv.Itoa(i) + `","annotations":{"a":"` + strings.Repeat("x", 250_000) + `"}}}`
		if code, body := call(t, c, "POST", srv.URL+widgetsPath, object); code != 201 {
			t.Fatal(code, body)
		}
	}
	for _, format := range []string{"application/json", "application/yaml"} {
		if got := recorded(format, ""); got != "truncated" {
			t.Errorf("%s: %.100s", format, got)
		}
	}
}

// The objects of an event are those of the request and of the answer, in the version of the request, whichever is stored, whatever
// the form of the answer, and if it is compressed. The golden file untyped/head has events of HEAD.
func TestAuditedVersions(t *testing.T) {
	t.Parallel()
	var log audittest.Log
	o := server.Options{Groups: []server.Group{sails()}, CBOR: true}
	o.Policy.Audit = []audit.Backend{{Name: "log", Policy: &audit.Policy{
		Rules: []audit.Rule{{Level: audit.RequestResponse, Resources: []audit.GroupResources{{Group: "sea.example.com"}}}}, OmitStages: []audit.Stage{audit.RequestReceived},
	}, Sink: &log}}
	srv := servertest.Start(t, o)
	long := strings.Repeat("x", 200_000) // is compressed
	sent := func(version, name, spec string) string {
		return `{"kind":"Sail","apiVersion":"sea.example.com/` + version + `","metadata":{"name":"` + name + `","annotations":{"a":"` + long + `"}},"spec":` + spec + `}`
	}
	for _, v := range []struct{ version, spec, recorded, changed string }{
		{"v1", `{"area":3}`, `{"area":3}`, `{"area":4}`},
		{"v1beta1", `{"area":"3m2"}`, `{"area":"3m2","hue":"white"}`, `{"area":"4m2"}`}, // with its default, as in kube-apiserver
	} {
		path, one := sailsPath(v.version), sailsPath(v.version)+"/of-"+v.version
		for _, test := range []struct{ method, path, contentType, body, wantRequest string }{
			{"POST", path, "application/json", sent(v.version, "of-"+v.version, v.spec), `"spec":` + v.recorded},
			{"GET", one, "", "", ""},
			{"GET", path, "", "", ""},
			{"PUT", one, "application/json", sent(v.version, "of-"+v.version, v.changed), v.changed[:len(v.changed)-1]},
			{"PATCH", one, mergePatchType, `{"metadata":{"labels":{"of":"` + v.version + `"}}}`, `{"metadata":{"labels":{"of":"` + v.version + `"}}}`},
			{"PATCH", one + "?fieldManager=me&force=true", "application/apply-patch+yaml", sent(v.version, "of-"+v.version, v.spec), sent(v.version, "of-"+v.version, v.spec)},
			{"DELETE", one + "?dryRun=All", "", "", ""},
		} {
			header := []string{"Accept", "application/json", "Accept-Encoding", "identity"}
			if test.contentType != "" {
				header = append(header, "Content-Type", test.contentType)
			}
			log.Take()
			code, body := call(t, srv.Client(), test.method, srv.URL+test.path, test.body, header...)
			what := test.method + " " + test.path
			e := last(t, what, &log)
			if code/100 != 2 || string(e.ResponseObject) != strings.TrimSuffix(body, "\n") || !strings.Contains(body, `"apiVersion":"sea.example.com/`+v.version+`"`) && test.method != "DELETE" {
				t.Errorf("%s: the answer %d\n%.400s\nis recorded as\n%.400s", what, code, body, e.ResponseObject)
			}
			if got := string(e.RequestObject); !strings.Contains(got, test.wantRequest) || (test.wantRequest == "") != (got == "") {
				t.Errorf("%s: the request is recorded as %.200s...%s", what, got, got[max(0, len(got)-200):])
			}
			if test.method != "GET" {
				continue
			}
			for _, accept := range []string{"application/json", "application/yaml", "application/cbor"} {
				a := roundTrip(t, srv.Client(), "GET", srv.URL+test.path, "", "Accept", accept, "Accept-Encoding", "gzip")
				if a.code != 200 || a.header.Get("Content-Encoding") != "gzip" {
					t.Errorf("%s in %s: %d %v", what, accept, a.code, a.header)
				}
				if got := last(t, what, &log); string(got.ResponseObject) != strings.TrimSuffix(body, "\n") {
					t.Errorf("%s in %s: recorded as\n%.400s\nwant\n%.400s", what, accept, got.ResponseObject, body)
				}
			}
		}
	}
}

// last returns the only event since the last call.
func last(t *testing.T, what string, log *audittest.Log) *audit.Event {
	t.Helper()
	events := log.Take()
	if len(events) != 1 {
		t.Fatalf("%s: %d events", what, len(events))
	}
	return events[0]
}

// Writes that take longer than they may, or long, or whose plug-in panics, are recorded as by kube-apiserver 1.37.1: the first with the
// answer of the handler, not that of the filter which answers in its place, the last with the stage Panic.
func TestAuditOfUnusualWrites(t *testing.T) {
	t.Parallel()
	var log audittest.Log
	o := server.Options{Groups: []server.Group{widgets()}}
	o.Policy.Audit = []audit.Backend{{Name: "log", Policy: &audit.Policy{
		Rules: []audit.Rule{{Level: audit.RequestResponse, Verbs: []string{"create"}}}, OmitStages: []audit.Stage{audit.RequestReceived},
	}, Sink: &log}}
	o.Policy.Admission = admission.Chain{{Validator: admission.ValidatorFunc(func(ctx context.Context, r *admission.Request) error {
		switch r.Name {
		case "bad":
			panic("sea")
		case "slow":
			time.Sleep(500 * time.Millisecond)
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})}}
	srv := servertest.Start(t, o)
	for _, test := range []struct {
		name, timeout, stage, message string
		code                          int
		annotated                     string
	}{
		{"late", "600ms", "ResponseComplete", "Timeout: request did not complete within requested timeout - context deadline exceeded", 504,
			"authentication authorization response-write serialize-response-object total"},
		{"slow", "30s", "ResponseComplete", "", 201, "authentication authorization etcd response-write serialize-response-object total"},
		{"bad", "30s", "Panic", "APIServer panic'd: sea", 500, ""},
	} {
		log.Take()
		code, _ := call(t, srv.Client(), "POST", srv.URL+widgetsPath+"?timeout="+test.timeout, `{"metadata":{"name":"`+test.name+`"},"spec":{"size":1}}`)
		var events []*audit.Event
		for len(events) == 0 { // the filter answers before the handler
			events = log.Take()
			time.Sleep(time.Millisecond)
		}
		e := events[0]
		const object = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"`
		if s := e.ResponseStatus; code != test.code || len(events) != 1 || string(e.Stage) != test.stage || s.Message != test.message || int(s.Code) != test.code ||
			(s.Status == "Failure") != (code >= 400) || !strings.HasPrefix(string(e.RequestObject), object+test.name) {
			t.Errorf("%d, %d events: %s %+v %s", code, len(events), e.Stage, s, e.RequestObject)
		}
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(e.Annotations)) {
			if name, is := strings.CutPrefix(key, "apiserver.latency.k8s.io/"); is {
				keys = append(keys, name)
			}
		}
		if got := strings.Join(keys, " "); got != test.annotated {
			t.Errorf("%s: the times are those of %q, want %q", test.name, got, test.annotated)
		}
	}
}

// TestLostBatchesAreCounted checks that the events of a delivery that fails later are counted and logged, as others are.
func TestLostBatchesAreCounted(t *testing.T) {
	t.Parallel()
	batch := func() audit.Sink {
		b, err := audit.NewBatch(&audittest.Log{Err: errors.New("gone")}, audit.BatchOptions{MaxWait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		cut, err := audit.Truncate(b, audit.TruncateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cut
	}
	core, logs := observer.New(zap.ErrorLevel)
	srv := servertest.Start(t, server.Options{
		Policy:  server.Policy{Audit: []audit.Backend{{Name: "first", Policy: metadataOf("get"), Sink: batch()}}},
		Observe: server.Observe{Logger: zap.New(core)},
	})
	if err := host(t, srv).Audit(audit.Backend{Name: "second", Policy: metadataOf("get"), Sink: batch()}); err != nil {
		t.Fatal(err)
	}
	want := []string{`apiserver_audit_error_total{plugin="first"}`, `apiserver_audit_error_total{plugin="second"}`}
	for {
		_, text := call(t, srv.Client(), "GET", srv.URL+"/metrics", "")
		if strings.Contains(text, want[0]) && strings.Contains(text, want[1]) && logs.FilterMessage("an audit event was not recorded").Len() > 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestRecordedPatchesAreUTF8 checks that a patch that is not UTF-8 is recorded in a form that every reader of JSON accepts.
func TestRecordedPatchesAreUTF8(t *testing.T) {
	t.Parallel()
	log := &audittest.Log{}
	srv := servertest.Start(t, server.Options{
		Groups: []server.Group{widgets()},
		Policy: server.Policy{Audit: []audit.Backend{{Name: "log", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.Request, Verbs: []string{"patch"}}}}, Sink: log}}},
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, srv.URL+widgetsPath+"/a", strings.NewReader("{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"zz\":\"\xff\"}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for len(log.Events()) < 2 {
		time.Sleep(time.Millisecond)
	}
	if got := string(log.Events()[1].RequestObject); !utf8.ValidString(got) || !strings.Contains(got, "\"zz\":\"\uFFFD\"") {
		t.Errorf("%q", got)
	}
}
