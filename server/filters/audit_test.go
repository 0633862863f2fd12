package filters_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stages returns "stage code status-message" of each event.
func stages(l *audittest.Log) []string {
	var out []string
	for _, e := range l.Events() {
		text := string(e.Stage)
		if s := e.ResponseStatus; s != nil {
			text += fmt.Sprintf(" %d %s", s.Code, s.Message)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return out
}

// audited is a chain with audit around a handler.
func audited(t *testing.T, level audit.Level, log *audittest.Log, strict bool, h http.HandlerFunc) (http.Handler, *[]string) {
	t.Helper()
	var live audit.Live
	if err := live.Set(audit.Backend{Name: "log", Policy: &audit.Policy{Rules: []audit.Rule{{Level: level}}}, Sink: log, Strict: strict}); err != nil {
		t.Fatal(err)
	}
	told := new([]string)
	a := filters.Auditor{
		Backends: func(context.Context) audit.Backends { return live.Now() },
		Hooks:    audit.Hooks{Failed: func(name string, err error) { *told = append(*told, fmt.Sprint(name, ": ", err)) }},
		Refused:  func(*http.Request) { *told = append(*told, "refused") },
	}
	known := authn.Func(func(r *http.Request) (*authn.Response, error) {
		if r.Header.Get("Authorization") != "" {
			return nil, errors.New("wrong")
		}
		return &authn.Response{User: authn.User{Name: "anna", Groups: []string{"g"}}, AuditAnnotations: map[string]string{"example.com/how": "trust"}}, nil
	})
	may := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		switch a.Verb {
		case "delete":
			return authz.NoOpinion, "not that", nil
		case "deletecollection":
			return authz.NoOpinion, "", errors.New("broken")
		}
		return authz.Allow, "all may", nil
	})
	return filters.Chain(h,
		filters.Recover(nil), filters.AuditID(), filters.ReceivedAt(time.Now), filters.RequestInfo(request.Resolver{}),
		filters.Deadline(time.Minute, a.Answered), filters.Timeout(),
		filters.Authenticate(known, filters.AuthenticateOptions{Answered: a.Answered}),
		filters.Audit(a), filters.Authorize(may),
	), told
}

func serveOne(h http.Handler, method, path string, header ...string) (w *httptest.ResponseRecorder, aborted bool) {
	defer func() { aborted = recover() != nil }()
	w = httptest.NewRecorder()
	r := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w, false
}

func TestAuditStages(t *testing.T) {
	t.Parallel()
	const widgets = "/apis/example.com/v1/namespaces/n/widgets"
	for _, test := range []struct {
		name, method, path string
		header             []string
		handler            http.HandlerFunc
		want               []string
	}{
		{"answered", "GET", widgets, nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, []string{"RequestReceived", "ResponseComplete 200"}},
		{"silent", "GET", widgets, nil, func(http.ResponseWriter, *http.Request) {}, []string{"RequestReceived", "ResponseComplete 200 Connection closed early"}},
		{"failed", "GET", widgets + "/a", nil, func(w http.ResponseWriter, r *http.Request) {
			response.Error(w, r, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "a"))
		}, []string{"RequestReceived", `ResponseComplete 404 widgets.example.com "a" not found`}},
		{"watch", "GET", widgets + "?watch=1", nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			fmt.Fprint(w, "{}")
		}, []string{"RequestReceived", "ResponseStarted 200", "ResponseComplete 200"}},
		{"silent watch", "GET", widgets + "?watch=1", nil, func(http.ResponseWriter, *http.Request) {}, []string{"RequestReceived", "ResponseStarted 200 Connection closed early", "ResponseComplete 200 Connection closed early"}},
		{"failed watch", "GET", widgets + "?watch=1", nil, func(w http.ResponseWriter, r *http.Request) {
			response.Error(w, r, apierrors.NewBadRequest("no"))
		}, []string{"RequestReceived", "ResponseStarted 400 no", "ResponseComplete 400 no"}},
		{"panic", "GET", widgets, nil, func(http.ResponseWriter, *http.Request) { panic("sea") }, []string{"RequestReceived", "Panic 500 APIServer panic'd: sea"}},
		{"panic of a watch", "GET", widgets + "?watch=1", nil, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "{}")
			panic("sea")
		}, []string{"RequestReceived", "ResponseStarted 200", "Panic 500 APIServer panic'd: sea"}},
		{"broken off", "GET", widgets + "?watch=1", nil, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "{}")
			panic(http.ErrAbortHandler)
		}, []string{"RequestReceived", "ResponseStarted 200", "ResponseComplete 200"}},
		{"forbidden", "DELETE", widgets + "/a", nil, nil, []string{"RequestReceived", `ResponseComplete 403 widgets.example.com "a" is forbidden: User "anna" cannot delete resource "widgets" in API group "example.com" in the namespace "n": not that`}},
		{"not decided", "DELETE", widgets, nil, nil, []string{"RequestReceived", "ResponseComplete 500"}},
		{"unknown user", "GET", widgets, []string{"Authorization", "x"}, nil, []string{"ResponseStarted 401 Unauthorized"}},
		{"no duration", "GET", widgets + "?timeout=x", nil, nil, []string{`ResponseStarted 400 invalid timeout specified in the request URL - time: invalid duration "x"`}},
	} {
		log := &audittest.Log{}
		h, told := audited(t, audit.Metadata, log, false, test.handler)
		serveOne(h, test.method, test.path, test.header...)
		if got := stages(log); !slices.Equal(got, test.want) || len(*told) > 0 {
			t.Errorf("%s: got %q\nwant %q %v", test.name, got, test.want, *told)
		}
	}
}

func TestAuditEvents(t *testing.T) {
	t.Parallel()
	log := &audittest.Log{}
	h, _ := audited(t, audit.RequestResponse, log, false, func(w http.ResponseWriter, r *http.Request) {
		request.Annotate(r.Context(), "example.com/what", "work")
		response.Error(w, r, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("no")))
	})
	serveOne(h, "PUT", "/api/v1/namespaces/n/pods/a/status?dryRun=All", "Audit-Id", "7", "User-Agent", "me", "X-Forwarded-For", "10.0.0.1, 192.0.2.1")
	serveOne(h, "DELETE", "/healthz/x", "Audit-Id", "8")
	for i, want := range []string{
		`{"level":"RequestResponse","auditID":"7","stage":"RequestReceived","requestURI":"/api/v1/namespaces/n/pods/a/status?dryRun=All","verb":"update","user":{"username":"anna","groups":["g"]},"sourceIPs":["10.0.0.1","192.0.2.1"],"userAgent":"me","objectRef":{"resource":"pods","namespace":"n","name":"a","apiVersion":"v1","subresource":"status"},"annotations":{"example.com/how":"trust"}}`,
		`{"level":"RequestResponse","auditID":"7","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/pods/a/status?dryRun=All","verb":"update","user":{"username":"anna","groups":["g"]},"sourceIPs":["10.0.0.1","192.0.2.1"],"userAgent":"me","objectRef":{"resource":"pods","namespace":"n","name":"a","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on pods \"a\": no","reason":"Conflict","details":{"name":"a","kind":"pods"},"code":409},"responseObject":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on pods \"a\": no","reason":"Conflict","details":{"name":"a","kind":"pods"},"code":409},"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"all may","example.com/how":"trust","example.com/what":"work"}}`,
		`{"level":"RequestResponse","auditID":"8","stage":"RequestReceived","requestURI":"/healthz/x","verb":"delete","user":{"username":"anna","groups":["g"]},"sourceIPs":["192.0.2.1"],"annotations":{"example.com/how":"trust"}}`,
	} {
		var e map[string]any
		text, err := json.Marshal(log.Events()[i])
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"requestReceivedTimestamp", "stageTimestamp"} {
			text = []byte(strings.Replace(string(text), fmt.Sprintf(`"%s":%q,`, name, e[name]), "", 1))
		}
		if string(text) != want {
			t.Errorf("event %d:\n%s\nwant\n%s", i, text, want)
		}
	}
}

func TestAuditThatFails(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		log := &audittest.Log{Err: errors.New("disk full")}
		served := 0
		h, told := audited(t, audit.Metadata, log, strict, func(w http.ResponseWriter, _ *http.Request) { served++ })
		w, _ := serveOne(h, "GET", "/api/v1/namespaces/x%20y/pods?a=<b>")
		if strict {
			const want = "Internal Server Error: \"/api/v1/namespaces/x%20y/pods?a=&lt;b&gt;\": failed to store audit event\n"
			if served > 0 || w.Code != 500 || w.Body.String() != want || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Audit-Id") == "" {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
			if got := []string{"log: disk full", "refused"}; !slices.Equal(*told, got) {
				t.Errorf("%q", *told)
			}
			continue
		}
		if served != 1 || w.Code != 200 || len(*told) != 2 {
			t.Errorf("served %d times: %d %q", served, w.Code, *told)
		}
	}
}

// A request that is not recorded passes without a frame, a wrapper and annotations.
func TestRequestsThatAreNotAudited(t *testing.T) {
	t.Parallel()
	log := &audittest.Log{}
	h, _ := audited(t, audit.None, log, true, func(_ http.ResponseWriter, r *http.Request) {
		if request.RecordingFrom(r.Context()) != nil {
			t.Error("there is a recording")
		}
	})
	serveOne(h, "GET", "/api/v1/pods")
	if len(log.Events()) > 0 {
		t.Errorf("%d events", len(log.Events()))
	}
}

// Without a backend Audit costs no allocation. The test is not parallel, since it counts all allocations of the process.
func TestAuditWithoutBackendsAllocatesNothing(t *testing.T) {
	var live audit.Live
	without := []filters.Filter{filters.Recover(nil), filters.RequestInfo(request.Resolver{})}
	with := append(slices.Clone(without), filters.Audit(filters.Auditor{Backends: func(context.Context) audit.Backends { return live.Now() }}))
	var allocs [2]float64
	for i, list := range [][]filters.Filter{without, with} {
		h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), list...)
		r, w := httptest.NewRequest("GET", "/api/v1/namespaces/n/pods/p", http.NoBody), httptest.NewRecorder()
		allocs[i] = testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
	}
	if allocs[1] > allocs[0] {
		t.Errorf("%v allocations, %v without audit", allocs[1], allocs[0])
	}
}

// The addresses are those that kube-apiserver 1.37.1 recorded, unless there are more than 32.
func TestAuditSourceIPs(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	for _, test := range []struct {
		header []string
		want   string
	}{
		{nil, "192.0.2.1"},
		{[]string{"X-Forwarded-For", "1.1.1.1, 2.2.2.2,bad , ::1", "X-Real-Ip", "3.3.3.3"}, "1.1.1.1 2.2.2.2 ::1 3.3.3.3 192.0.2.1"},
		{[]string{"X-Real-Ip", "4.4.4.4"}, "4.4.4.4 192.0.2.1"},
		{[]string{"X-Real-Ip", "192.0.2.1"}, "192.0.2.1"},
		{[]string{"X-Forwarded-For", "1.1.1.1,192.0.2.1"}, "1.1.1.1 192.0.2.1"},
		{[]string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "2.2.2.2", "X-Real-Ip", "1.1.1.1"}, "1.1.1.1 2.2.2.2 192.0.2.1"},
		{[]string{"X-Forwarded-For", strings.Join(many, ",")}, strings.Join(many[69:], " ") + " 192.0.2.1"},
	} {
		log := &audittest.Log{}
		h, _ := audited(t, audit.Metadata, log, false, func(http.ResponseWriter, *http.Request) {})
		serveOne(h, "GET", "/api/v1/pods", test.header...)
		if got := strings.Join(log.Events()[0].SourceIPs, " "); got != test.want {
			t.Errorf("%q: got %s\nwant %s", test.header, got, test.want)
		}
	}
}
