package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// accessHook is an authorization webhook. It denies, with "said no", what users whose names begin with deny want, allows what those whose
// names begin with allow want, and has no opinion of others.
type accessHook struct {
	*httptest.Server
	mu   sync.Mutex        // guards last
	last map[string]string // the last review about each user
}

func newAccessHook(t *testing.T) *accessHook {
	s := &accessHook{last: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Spec struct{ User string } }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		user := review.Spec.User
		s.mu.Lock()
		s.last[user] = string(body)
		s.mu.Unlock()
		switch {
		case strings.HasPrefix(user, "deny"):
			_, _ = io.WriteString(w, `{"status":{"denied":true,"reason":"said no"}}`)
		case strings.HasPrefix(user, "allow"):
			_, _ = io.WriteString(w, `{"status":{"allowed":true}}`)
		default:
			_, _ = io.WriteString(w, `{"status":{"reason":"who is it"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *accessHook) kubeconfig() string {
	return fmt.Sprintf("clusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", s.URL)
}

// TestAccessWebhookGetsWhatKubeAPIServerSends sends requests that a kube-apiserver got too, and compares what the webhook and the client got.
func TestAccessWebhookGetsWhatKubeAPIServerSends(t *testing.T) {
	t.Parallel()
	var all []struct{ Version, Method, Path, Answer, Body string }
	if err := json.Unmarshal(read(t, "../../authz/webhook/testdata/requests.json"), &all); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			hook, dir := newAccessHook(t), t.TempDir()
			write(t, filepath.Join(dir, "hook.yaml"), hook.kubeconfig())
			write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,system:masters\n")
			p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-mode=Webhook", "--authorization-webhook-config-file=hook.yaml",
				"--authorization-webhook-version="+version)
			defer p.stop()
			admin := p.client("t-admin", nil, nil)
			n := 0
			for _, c := range all {
				if c.Version != version {
					continue
				}
				user := fmt.Sprint("deny-", n)
				n++
				req, err := http.NewRequestWithContext(t.Context(), c.Method, admin.url+c.Path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{
					"Authorization": {"Bearer t-admin"}, "Content-Type": {"application/json"}, "Impersonate-User": {user}, "Impersonate-Uid": {"7"},
					"Impersonate-Group": {"gb", "ga"}, "Impersonate-Extra-Scopes": {"b", "a"},
				}
				resp, err := admin.http.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusForbidden || string(text) != c.Answer {
					t.Errorf("%s %s:\n got %d %s\nwant %s", c.Method, c.Path, resp.StatusCode, text, c.Answer)
				}
				hook.mu.Lock()
				got := hook.last[user]
				hook.mu.Unlock()
				if got != c.Body {
					t.Errorf("%s %s: the webhook\n got %s\nwant %s", c.Method, c.Path, got, c.Body)
				}
			}
			if n < 10 {
				t.Errorf("there are only %d requests", n)
			}
		})
	}
}

// The modes are asked in their order, and a reason without a verdict begins with the name of the authorizer.
func TestModesOfWebhookAndABAC(t *testing.T) {
	t.Parallel()
	hook, dir := newAccessHook(t), t.TempDir()
	write(t, filepath.Join(dir, "hook.yaml"), hook.kubeconfig())
	write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,system:masters\nt-deny,deny,1\nt-allow,allow,2\nt-ann,ann,3\nt-bob,bob,4\n")
	write(t, filepath.Join(dir, "policy.jsonl"), `{"user":"ann"}`+"\n"+`{"user":"deny"}`)
	p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-mode=Webhook,ABAC,RBAC", "--authorization-webhook-config-file=hook.yaml", "--authorization-policy-file=policy.jsonl")
	const path = "/api/v1/namespaces/default/configmaps"
	for token, want := range map[string]struct {
		code int
		part string
	}{
		"t-admin": {200, ""}, "t-allow": {200, ""}, "t-ann": {200, ""},
		"t-deny": {403, `in the namespace \"default\": said no"`},
		"t-bob":  {403, `in the namespace \"default\": default: who is it\nabac: No policy matched."`},
	} {
		p.client(token, nil, nil).want(want.code, want.part, "GET", path, "")
	}
	p.client("t-bob", nil, nil).want(200, "", "GET", "/api", "") // the rules of discovery are still there
	metrics := p.client("t-admin", nil, nil).want(200, "", "GET", "/metrics", "")
	for _, want := range []string{
		`apiserver_authorization_decisions_total{decision="allowed",name="abac",type="ABAC"} 1`,
		`apiserver_authorization_decisions_total{decision="denied",name="default",type="Webhook"} 1`,
		`apiserver_authorization_webhook_evaluations_total{name="default",result="success"} `,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	hook.Close()
	p.client("t-bob", nil, nil).want(500, "the authorization webhook has given no usable answer", "GET", path+"/x", "")
	p.stop()
	if text := p.stderr.String(); !strings.Contains(text, "lines without a version") || !strings.Contains(text, "connection refused") {
		t.Errorf("the log is %s", text)
	}
}

// accessConfig returns a configuration with authorizers.
func accessConfig(entries ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- " + strings.Join(entries, "\n- ") + "\n"
}

// A file of authorizers is used again when it changes. While it cannot be used those from before decide, and a check, a metric and the log
// say so.
func TestAccessConfigChanges(t *testing.T) {
	t.Parallel()
	hook, dir := newAccessHook(t), t.TempDir()
	write(t, filepath.Join(dir, "hook.yaml"), hook.kubeconfig())
	write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,system:masters\nt-deny,deny,1\nt-allow,allow,2\n")
	const roles = "{type: RBAC, name: rbac}"
	webhook := fmt.Sprintf(`{type: Webhook, name: hook, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: NoOpinion, connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q},
  matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "has(request.resourceAttributes)"}]}}`, filepath.Join(dir, "hook.yaml"))
	file := filepath.Join(dir, "authz.yaml")
	write(t, file, accessConfig(roles))
	p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-config=authz.yaml")
	admin, allow, deny := p.client("t-admin", nil, nil), p.client("t-allow", nil, nil), p.client("t-deny", nil, nil)
	const path = "/api/v1/namespaces/default/configmaps"
	allow.want(403, "", "GET", path, "")
	deny.want(403, "", "GET", path, "")
	becomes := func(c *client, want int, path string) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if code, _ := c.ask("GET", path, ""); code == want {
				return
			}
			if time.Since(begin) > limit {
				t.Fatalf("%s does not become %d", path, want)
			}
		}
	}
	write(t, file, accessConfig(webhook, roles))
	becomes(allow, 200, path)
	deny.want(403, `: said no"`, "GET", path, "")
	deny.want(403, "cannot get path", "GET", "/nowhere", "") // not asked about paths
	write(t, file, accessConfig(webhook, roles, "{type: AlwaysAllow, name: alwaysallow}"))
	becomes(deny, 404, "/nowhere")
	deny.want(403, `: said no"`, "GET", path, "")
	write(t, file, accessConfig(webhook)) // RBAC must stay
	becomes(admin, 500, "/readyz/authorization-config")
	admin.want(500, "missing required types: [RBAC]", "GET", "/readyz/authorization-config", "")
	deny.want(404, "", "GET", "/nowhere", "")
	write(t, file, accessConfig(roles))
	becomes(allow, 403, path)
	admin.want(200, "ok", "GET", "/readyz/authorization-config", "")
	metrics := admin.want(200, "", "GET", "/metrics", "")
	for _, want := range []string{
		`apiserver_authorization_config_controller_automatic_reloads_total{status="failure"} `,
		`apiserver_authorization_config_controller_automatic_reloads_total{status="success"} 3`,
		`apiserver_authorization_config_controller_last_config_info{hash="sha256:`,
		`apiserver_authorization_match_condition_exclusions_total{name="hook",type="Webhook"} `,
		`apiserver_authorization_decisions_total{decision="denied",name="hook",type="Webhook"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	p.stop()
}
