package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/config"
	"github.com/keelson-dev/keelson/authz/webhook"
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

// kubeconfig writes a kubeconfig of a server, and returns its path.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("clusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newFile returns a File with authorizers of the types ABAC, Node and RBAC, which have no opinion.
func newFile(t *testing.T) *config.File {
	t.Helper()
	none := authz.Union()
	f, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.ABAC: none, config.Node: none, config.RBAC: none}, Webhook: webhook.Options{Backoff: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// TestConfigurations compares the errors of configurations with those of kube-apiserver, which was started with each file.
func TestConfigurations(t *testing.T) {
	differs := map[string]string{
		"two documents": "a file with two documents can be read in two ways",
	}
	var all []struct{ Name, File, Error string }
	readJSON(t, "testdata/configurations.json", &all)
	if len(all) < 250 {
		t.Errorf("there are only %d configurations", len(all))
	}
	path := kubeconfig(t, "http://127.0.0.1:1")
	for _, c := range all {
		got := ""
		if err := newFile(t).Use([]byte(strings.ReplaceAll(c.File, "/KUBECONFIG", path))); err != nil {
			got = strings.ReplaceAll(err.Error(), path, "/KUBECONFIG")
		}
		if same, why := strings.TrimSpace(got) == strings.TrimSpace(c.Error), differs[c.Name]; same != (why == "") {
			t.Errorf("%s: %s\n got %s\nwant %s", c.Name, why, got, c.Error)
		}
	}
}

// TestReloads compares which changed files are used with those that a kube-apiserver used one after another.
func TestReloads(t *testing.T) {
	const words = "package client words it"
	differs := map[string]string{"bad kubeconfig": words}
	var all []struct {
		Name, File, Error string
		Used              bool
	}
	readJSON(t, "testdata/reloads.json", &all)
	path := kubeconfig(t, "http://127.0.0.1:1")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("x: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFile(t)
	for _, c := range all {
		before := f.Pin(t.Context())
		err := f.Use([]byte(strings.NewReplacer("/KUBECONFIG", path, "/BROKEN", broken).Replace(c.File)))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if (err == nil) != c.Used || (text == c.Error) != (differs[c.Name] == "") {
			t.Errorf("%s: %s, want %s", c.Name, text, c.Error)
		}
		if same := f.Pin(t.Context()) == before; same == c.Used {
			t.Errorf("%s: the authorizers are the same: %t", c.Name, same)
		}
	}
}

// answering starts webhooks that answer as the user's extra attribute say-<name of the webhook> asks them to.
func answering(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct{ Extra map[string][]string }
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		name := strings.Trim(r.URL.Path, "/")
		switch strings.Join(review.Spec.Extra["say-"+name], "") {
		case "allow":
			fmt.Fprintf(w, `{"status":{"allowed":true,"reason":"%s says yes"}}`, name)
		case "deny":
			fmt.Fprintf(w, `{"status":{"denied":true,"reason":"%s says no"}}`, name)
		case "both":
			fmt.Fprintf(w, `{"status":{"allowed":true,"denied":true,"reason":"%s says both"}}`, name)
		case "none":
			fmt.Fprintf(w, `{"status":{"reason":"%s knows nothing"}}`, name)
		case "fail":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
		default:
			_, _ = io.WriteString(w, `{"status":{}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestDecisions compares decisions of a webhook, RBAC and another webhook, which has a condition, with those of a kube-apiserver that was
// asked by SubjectAccessReviews.
func TestDecisions(t *testing.T) {
	const general = "the authorization webhook has given no usable answer; the log of the server says why" // users are told no more
	var all []struct {
		Policies []string // of the webhooks
		Spec     struct {
			User               string
			Groups             []string
			Extra              map[string][]string
			ResourceAttributes struct{ Verb, Resource, Namespace string }
		}
		Status struct {
			Allowed, Denied         bool
			Reason, EvaluationError string
		}
	}
	readJSON(t, "testdata/decisions.json", &all)
	url := answering(t)
	paths := map[string]string{"wa": kubeconfig(t, url+"/wa"), "wb": kubeconfig(t, url+"/wb")}
	roles := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.Name == "system:kube-scheduler" {
			return authz.Allow, `RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" to User "system:kube-scheduler"`, nil
		}
		return authz.NoOpinion, "", nil
	})
	files := map[string]authz.Authorizer{}
	for _, c := range all {
		key := strings.Join(c.Policies, " ")
		if files[key] == nil {
			f, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.RBAC: roles}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			if err := f.Use(fmt.Appendf(nil, `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[%s,{"type":"RBAC","name":"rbac"},%s]}`,
				webhookOf("wa", paths["wa"], c.Policies[0], ""), webhookOf("wb", paths["wb"], c.Policies[1], "request.user != 'skip' && request.groups[0] != 'x'"))); err != nil {
				t.Fatal(err)
			}
			files[key] = authz.Union(authz.Masters(), f)
		}
		a := authz.Attributes{
			User: &authn.User{Name: c.Spec.User, Groups: c.Spec.Groups, Extra: c.Spec.Extra}, ResourceRequest: true, APIVersion: "*",
			Verb: c.Spec.ResourceAttributes.Verb, Resource: c.Spec.ResourceAttributes.Resource, Namespace: c.Spec.ResourceAttributes.Namespace,
		}
		verdict, reason, err := files[key].Authorize(t.Context(), a)
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
		wantText := strings.ReplaceAll(c.Status.EvaluationError, "the server rejected our request for an unknown reason", general)
		if verdict != want || reason != c.Status.Reason || text != wantText {
			t.Errorf("%+v: %v %q %q, want %v %q %q", c.Spec, verdict, reason, text, want, c.Status.Reason, wantText)
		}
	}
	if len(all) < 150 {
		t.Errorf("there are only %d decisions", len(all))
	}
}

// webhookOf returns an entry of a configuration.
func webhookOf(name, path, policy, condition string) string {
	conditions := ""
	if condition != "" {
		text, _ := json.Marshal(condition)
		conditions = fmt.Sprintf(`,"matchConditionSubjectAccessReviewVersion":"v1","matchConditions":[{"expression":%s}]`, text)
	}
	return fmt.Sprintf(`{"type":"Webhook","name":%q,"webhook":{"timeout":"3s","subjectAccessReviewVersion":"v1","failurePolicy":%q,"connectionInfo":{"type":"KubeConfigFile","kubeConfigFile":%q}%s}}`,
		name, policy, path, conditions)
}

// file returns a configuration with webhooks, which each have a kubeconfig.
func file(entries ...string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[%s]}`, strings.Join(entries, ","))
}

// While the file changes again and again, every request is decided by the file before or that after, and once a change has been used only by
// the latter. A request that has begun ends with the authorizers that it has.
func TestFileChangesUnderLoad(t *testing.T) {
	url := answering(t)
	path := kubeconfig(t, url+"/wa")
	f := newFile(t)
	use := func(n int) {
		entries := []string{webhookOf(fmt.Sprint("first", n), path, "NoOpinion", ""), webhookOf(fmt.Sprint("second", n), path, "NoOpinion", "")}
		if err := f.Use(file(entries...)); err != nil {
			t.Fatal(err)
		}
	}
	use(0)
	user := &authn.User{Name: "u", Extra: map[string][]string{"say-wa": {"none"}}}
	ask := func(a authz.Authorizer, name string) string {
		_, reason, err := a.Authorize(t.Context(), authz.Attributes{User: user, Verb: "get", Path: "/" + name})
		if err != nil {
			return err.Error()
		}
		return reason
	}
	reasonOf := func(n int) string {
		return fmt.Sprintf("first%d: wa knows nothing\nsecond%d: wa knows nothing", n, n)
	}
	var group sync.WaitGroup
	var stop atomic.Bool
	var asked atomic.Int32
	for range 4 {
		group.Go(func() {
			for !stop.Load() {
				got := ask(f.Pin(t.Context()), fmt.Sprint(asked.Add(1)%50))
				n := strings.TrimPrefix(strings.SplitN(got, ":", 2)[0], "first")
				if got != strings.ReplaceAll(reasonOf(0), "0", n) {
					t.Errorf("the answer is %q", got)
					return
				}
			}
		})
	}
	begun := f.Pin(t.Context())
	for n := 1; n <= 20; n++ {
		use(n)
		if got := ask(f, "x"); got != reasonOf(n) {
			t.Errorf("after change %d: %q", n, got)
		}
		if err := f.Use(file(`{"type":"Foo","name":"x"}`)); err == nil {
			t.Error("a wrong file is used")
		}
	}
	if got := ask(begun, "y"); got != reasonOf(0) {
		t.Errorf("a request that began before the changes: %q", got)
	}
	stop.Store(true)
	group.Wait()
}

// A request that keeps the webhooks of a file that was replaced is denied when they are closed: the next authorizer must not allow what
// they would have denied.
func TestReplacedWebhooksDeny(t *testing.T) {
	url := answering(t)
	f, err := config.NewFile(config.Options{Grace: 20 * time.Millisecond, Webhook: webhook.Options{Backoff: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	use := func(name string) {
		if err := f.Use(file(webhookOf(name, kubeconfig(t, url+"/wa"), "NoOpinion", ""), `{"type":"AlwaysAllow","name":"alwaysallow"}`)); err != nil {
			t.Fatal(err)
		}
	}
	use("before")
	begun := f.Pin(t.Context())
	use("after")
	denied := authz.Attributes{User: &authn.User{Name: "u", Extra: map[string][]string{"say-wa": {"deny"}}}, Verb: "get"}
	deadline := time.Now().Add(10 * time.Second)
	for n := 0; ; n++ {
		denied.Path = fmt.Sprint("/", n) // no answer is remembered
		v, _, err := begun.Authorize(t.Context(), denied)
		if v != authz.Deny {
			t.Fatalf("%v, %v", v, err)
		}
		if err != nil { // it is closed
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the webhook is not closed")
		}
	}
	if _, err := config.NewFile(config.Options{Grace: -1}); err == nil || !strings.Contains(err.Error(), "Grace") {
		t.Error(err)
	}
}

func TestBeforeAndAfter(t *testing.T) {
	f := newFile(t)
	a := authz.Attributes{User: &authn.User{}, Verb: "get", Path: "/"}
	if v, _, err := f.Authorize(t.Context(), a); v != authz.Deny || err == nil {
		t.Error(v, err)
	}
	if err := f.Ready(t.Context()); err == nil {
		t.Error("a file that is not used is ready")
	}
	if err := f.Use(file(`{"type":"AlwaysAllow","name":"alwaysallow"}`)); err != nil {
		t.Fatal(err)
	}
	if v, _, err := f.Authorize(t.Context(), a); v != authz.Allow || err != nil {
		t.Error(v, err)
	}
	if n := testing.AllocsPerRun(100, func() { f.Pin(t.Context()) }); n > 0 {
		t.Errorf("Pin allocates %v times", n)
	}
	if rules, err := f.RulesFor(t.Context(), a.User, ""); len(rules.Resources) != 1 || err != nil {
		t.Error(rules, err)
	}
	if err := f.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	f.Close()
	if err := f.Use(file(`{"type":"AlwaysDeny","name":"alwaysdeny"}`)); err == nil {
		t.Error("a closed file is changed")
	}
}

// A File that is not pinned explains, and names subjects, as its authorizers do.
func TestExplains(t *testing.T) {
	f, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.RBAC: authz.Masters()}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ask := authz.Attributes{User: &authn.User{Groups: []string{authn.MastersGroup}}, Verb: "get", Path: "/"}
	if got := authz.SubjectsOf(t.Context(), f, ask, 10); len(got.Grants) != 0 || !got.Incomplete {
		t.Errorf("before Use: %+v", got)
	}
	if err := f.Use(file(`{"type":"RBAC","name":"rbac"}`)); err != nil {
		t.Fatal(err)
	}
	if got := authz.Explain(t.Context(), f, ask); got.Verdict != authz.Allow || got.Authorizer != "rbac" {
		t.Errorf("%+v", got)
	}
	if got := authz.SubjectsOf(t.Context(), f, ask, 10); len(got.Grants) != 1 || got.Incomplete {
		t.Errorf("%+v", got)
	}
}

func TestTypesOfTheProgram(t *testing.T) {
	for want, o := range map[string]config.Options{
		`Options.Authorizers has "Webhook"`: {Authorizers: map[string]authz.Authorizer{config.WebhookType: authz.AlwaysAllow()}},
		`Options.Authorizers has "RBAC"`:    {Authorizers: map[string]authz.Authorizer{config.RBAC: nil}},
	} {
		if _, err := config.NewFile(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f, err := config.NewFile(config.Options{Authorizers: map[string]authz.Authorizer{config.RBAC: authz.AlwaysAllow()}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const want = "authorizer type Node is not available in this server; available are AlwaysAllow, AlwaysDeny, RBAC, Webhook"
	if err := f.Use(file(`{"type":"Node","name":"node"}`, `{"type":"RBAC","name":"rbac"}`)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestOptionsOfWebhooks checks what a file says of a webhook.
func TestOptionsOfWebhooks(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if calls.Add(1); r.RequestURI != "/?timeout=2s" || !strings.Contains(string(body), `"apiVersion":"authorization.k8s.io/v1beta1"`) {
			t.Errorf("%s %s", r.RequestURI, body)
		}
		_, _ = io.WriteString(w, `{"status":{"allowed":true}}`)
	}))
	t.Cleanup(s.Close)
	path := kubeconfig(t, s.URL)
	var decided []string
	f, err := config.NewFile(config.Options{Decided: func(typ, name string, v authz.Verdict) { decided = append(decided, fmt.Sprint(typ, name, v)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for more, want := range map[string]int32{``: 1, `"cacheAuthorizedRequests":false,`: 2, `"cacheUnauthorizedRequests":false,`: 1, `"authorizedTTL":"1ns",`: 2, `"authorizedTTL":"0s",`: 1} {
		calls.Store(0)
		if err := f.Use(fmt.Appendf(nil, `{"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"AuthorizationConfiguration","authorizers":[{"type":"AlwaysDeny","name":"alwaysdeny"},{"type":"Webhook","name":"h","webhook":
			{%s"timeout":"2s","subjectAccessReviewVersion":"v1beta1","failurePolicy":"Deny","connectionInfo":{"type":"KubeConfigFile","kubeConfigFile":%q}}}]}`, more, path)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if v, _, err := f.Authorize(t.Context(), authz.Attributes{User: &authn.User{}, Verb: "get", Path: "/"}); v != authz.Allow || err != nil {
				t.Error(v, err)
			}
		}
		if got := calls.Load(); got != want {
			t.Errorf("%s: %d calls, want %d", more, got, want)
		}
	}
	if len(decided) != 10 || decided[0] != fmt.Sprint("Webhookh", authz.Allow) {
		t.Errorf("decided: %q", decided)
	}
}

func TestBounds(t *testing.T) {
	one := file(`{"type":"AlwaysAllow","name":"alwaysallow"}`)
	if err := newFile(t).Use(append(one, bytes.Repeat([]byte(" "), config.MaxFile-len(one))...)); err != nil {
		t.Error(err)
	}
	if err := newFile(t).Use(append(one, bytes.Repeat([]byte(" "), config.MaxFile-len(one)+1)...)); err == nil || !strings.Contains(err.Error(), "at most 3145728 are allowed") {
		t.Error(err)
	}
	path := kubeconfig(t, "http://127.0.0.1:1")
	var many []string
	for i := range config.MaxAuthorizers {
		many = append(many, webhookOf(fmt.Sprint("w", i), path, "Deny", ""))
	}
	if err := newFile(t).Use(file(many...)); err != nil {
		t.Error(err)
	}
	if err := newFile(t).Use(file(append(many, many[0])...)); err == nil || !strings.Contains(err.Error(), "authorizers: Too many: 129: must have at most 128 items") {
		t.Error(err)
	}
}

// FuzzUse checks that no file does harm.
func FuzzUse(f *testing.F) {
	text, err := os.ReadFile("testdata/configurations.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []struct{ File string }
	if err := json.Unmarshal(text, &all); err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(all); i += 6 {
		f.Add([]byte(all[i].File))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := config.NewFile(config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Use(content); err != nil {
			return
		}
		if _, _, err := c.Authorize(canceled(), authz.Attributes{User: &authn.User{}, Verb: "get", Path: "/"}); err != nil {
			return
		}
	})
}

// canceled returns a context with which no webhook is called.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
