package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(l audit.Level) *audit.Policy { return &audit.Policy{Rules: []audit.Rule{{Level: l}}} }

func set(t testing.TB, l *audit.Live, b audit.Backend) {
	t.Helper()
	if err := l.Set(b); err != nil {
		t.Fatal(err)
	}
}

func begin(l *audit.Live, annotations func() map[string]string, failed func(string, error)) *audit.Recording {
	return l.Now().Begin(audit.Arrival{
		Attributes: &authz.Attributes{
			User: &authn.User{Name: "anna", Extra: map[string][]string{"a/b": {"c"}}}, Verb: "update", ResourceRequest: true,
			APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Namespace: "n", Name: "d",
		},
		AuditID: "1", RequestURI: "/x", UserAgent: strings.Repeat("a", 1100), SourceIPs: func() []string { return []string{"::1"} }, Received: time.Unix(1, 0), Hooks: audit.Hooks{Failed: failed},
		Annotations: annotations,
	})
}

// Each backend gets the events of its own policy, with as much of the request as its level demands.
func TestBackends(t *testing.T) {
	t.Parallel()
	var l audit.Live
	var metadata, request, everything, nothing audittest.Log
	set(t, &l, audit.Backend{Name: "metadata", Policy: at(audit.Metadata), Sink: &metadata})
	set(t, &l, audit.Backend{Name: "request", Policy: &audit.Policy{Rules: at(audit.Request).Rules, OmitStages: []audit.Stage{audit.RequestReceived}, OmitManagedFields: true}, Sink: &request})
	set(t, &l, audit.Backend{Name: "everything", Policy: at(audit.RequestResponse), Sink: &everything})
	set(t, &l, audit.Backend{Name: "nothing", Policy: at(audit.None), Sink: &nothing})
	var facts map[string]string
	r := begin(&l, func() map[string]string { return facts }, nil)
	l.Remove("everything") // the request goes on with it
	if err := r.Reached(t.Context(), audit.RequestReceived, time.Unix(2, 0), 0); err != nil {
		t.Fatal(err)
	}
	const object = `{"kind":"Deployment","metadata":{"name":"d","managedFields":[{}],"uid":"u"}}`
	r.Impersonated(&authn.User{Name: "bob"}, "impersonate:user-info")
	facts = map[string]string{"k": "v"}
	r.Sent(&metav1.ObjectMeta{Name: "e", Namespace: "m", UID: "u", ResourceVersion: "7"})
	r.Request([]byte(object))
	r.Response([]byte(`{"kind":"Status"}`))
	r.Answered(&metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Failure", Message: "no", Reason: "Conflict", Details: &metav1.StatusDetails{Name: "d"}, Code: 409})
	if err := r.Reached(t.Context(), audit.ResponseComplete, time.Unix(1, 5000), 409); err != nil {
		t.Fatal(err)
	}
	const (
		agent = `aaa...TRUNCATED","objectRef":{"resource":"deployments","namespace":"n","name":"d",`
		first = agent + `"apiGroup":"apps","apiVersion":"v1"},"requestReceivedTimestamp":"1970-01-01T00:00:01.000000Z","stageTimestamp":"1970-01-01T00:00:02.000000Z"}`
		last  = agent + `"uid":"u","apiGroup":"apps","apiVersion":"v1","resourceVersion":"7"},"responseStatus":{"metadata":{},"status":"Failure","message":"no","reason":"Conflict","details":{"name":"d"},"code":409},`
		end   = `"requestReceivedTimestamp":"1970-01-01T00:00:01.000000Z","stageTimestamp":"1970-01-01T00:00:01.000005Z","annotations":{"k":"v"}}`
	)
	for _, test := range []struct {
		name string
		got  *audittest.Log
		want []string
	}{
		{"metadata", &metadata, []string{first, last + end}},
		{"request", &request, []string{last + `"requestObject":{"kind":"Deployment","metadata":{"name":"d","uid":"u"}},` + end}},
		{"everything", &everything, []string{first, last + `"requestObject":` + object + `,"responseObject":{"kind":"Status"},` + end}},
		{"nothing", &nothing, nil},
	} {
		if len(test.got.Events()) != len(test.want) {
			t.Errorf("%s: %d events", test.name, len(test.got.Events()))
			continue
		}
		for i, e := range test.got.Events() {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(string(text), test.want[i]) {
				t.Errorf("%s: %s\nwant %s", test.name, text, test.want[i])
			}
			impersonated := strings.Contains(string(text), `"user":{"username":"anna","extra":{"a/b":["c"]}},"impersonatedUser":{"username":"bob"},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},`)
			if impersonated != (e.Stage == audit.ResponseComplete) {
				t.Errorf("%s: %s", test.name, text)
			}
			if agent := e.UserAgent; len(agent) != 1036 {
				t.Errorf("the user agent has %d bytes", len(agent))
			}
		}
	}
}

func TestNothingIsRecorded(t *testing.T) {
	t.Parallel()
	var l audit.Live
	set(t, &l, audit.Backend{Name: "nothing", Policy: at(audit.None), Sink: &audittest.Log{}})
	r := begin(&l, nil, nil)
	if r != nil || r.Wants(audit.Metadata) {
		t.Fatalf("%+v", r)
	}
	r.Request(nil)
	r.Sent(&metav1.ObjectMeta{})
	r.Panicked(t.Context(), time.Now(), "no")
	if err := r.Reached(t.Context(), audit.RequestReceived, time.Now(), 0); err != nil {
		t.Error(err)
	}
}

func TestStrictBackends(t *testing.T) {
	t.Parallel()
	var l audit.Live
	no := errors.New("no")
	set(t, &l, audit.Backend{Name: "lax", Policy: at(audit.Metadata), Sink: &audittest.Log{Err: no}})
	var failed []string
	r := begin(&l, nil, func(name string, err error) { failed = append(failed, fmt.Sprint(name, " ", err)) })
	if err := r.Reached(t.Context(), audit.RequestReceived, time.Now(), 0); err != nil {
		t.Error(err)
	}
	set(t, &l, audit.Backend{Name: "strict", Policy: at(audit.Metadata), Sink: &audittest.Log{Err: no}, Strict: true})
	r = begin(&l, nil, func(name string, err error) { failed = append(failed, fmt.Sprint(name, " ", err)) })
	if err := r.Reached(t.Context(), audit.RequestReceived, time.Now(), 0); !errors.Is(err, no) {
		t.Error(err)
	}
	equal(t, "failures", failed, []string{"lax no", "lax no", "strict no"})
}

func TestPanicsAreRecorded(t *testing.T) {
	t.Parallel()
	var l audit.Live
	var k audittest.Log
	set(t, &l, audit.Backend{Name: "k", Policy: at(audit.Metadata), Sink: &k})
	begin(&l, nil, nil).Panicked(t.Context(), time.Now(), "no")
	text, err := json.Marshal(k.Events()[0])
	const want = `"responseStatus":{"metadata":{},"status":"Failure","message":"APIServer panic'd: no","reason":"InternalError","code":500}`
	if err != nil || k.Events()[0].Stage != audit.Panic || !strings.Contains(string(text), want) {
		t.Errorf("%v\n%s", err, text)
	}
}

// The text of a panic may have any length, and that in an event has not.
func TestPanicsAreCut(t *testing.T) {
	t.Parallel()
	var l audit.Live
	var k audittest.Log
	set(t, &l, audit.Backend{Name: "k", Policy: at(audit.Metadata), Sink: &k})
	begin(&l, nil, nil).Panicked(t.Context(), time.Now(), strings.Repeat("x", 1<<20))
	if text := k.Events()[0].ResponseStatus.Message; len(text) > 5<<10 || !strings.HasPrefix(text, "APIServer panic'd: xxx") {
		t.Errorf("%d bytes", len(text))
	}
}

func TestBackendsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	var l audit.Live
	for _, b := range []audit.Backend{{Name: "b"}, {Name: "b", Policy: at(audit.None)}, {Name: "b", Sink: &audittest.Log{}}, {Policy: at(audit.None), Sink: &audittest.Log{}}} {
		if err := l.Set(b); !errors.Is(err, audit.ErrBackend) {
			t.Error(err)
		}
	}
	if err := l.Set(audit.Backend{Name: "b", Policy: at("none"), Sink: &audittest.Log{}}); err == nil || !strings.Contains(err.Error(), `rules[0].level: Unsupported value: "none"`) {
		t.Error(err)
	}
	if names := l.Names(); len(names) != 0 || l.Remove("b") {
		t.Error(names)
	}
}

// Requests are recorded while backends come and go.
func TestBackendsChangeUnderRequests(t *testing.T) {
	t.Parallel()
	var l audit.Live
	var k audittest.Log
	set(t, &l, audit.Backend{Name: "stays", Policy: at(audit.Metadata), Sink: &k})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				r := begin(&l, nil, nil)
				if err := r.Reached(context.Background(), audit.ResponseComplete, time.Now(), 200); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		set(t, &l, audit.Backend{Name: "goes", Policy: at(audit.Metadata), Sink: &audittest.Log{}})
		l.Remove("goes")
	}
	all.Wait()
	if len(k.Events()) != 800 {
		t.Errorf("%d events", len(k.Events()))
	}
}

// The event of a slow request says how long its parts took, unless it lasts as long as the client wishes.
func TestLatencies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		stage audit.Stage
		after time.Duration
		long  bool
		want  map[string]string
	}{
		{"slow", audit.ResponseComplete, 500 * time.Millisecond, false, map[string]string{
			"apiserver.latency.k8s.io/total": "500ms", "apiserver.latency.k8s.io/authorization": "3ms", "k": "v",
		}},
		{"not slow", audit.ResponseComplete, 499 * time.Millisecond, false, map[string]string{"k": "v"}},
		{"not at its end", audit.RequestReceived, time.Second, false, map[string]string{"k": "v"}},
		{"a panic", audit.Panic, time.Second, false, map[string]string{"k": "v"}},
		{"a watch", audit.ResponseComplete, time.Hour, true, map[string]string{"k": "v"}},
	} {
		var l audit.Live
		var log audittest.Log
		set(t, &l, audit.Backend{Name: "log", Policy: at(audit.Metadata), Sink: &log})
		received := time.Unix(1, 0)
		r := l.Now().Begin(audit.Arrival{
			Attributes: &authz.Attributes{Verb: "get"}, Received: received, LongRunning: test.long, SourceIPs: func() []string { return nil },
			Annotations: func() map[string]string { return map[string]string{"k": "v"} },
			Spent:       maps.All(map[string]time.Duration{"authorization": 3 * time.Millisecond}),
		})
		if err := r.Reached(t.Context(), test.stage, received.Add(test.after), 200); err != nil {
			t.Fatal(err)
		}
		if got := log.Events()[0].Annotations; !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A patch keeps its managedFields.
func TestPatchIsRecordedAsItIs(t *testing.T) {
	t.Parallel()
	var l audit.Live
	var log audittest.Log
	set(t, &l, audit.Backend{Name: "log", Policy: &audit.Policy{Rules: at(audit.Request).Rules, OmitManagedFields: true}, Sink: &log})
	r := begin(&l, nil, nil)
	r.Patch([]byte(`{"metadata":{"managedFields":[{}]}}`))
	if err := r.Reached(t.Context(), audit.ResponseComplete, time.Now(), 200); err != nil {
		t.Fatal(err)
	}
	if got := string(log.Events()[0].RequestObject); got != `{"metadata":{"managedFields":[{}]}}` {
		t.Error(got)
	}
}

// An event at Metadata takes few allocations, and none is made if nothing is recorded. The test is not parallel, since it counts all
// allocations of the process.
func TestEventsAllocateLittle(t *testing.T) {
	arrival := audit.Arrival{
		Attributes: &authz.Attributes{User: &authn.User{Name: "anna", Groups: []string{"system:authenticated"}}, Verb: "get", ResourceRequest: true, Resource: "pods"},
		AuditID:    "1", RequestURI: "/x", UserAgent: "b", SourceIPs: func() []string { return []string{"::1"} }, Received: time.Now(),
		Annotations: func() map[string]string {
			return map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
		},
	}
	for level, most := range map[audit.Level]float64{audit.None: 0, audit.Metadata: 10} {
		var l audit.Live
		set(t, &l, audit.Backend{Name: "drop", Policy: at(level), Sink: audit.SinkFunc(func(context.Context, ...*audit.Event) error { return nil })})
		got := testing.AllocsPerRun(100, func() {
			_ = l.Now().Begin(arrival).Reached(t.Context(), audit.ResponseComplete, arrival.Received, 200)
		})
		if got > most {
			t.Errorf("%s: %v allocations, want at most %v", level, got, most)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	object := []byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","managedFields":[{"manager":"m"}],"annotations":{"a":"` + strings.Repeat("x", 4000) + `"}}}`)
	attributes := &authz.Attributes{
		User: &authn.User{Name: "anna", Groups: []string{"system:authenticated"}}, Verb: "update", ResourceRequest: true,
		APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Namespace: "n", Name: "d",
	}
	a := audit.Arrival{Attributes: attributes, AuditID: "1", RequestURI: "/x", UserAgent: "b", SourceIPs: func() []string { return []string{"::1"} }}
	a.Annotations = func() map[string]string {
		return map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
	}
	for name, policy := range map[string]*audit.Policy{
		"Metadata": at(audit.Metadata), "Request": at(audit.Request), "RequestResponse": at(audit.RequestResponse),
		"RequestResponse without managedFields": {Rules: at(audit.RequestResponse).Rules, OmitManagedFields: true},
	} {
		b.Run(name, func(b *testing.B) {
			var l audit.Live
			set(b, &l, audit.Backend{Name: "drop", Policy: policy, Sink: audit.SinkFunc(func(context.Context, ...*audit.Event) error { return nil })})
			a.Received = time.Now()
			b.ReportAllocs()
			for b.Loop() {
				r := l.Now().Begin(a)
				if r.Wants(audit.Request) {
					r.Request(object)
				}
				if r.Wants(audit.RequestResponse) {
					r.Response(object)
				}
				_ = r.Reached(b.Context(), audit.ResponseComplete, a.Received, 200)
			}
		})
	}
}
