package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// server is a webhook.
type server struct {
	*httptest.Server
	calls atomic.Int32
	mu    sync.Mutex // guards the fields below
	last  string     // body of the last request
	uri   string
}

// serve starts a webhook.
func serve(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.last, s.uri = string(body), r.RequestURI
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) lastBody() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// says answers with a status.
func says(status string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":`+status+`}`) }
}

// hook returns an authorizer that asks a webhook.
func hook(t *testing.T, url string, o webhook.Options) *webhook.Authorizer {
	t.Helper()
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	a, err := webhook.New(client.Config{Server: url}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// recordedSpec is the spec of a SubjectAccessReview that a kube-apiserver got.
type recordedSpec struct {
	User, UID             string
	Groups                []string
	Extra                 map[string][]string
	NonResourceAttributes *struct{ Path, Verb string }
	ResourceAttributes    struct {
		Namespace, Verb, Group, Version, Resource, Subresource, Name string
		FieldSelector, LabelSelector                                 struct {
			RawSelector  string
			Requirements []struct {
				Key, Operator string
				Values        []string
			}
		}
	}
}

// attributes returns the attributes that the kube-apiserver has made of a spec. A selector that does not parse is left out.
func (s recordedSpec) attributes() authz.Attributes {
	user := &authn.User{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: s.Extra}
	if n := s.NonResourceAttributes; n != nil {
		return authz.Attributes{User: user, Verb: n.Verb, Path: n.Path}
	}
	r := s.ResourceAttributes
	a := authz.Attributes{
		User: user, Verb: r.Verb, ResourceRequest: true, APIGroup: r.Group, APIVersion: r.Version,
		Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
	}
	if a.APIVersion == "" {
		a.APIVersion = "*"
	}
	if raw := r.FieldSelector.RawSelector; raw != "" {
		if parsed, err := fields.ParseSelector(raw); err == nil {
			a.FieldSelector = parsed.Requirements()
		}
	}
	for _, q := range r.FieldSelector.Requirements {
		operator, known := map[string]selection.Operator{"In": selection.In, "NotIn": selection.NotIn}[q.Operator]
		if !known || len(q.Values) != 1 {
			a.FieldSelector = nil
			break
		}
		a.FieldSelector = append(a.FieldSelector, fields.Requirement{Field: q.Key, Operator: operator, Value: q.Values[0]})
	}
	if raw := r.LabelSelector.RawSelector; raw != "" {
		if parsed, err := labels.Parse(raw); err == nil {
			a.LabelSelector, _ = parsed.Requirements()
		}
	}
	operators := map[string]selection.Operator{"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist}
	for _, q := range r.LabelSelector.Requirements {
		if parsed, err := labels.NewRequirement(q.Key, operators[q.Operator], q.Values); err == nil {
			a.LabelSelector = append(a.LabelSelector, *parsed)
		}
	}
	return a
}

// TestReviews compares what the webhook is sent with what a kube-apiserver has sent to it, byte by byte.
func TestReviews(t *testing.T) {
	var all []struct {
		Version, Name, Body string
		Spec                recordedSpec
	}
	readJSON(t, "testdata/reviews.json", &all)
	for _, c := range all {
		s := serve(t, says(`{}`))
		if _, _, err := hook(t, s.URL+"/authorize", webhook.Options{Version: c.Version}).Authorize(t.Context(), c.Spec.attributes()); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if got := s.lastBody(); got != c.Body {
			t.Errorf("%s %s:\n got %s\nwant %s", c.Version, c.Name, got, c.Body)
		}
		if s.uri != "/authorize?timeout=30s" {
			t.Errorf("the URI is %s", s.uri)
		}
	}
}

// TestAnswers compares the verdicts on answers with those of a kube-apiserver.
func TestAnswers(t *testing.T) {
	const general = "the authorization webhook has given no usable answer; the log of the server says why" // users are told no more
	var all []struct {
		Version, Name, Body string
		Code                int
		Status              struct {
			Allowed, Denied         bool
			Reason, EvaluationError string
		}
		Attempts   int32
		Remembered bool
	}
	readJSON(t, "testdata/answers.json", &all)
	for _, c := range all {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.Code)
			_, _ = io.WriteString(w, c.Body)
		})
		logged := ""
		a := hook(t, s.URL, webhook.Options{Version: c.Version, Hooks: webhook.Hooks{Failed: func(_ string, err error) { logged = err.Error() }}})
		ask := recordedSpec{User: "u"}.attributes()
		verdict, reason, err := a.Authorize(t.Context(), ask)
		text := ""
		if err != nil {
			text = err.Error()
		}
		want := authz.NoOpinion
		switch {
		case c.Status.Allowed:
			want = authz.Allow
		case c.Status.Denied:
			want = authz.Deny
		}
		wantText := c.Status.EvaluationError
		if wantText != "" && want == authz.NoOpinion {
			wantText = general
		}
		wantReason := strings.TrimPrefix(c.Status.Reason, "default: ") // the name of the authorizer in the union
		if verdict != want || reason != wantReason || text != wantText || s.calls.Load() != c.Attempts {
			t.Errorf("%s %s: %v %q %q, %d attempts, want %v %q %q, %d", c.Version, c.Name, verdict, reason, text, s.calls.Load(), want, wantReason, wantText, c.Attempts)
		}
		if c.Code != http.StatusOK && !strings.Contains(logged, c.Status.EvaluationError) {
			t.Errorf("%s %s: the log has %q, want %q", c.Version, c.Name, logged, c.Status.EvaluationError)
		}
		_, _, _ = a.Authorize(t.Context(), ask)
		if remembered := s.calls.Load() == c.Attempts; remembered != c.Remembered {
			t.Errorf("%s %s: remembered is %t", c.Version, c.Name, remembered)
		}
		strict := hook(t, s.URL, webhook.Options{Version: c.Version, Deny: true})
		if verdict, _, err := strict.Authorize(t.Context(), ask); (err != nil) != (text != "") || err != nil && verdict != authz.Deny {
			t.Errorf("%s %s with Deny: %v %v", c.Version, c.Name, verdict, err)
		}
	}
}

// named returns a request of a user for an object.
func named(user, name string) authz.Attributes {
	return authz.Attributes{User: &authn.User{Name: user}, Verb: "get", ResourceRequest: true, APIVersion: "v1", Resource: "pods", Name: name}
}

func TestRemembers(t *testing.T) {
	for _, c := range []struct {
		name   string
		status string
		o      webhook.Options
		calls  int32 // for two requests
	}{
		{"allowed", `{"allowed":true}`, webhook.Options{}, 1},
		{"not allowed", `{}`, webhook.Options{}, 1},
		{"allowed is not remembered", `{"allowed":true}`, webhook.Options{Authorized: -1}, 2},
		{"allowed is remembered", `{"allowed":true}`, webhook.Options{Unauthorized: -1}, 1},
		{"denied is not remembered", `{"denied":true}`, webhook.Options{Unauthorized: -1}, 2},
		{"both is no permission", `{"allowed":true,"denied":true}`, webhook.Options{Unauthorized: -1}, 2},
		{"a short time", `{"allowed":true}`, webhook.Options{Authorized: time.Nanosecond}, 2},
		{"no room", `{"allowed":true}`, webhook.Options{Bytes: 4}, 2},
	} {
		s := serve(t, says(c.status))
		a := hook(t, s.URL, c.o)
		for range 2 {
			_, _, _ = a.Authorize(t.Context(), named("u", "x"))
		}
		if got := s.calls.Load(); got != c.calls {
			t.Errorf("%s: %d calls, want %d", c.name, got, c.calls)
		}
	}
}

// TestOthersAreNotTaken checks that an answer is for an equal request only.
func TestOthersAreNotTaken(t *testing.T) {
	s := serve(t, says(`{"allowed":true}`))
	a := hook(t, s.URL, webhook.Options{})
	base := named("u", "x")
	requests := []authz.Attributes{base}
	with := func(change func(a *authz.Attributes)) {
		one := base
		change(&one)
		requests = append(requests, one)
	}
	with(func(a *authz.Attributes) { a.User = &authn.User{Name: "v"} })
	with(func(a *authz.Attributes) { a.User = &authn.User{Name: "u", UID: "1"} })
	with(func(a *authz.Attributes) { a.User = &authn.User{Name: "u", Groups: []string{"g"}} })
	with(func(a *authz.Attributes) { a.User = &authn.User{Name: "u", Extra: map[string][]string{"k": {"v"}}} })
	with(func(a *authz.Attributes) { a.Verb = "delete" })
	with(func(a *authz.Attributes) { a.APIGroup = "g" })
	with(func(a *authz.Attributes) { a.APIVersion = "v2" })
	with(func(a *authz.Attributes) { a.Resource = "nodes" })
	with(func(a *authz.Attributes) { a.Subresource = "log" })
	with(func(a *authz.Attributes) { a.Namespace = "ns" })
	with(func(a *authz.Attributes) { a.Name = "y" })
	with(func(a *authz.Attributes) { a.FieldSelector, _ = requirementsOf("a=b") })
	with(func(a *authz.Attributes) { _, a.LabelSelector = requirementsOf("a=b") })
	with(func(a *authz.Attributes) { a.ResourceRequest, a.Path = false, "/x" })
	for range 2 {
		for _, one := range requests {
			if v, _, err := a.Authorize(t.Context(), one); v != authz.Allow || err != nil {
				t.Error(v, err)
			}
		}
	}
	if got := int(s.calls.Load()); got != len(requests) {
		t.Errorf("%d calls for %d requests", got, len(requests))
	}
}

func requirementsOf(text string) (fields.Requirements, labels.Requirements) {
	byLabels, _ := labels.ParseToRequirements(text)
	return fields.ParseSelectorOrDie(text).Requirements(), byLabels
}

// An answer for large attributes is not remembered: the bound is that of kube-apiserver.
func TestLargeRequestsAreNotRemembered(t *testing.T) {
	s := serve(t, says(`{"allowed":true}`))
	a := hook(t, s.URL, webhook.Options{})
	short := webhook.MaxRemembered - len("get"+"v1"+"pods") - 1
	for want, name := range map[int32]string{1: strings.Repeat("x", short), 2: strings.Repeat("x", short+1)} {
		s.calls.Store(0)
		for range 2 {
			if v, _, err := a.Authorize(t.Context(), named("u", name)); v != authz.Allow || err != nil {
				t.Error(v, err)
			}
		}
		if got := s.calls.Load(); got != want {
			t.Errorf("%d calls for a name of %d bytes, want %d", got, len(name), want)
		}
	}
}

// TestCacheIsBounded checks that the answers which were not used for the longest time are dropped.
func TestCacheIsBounded(t *testing.T) {
	long := strings.Repeat("r", 5000)
	s := serve(t, says(`{"allowed":true,"reason":"`+long+`"}`))
	for _, o := range []webhook.Options{{Entries: 2}, {Bytes: 3 * 1400}, {Bytes: 4 * 1290}} {
		a := hook(t, s.URL, o)
		s.calls.Store(0)
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "a"} {
			if _, reason, err := a.Authorize(t.Context(), named("u", name)); err != nil || len(reason) != 1024 || !strings.HasSuffix(reason, "...") {
				t.Errorf("%.40q, %v", reason, err)
			}
		}
		if got := s.calls.Load(); got != 7 {
			t.Errorf("%+v: %d calls, want 7", o, got)
		}
	}
}

func TestConcurrentRequestsShareACall(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		says(`{"allowed":true}`)(w, r)
	})
	a := hook(t, s.URL, webhook.Options{Authorized: -1})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if v, _, err := a.Authorize(t.Context(), named("u", "x")); v != authz.Allow || err != nil {
				t.Error(v, err)
			}
		})
	}
	for s.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	close(release)
	group.Wait()
	if got := s.calls.Load(); got > 5 { // those that came later
		t.Errorf("%d calls", got)
	}
}

// TestMatch checks that a webhook which is not asked has no opinion, and that a failure of Match is one of the webhook.
func TestMatch(t *testing.T) {
	s := serve(t, says(`{"allowed":true}`))
	failed := errors.New("cannot tell")
	for _, c := range []struct {
		asked bool
		err   error
		deny  bool
		want  authz.Verdict
	}{
		{true, nil, false, authz.Allow}, {false, nil, true, authz.NoOpinion}, {false, failed, false, authz.NoOpinion}, {true, failed, true, authz.Deny},
	} {
		var seen []string
		a := hook(t, s.URL, webhook.Options{
			Name: "n", Deny: c.deny, Authorized: -1, Match: func(_ context.Context, spec *webhook.Spec) (bool, error) { return c.asked, c.err },
			Hooks: webhook.Hooks{
				Matched: func(name string, asked bool, err error, _ time.Duration) {
					seen = append(seen, fmt.Sprint(name, asked, err))
				},
				Attempted:  func(name, result string, _ time.Duration) { seen = append(seen, name+" "+result) },
				Failed:     func(name string, err error) { seen = append(seen, name+" failed: "+err.Error()) },
				FailedOpen: func(name, result string) { seen = append(seen, name+" open "+result) },
			},
		})
		verdict, _, err := a.Authorize(t.Context(), named("u", "x"))
		if verdict != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: %v, %v", c, verdict, err)
		}
		want := []string{fmt.Sprint("n", c.asked, c.err)}
		if c.want == authz.Allow {
			want = append(want, "n success")
		}
		if c.err != nil {
			want = append(want, "n failed: cannot tell")
		}
		if strings.Join(seen, ";") != strings.Join(want, ";") {
			t.Errorf("%+v: the hooks were called with %q, want %q", c, seen, want)
		}
	}
}

func TestRules(t *testing.T) {
	rules, err := authz.RulesOf(t.Context(), hook(t, "http://127.0.0.1:1", webhook.Options{}), &authn.User{}, "ns")
	if !rules.Incomplete || err == nil || err.Error() != "webhook authorizer does not support user rule resolution" {
		t.Errorf("%+v, %v", rules, err)
	}
}

func TestWrongOptions(t *testing.T) {
	good := client.Config{Server: "http://127.0.0.1:1"}
	for _, c := range []struct {
		cfg  client.Config
		o    webhook.Options
		want string
	}{
		{good, webhook.Options{Version: "v2"}, `authorization webhook: Options.Version is "v2": want v1 or v1beta1`},
		{good, webhook.Options{Entries: -1}, "must not be negative"},
		{good, webhook.Options{Timeout: -1}, "must not be negative"},
		{client.Config{}, webhook.Options{}, "authorization webhook: client: Server"},
	} {
		if _, err := webhook.New(c.cfg, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// A closed webhook denies: a request that still asks it must not be allowed by the next authorizer.
func TestClose(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "hang") {
			close(began)
			<-release
		}
		says(`{"allowed":true}`)(w, r)
	})
	defer close(release)
	known := hook(t, s.URL, webhook.Options{})
	if v, _, err := known.Authorize(t.Context(), named("u", "known")); v != authz.Allow || err != nil {
		t.Fatal(v, err)
	}
	known.Close()
	if v, _, err := known.Authorize(t.Context(), named("u", "known")); v != authz.Deny || err == nil {
		t.Errorf("with a remembered answer: %v, %v", v, err)
	}
	var opened []string
	a := hook(t, s.URL+"/hang", webhook.Options{Hooks: webhook.Hooks{FailedOpen: func(_, result string) { opened = append(opened, result) }}})
	type result struct {
		verdict authz.Verdict
		err     error
	}
	done := make(chan result, 1)
	go func() {
		v, _, err := a.Authorize(t.Context(), named("u", "x"))
		done <- result{v, err}
	}()
	<-began
	if err := a.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	a.Close()
	if got := <-done; got.verdict != authz.Deny || got.err == nil {
		t.Errorf("a call in progress: %v, %v", got.verdict, got.err)
	}
	if err := a.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
	if v, _, err := a.Authorize(t.Context(), named("u", "y")); v != authz.Deny || err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Error(v, err)
	}
	if len(opened) > 0 {
		t.Errorf("FailedOpen was called: %q", opened)
	}
}
