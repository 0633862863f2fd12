package e2e_test

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// deleted returns the output of kubectl delete for widgets.
func deleted(names ...string) string {
	var out string
	for _, n := range names {
		out += fmt.Sprintf("widget.example.com %q deleted from default namespace\n", n)
	}
	return out
}

func TestKubectlDeleteByName(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta", "gamma")
	hello.Kubectl("delete", "widget", "alpha", "--dry-run=server").Want(`widget.example.com "alpha" deleted from default namespace (server dry run)`+"\n", "")
	hello.Kubectl("get", "widget", "alpha").OK()
	hello.Kubectl("delete", "widget", "alpha").Want(deleted("alpha"), "")
	hello.Kubectl("delete", "widget", "alpha").Fails(`Error from server (NotFound): widgets.example.com "alpha" not found`)
	hello.Kubectl("delete", "widget", "alpha", "--ignore-not-found").Want("", "")
	hello.Kubectl("delete", "wd/beta", "wd/gamma").Want(deleted("beta", "gamma"), "")
	hello.Kubectl("get", "widgets").Want("", "No resources found in default namespace.\n")
}

func TestKubectlDeleteSelector(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta", "gamma")
	hello.Kubectl("label", "widget", "alpha", "gamma", "old=yes").OK()
	hello.Kubectl("delete", "widgets", "-l", "old=yes").Want(deleted("alpha", "gamma"), "")
	hello.Kubectl("delete", "widgets", "-l", "old=yes").Want("No resources found\n", "")
	hello.Kubectl("delete", "widgets", "--field-selector=metadata.name=other").Want("No resources found\n", "")
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/beta\n", "")
}

func TestKubectlDeleteAll(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta")
	hello.KubectlWith(widget("gamma", "size: 1"), "create", "-n", "other", "-f", "-").OK()
	hello.Kubectl("delete", "widgets", "--all").Want(deleted("alpha", "beta"), "")
	hello.Kubectl("get", "widgets", "-A", "-o", "name").Want("widget.example.com/gamma\n", "")
	hello.Kubectl("delete", "widgets", "--all", "-A").Want(`widget.example.com "gamma" deleted from other namespace`+"\n", "")
}

func TestKubectlDeleteWait(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta")
	hello.Kubectl("delete", "widget", "alpha", "--wait=true").Want(deleted("alpha"), "")
	hello.Kubectl("delete", "widget", "beta", "--wait=false", "--now").Want(deleted("beta"), "")

	// With a finalizer, kubectl watches until the object is gone.
	create(t, hello, "gamma")
	hello.Kubectl("patch", "widget", "gamma", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`).OK()
	waiting := hello.Begin("delete", "widget", "gamma")
	harness.Eventually(t, "gamma is being deleted", func() bool { return field(hello, "gamma", ".metadata.deletionTimestamp") != "" })
	if waiting.Exited() {
		t.Fatal("kubectl delete did not wait for the finalizer")
	}
	forGone := hello.Begin("wait", "--for=delete", "widget/gamma", "--timeout=50s")
	hello.Kubectl("patch", "widget", "gamma", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).OK()
	if code := waiting.Wait(); code != 0 || waiting.Stdout.String() != deleted("gamma") {
		t.Errorf("delete exited with %d: %s%s", code, waiting.Stdout, waiting.Stderr)
	}
	if code := forGone.Wait(); code != 0 {
		t.Errorf("wait --for=delete exited with %d: %s", code, forGone.Stderr)
	}
}

func TestKubectlDeleteCascadeBackground(t *testing.T) { testCascade(t, "background") }
func TestKubectlDeleteCascadeOrphan(t *testing.T)     { testCascade(t, "orphan") }
func TestKubectlDeleteCascadeForeground(t *testing.T) { testCascade(t, "foreground") }

// testCascade deletes an owner. Without a garbage collector the result is the same for every policy: the owner is removed at
// once, and its dependents stay.
func testCascade(t *testing.T, policy string) {
	hello := start(t)
	create(t, hello, "owner", "owned")
	hello.Kubectl("patch", "widget", "owned", "--type=merge", "-p", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"owner","uid":%q,"blockOwnerDeletion":true}]}}`,
		field(hello, "owner", ".metadata.uid"))).OK()
	hello.Kubectl("delete", "widget", "owner", "--cascade="+policy, "--timeout=50s").Want(deleted("owner"), "")
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/owned\n", "")
}

func TestKubectlDeleteWithFinalizer(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`).OK()
	hello.Kubectl("delete", "widget", "alpha", "--wait=false").Want(deleted("alpha"), "")
	if field(hello, "alpha", ".metadata.deletionTimestamp") == "" {
		t.Error("no deletionTimestamp")
	}
	if got := field(hello, "alpha", ".metadata.generation"); got != "2" {
		t.Errorf("generation is %s, want 2", got)
	}
	hello.Kubectl("delete", "widget", "alpha", "--wait=false").Want(deleted("alpha"), "")
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`).
		Fails(`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}`)
	hello.KubectlWith(widget("alpha", "size: 1"), "create", "-f", "-").Fails(`object is being deleted: widgets.example.com "alpha" already exists`)
	hello.Kubectl("patch", "widget", "alpha", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`).OK()
	hello.Kubectl("get", "widget", "alpha").Fails("NotFound")
}
