package rbac_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const fileOfRoles = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: maps}
rules:
- {verbs: [list], apiGroups: [""], resources: [configmaps]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: maps}
roleRef: {kind: ClusterRole, name: maps}
subjects:
- {kind: User, name: alice}
`

// A server decides by the roles of a file, and after a change by the new ones. After a mistake in the file it decides by the former
// roles, and the log, the health check and a metric show the mistake.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "roles.yaml")
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	core, logged := observer.New(zap.ErrorLevel)
	opts := server.Options{}
	opts.Observe.Logger = zap.New(core)
	srv := servertest.Start(t, opts, mapsOnly())
	install := func() error { return srv.Install(rbac.File(path, rbac.FileOptions{Every: 10 * time.Millisecond})) }
	if err := install(); err == nil || !strings.Contains(err.Error(), "roles.yaml") {
		t.Errorf("without the file: %v", err)
	}
	save(strings.Replace(fileOfRoles, "resources:", "resource:", 1))
	if err := install(); err == nil || !strings.Contains(err.Error(), `roles.yaml: line 5: ClusterRole "maps": unknown field "rules[0].resource"`) {
		t.Errorf("with a mistake: %v", err)
	}
	save(fileOfRoles)
	if err := install(); err != nil {
		t.Fatal(err)
	}
	clients := map[string]string{"alice": srv.AddUser(authn.User{Name: "alice"}), "bob": srv.AddUser(authn.User{Name: "bob"})}
	code := func(who, path string) int { return ask(t, srv.ClientOf(clients[who]), "GET", srv.URL+path, "").code }
	const maps = "/api/v1/configmaps"
	if a, b, d := code("alice", maps), code("bob", maps), code("bob", "/apis"); a != 200 || b != 403 || d != 200 {
		t.Errorf("alice %d, bob %d, discovery %d", a, b, d)
	}

	save(strings.ReplaceAll(fileOfRoles, "alice", "bob"))
	within(t, "bob is allowed", func() bool { return code("bob", maps) == 200 })
	if got := code("alice", maps); got != 403 {
		t.Errorf("alice: %d", got)
	}

	save(strings.ReplaceAll(fileOfRoles, "kind: User", "kind: Usr"))
	within(t, "the check fails", func() bool { return ask(t, srv.Client(), "GET", srv.URL+"/readyz/rbac-config", "").code == 500 })
	if a, b := code("alice", maps), code("bob", maps); a != 403 || b != 200 {
		t.Errorf("alice %d, bob %d after a mistake", a, b)
	}
	if got := ask(t, srv.Client(), "GET", srv.URL+"/readyz", ""); got.code != 200 {
		t.Errorf("/readyz: %d %s", got.code, got.body)
	}
	const fault = `line 12: ClusterRoleBinding "maps": subjects[0].kind: Unsupported value: "Usr"`
	if all := logged.All(); len(all) == 0 || !strings.Contains(fmt.Sprint(all[0].ContextMap()), fault) {
		t.Errorf("logged %v, want %s", logged.All(), fault)
	}
	if got := ask(t, srv.Client(), "GET", srv.URL+"/metrics", ""); !strings.Contains(got.body, `apiserver_rbac_config_controller_automatic_reloads_total{status="failure"}`) {
		t.Error("no metric of the failure")
	}
	save(fileOfRoles)
	within(t, "alice is allowed again", func() bool { return code("alice", maps) == 200 && code("bob", maps) == 403 })
	within(t, "the check succeeds", func() bool { return ask(t, srv.Client(), "GET", srv.URL+"/readyz/rbac-config", "").code == 200 })
}

// Each fault of a file begins with the file and the line. A binding to a role that is not in the file is logged.
func TestFaultsOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "roles.yaml")
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	core, logged := observer.New(zap.WarnLevel)
	srv := servertest.Start(t, server.Options{}, mapsOnly())
	install := func() error { return srv.Install(rbac.File(path, rbac.FileOptions{Logger: zap.New(core)})) }
	save(strings.NewReplacer("kind: User", "kind: Usr", "resources:", "resource:").Replace(fileOfRoles))
	err := install()
	if err == nil {
		t.Fatal("a wrong file is used")
	}
	lines := strings.Split(strings.TrimPrefix(err.Error(), "rbac: "), "\n")
	for i, line := range lines {
		if want := path + ": line "; !strings.HasPrefix(line, want) || strings.Count(line, path) != 1 {
			t.Errorf("fault %d is %q, want %s", i, line, want)
		}
	}
	if len(lines) < 2 {
		t.Errorf("the faults are %q", lines)
	}
	save(strings.Replace(fileOfRoles, "{kind: ClusterRole, name: maps}", "{kind: ClusterRole, name: mops}", 1))
	if err := install(); err != nil {
		t.Fatal(err)
	}
	if all, want := logged.All(), path+`: line 10: ClusterRoleBinding "maps": there is no ClusterRole "mops"`; len(all) != 1 || all[0].Message != want {
		t.Errorf("logged %v, want %s", all, want)
	}
}
