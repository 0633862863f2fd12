package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

const (
	roleUsers  = "testdata/rbac/users.csv"
	roleScript = "testdata/rbac/kubectl.txt"
)

// Users create roles and bindings with kubectl, and are then allowed what these allow. Refusals have the texts of kube-apiserver.
// The test runs on an etcd and on a file, and repeats the requests after a restart. The texts are recorded by
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 go test . -run TestControlPlaneRoles
//
// with a new kube-apiserver that was started with --authorization-mode=RBAC and --token-auth-file=testdata/rbac/users.csv.
func TestControlPlaneRoles(t *testing.T) {
	script := read(t, roleScript)
	if url := os.Getenv("KEELSON_WIRE_SERVER"); url != "" {
		if err := os.WriteFile(roleScript, []byte(played(script, roleClients(t, url, "--insecure-skip-tls-verify"))), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	users, err := filepath.Abs(roleUsers)
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"etcd", "file"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := harness.Options{Example: "controlplane", Dir: dir, Data: filepath.Join(dir, "plane.db"), Flags: []string{"--token-auth-file=" + users, "--authorization-mode=RBAC"}}
			if where == "etcd" {
				o.Data, o.Etcd = "", harness.StartEtcd(t)
			}
			s := harness.Start(t, o)
			authority := "--certificate-authority=" + filepath.Join(dir, "certs", "apiserver.crt")
			if diff := cmp.Diff(script, played(script, roleClients(t, s.URL, authority))); diff != "" {
				t.Errorf("-kube-apiserver +controlplane:\n%s", diff)
			}
			s.Stop()

			s = harness.Start(t, o)
			clients := roleClients(t, s.URL, authority)
			clients["alice"]("", "get", "--raw", "/api/v1/namespaces/team/pods").Contains(`"items":[]`)
			clients["bob"]("", "get", "--raw", "/api/v1/namespaces/team/pods").Fails(`User "bob" cannot list resource "pods" in API group "" in the namespace "team": rbac: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`)
			clients["bob"]("", "get", "--raw", "/custom/a").Fails("NotFound")
			clients["admin"]("", "get", "namespaces", "-o", "name").Want("namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\nnamespace/team\n", "")
			s.Stop()
		})
	}
}

// roleClients returns a kubectl for each user of the file.
func roleClients(t *testing.T, url, trust string) map[string]func(stdin string, args ...string) harness.Result {
	t.Helper()
	all := map[string]func(stdin string, args ...string) harness.Result{}
	for _, user := range []string{"admin", "alice", "bob"} {
		empty := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectl := harness.NewKubectl(t, empty)
		all[user] = func(stdin string, args ...string) harness.Result {
			t.Helper()
			return kubectl.Run(stdin, append(args, "--server="+url, trust, "--token=t-"+user)...)
		}
	}
	return all
}

// played runs the commands of a script, and returns the script with their current output.
func played(script string, clients map[string]func(stdin string, args ...string) harness.Result) string {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(script), "\n\n") {
		var stdin strings.Builder
		var command []string
		for line := range strings.SplitSeq(block, "\n") {
			switch line[:1] {
			case "#":
			case "$":
				command = strings.Fields(line[1:])
			case "<":
				stdin.WriteString(strings.TrimPrefix(line[1:], " ") + "\n")
			default:
				continue
			}
			b.WriteString(line + "\n")
		}
		if command != nil {
			r := clients[command[0]](stdin.String(), command[1:]...)
			b.WriteString(prefixed("|", r.Stdout) + prefixed("!", r.Stderr))
			fmt.Fprintf(&b, "= %d\n", r.Code)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// prefixed returns a text with a prefix before each line, and with parts replaced that differ between runs.
func prefixed(prefix, text string) string {
	for _, change := range []struct{ from, to string }{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "<time>"},
		{`AGE +`, "AGE "}, // ages change the width of the column
		{`\b\d+(m\d*)?s\b *`, "<age> "},
		{`https://127\.0\.0\.1:\d+`, "<url>"},
		{`(?m)^([EWI])\d{4} [\d:.]+ +\d+ `, "$1 "},
	} {
		text = regexp.MustCompile(change.from).ReplaceAllString(text, change.to)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(prefix+" "+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	return b.String()
}
