package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const policyFile = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n  verbs: [list]\n"

// Events reach the log and the webhook. Those of the webhook, which wait in batches, are sent at the end.
func TestAudit(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent.Add(int64(strings.Count(string(body), `"verb":"list"`)))
	}))
	defer hook.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), policyFile)
	write(t, filepath.Join(dir, "hook.yaml"), fmt.Sprintf("clusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", hook.URL))
	write(t, filepath.Join(dir, "users.csv"), "t,mary,1,system:masters\n")
	p := start(t, dir, "--storage-file=plane.db", "--token-auth-file=users.csv", "--audit-policy-file=policy.yaml", "--audit-log-path=audit.log", "--audit-log-truncate-enabled",
		"--audit-webhook-config-file=hook.yaml", "--strict-transport-security-directives=max-age=9", "--cors-allowed-origins=//a.example$", "--shutdown-watch-termination-grace-period=10ms")
	c := p.client("t", nil, nil)
	c.want(200, "NamespaceList", "GET", "/api/v1/namespaces", "")
	c.want(200, "default", "GET", "/api/v1/namespaces/default", "")
	req, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/readyz/audit-config", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://a.example")
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Strict-Transport-Security") != "max-age=9" || resp.Header.Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	p.stop()
	log := string(read(t, filepath.Join(dir, "audit.log")))
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, `"verb":"list"`) || !strings.Contains(log, `"username":"mary"`) {
		t.Errorf("the log is %s", log)
	}
	if sent.Load() != 1 {
		t.Errorf("%d events were sent", sent.Load())
	}
}

func TestAuditThatCannotBegin(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--audit-log-path=a --audit-policy-file=none":                                "--audit-policy-file",
		"--audit-log-path=a --audit-policy-file=bad":                                 "the policy is invalid",
		"--audit-log-path=none/a --audit-policy-file=good":                           "--audit-log-path",
		"--audit-webhook-config-file=none --audit-policy-file=good":                  "--audit-webhook-config-file",
		"--audit-webhook-config-file=good --audit-policy-file=good":                  "--audit-webhook-config-file",
		"--audit-log-path=a --audit-policy-file=good --audit-log-mode=now-and-again": "--audit-log-mode",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "good"), policyFile)
		write(t, filepath.Join(dir, "bad"), strings.Replace(policyFile, "Metadata", "Much", 1))
		p := launch(t, dir, append(strings.Fields(args), "--storage-file=plane.db", "--bind-address=127.0.0.1", "--secure-port=0", "--cert-dir=certs")...)
		if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: it ended with %d: %s", args, code, p.stderr.String())
		}
	}
}
