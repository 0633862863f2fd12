package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainedReviews checks that --explain-authorization tells an administrator why, and that a server without the flag does not.
func TestExplainedReviews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte("secret,admin,1,system:masters\nother,joe,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const review = `{"spec":{"user":"joe","groups":["system:authenticated"],"nonResourceAttributes":{"verb":"get","path":"/version"}}}`
	for _, flag := range []string{"--explain-authorization", ""} {
		p := start(t, dir, append(strings.Fields(flag), "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-mode=RBAC")...)
		c, joe := p.client("secret", nil, nil), p.client("other", nil, nil)
		explained := `{\"authorizer\":\"rbac\",\"grant\":{\"binding\":{\"kind\":\"ClusterRoleBinding\",\"name\":\"system:discovery\"}`
		got := c.want(201, `"allowed":true,"reason":"RBAC: allowed by ClusterRoleBinding \"system:discovery\"`, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
		if strings.Contains(got, explained) != (flag != "") {
			t.Errorf("%q: %s", flag, got)
		}
		if flag != "" {
			c.want(200, `{"subject":{"kind":"Group","name":"system:masters"}}`, "GET", "/debug/who-can?verb=get&resource=secrets", "")
			joe.want(403, "", "GET", "/debug/who-can?verb=get&resource=secrets", "")
		} else {
			c.want(404, "", "GET", "/debug/who-can?verb=get&resource=secrets", "")
		}
		joe.want(403, "", "GET", "/metrics", "")
		p.stop()
	}
}
