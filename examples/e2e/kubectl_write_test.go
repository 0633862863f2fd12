package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

func TestKubectlCreate(t *testing.T) {
	hello := start(t)
	file := hello.File("w.yaml", widget("alpha", "size: 1", "color: red"), 0o600)
	hello.Kubectl("create", "-f", file, "--dry-run=server").Want("widget.example.com/alpha created (server dry run)\n", "")
	hello.Kubectl("get", "widget", "alpha").Fails("NotFound")
	hello.Kubectl("create", "-f", file).Want("widget.example.com/alpha created\n", "")
	hello.Kubectl("create", "-f", file).Fails(`Error from server (AlreadyExists): error when creating "` + file + `": widgets.example.com "alpha" already exists`)
	if got := field(hello, "alpha", ".spec.color"); got != "red" {
		t.Errorf("color is %q", got)
	}

	hello.KubectlWith(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generateName":"gen-"},"spec":{}}`, "create", "-f", "-", "-o", "name").
		Contains("widget.example.com/gen-")
	hello.KubectlWith(widget("typo", "sise: 1"), "create", "-f", "-").Fails(`unknown field "spec.sise"`)
	hello.KubectlWith(widget("typo", "sise: 1"), "create", "-f", "-", "--validate=warn").
		Want("widget.example.com/typo created\n", "Warning: unknown field \"spec.sise\"\n")
	hello.KubectlWith(widget("mistyped", "size: many"), "create", "-f", "-").Fails("Error from server (BadRequest)")
	hello.KubectlWith(widget("Bad_Name", "size: 1"), "create", "-f", "-").Fails(`The Widget "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain`)
}

func TestKubectlApply(t *testing.T) {
	hello := start(t)
	apply := func(manifest string, args ...string) harness.Result {
		t.Helper()
		return hello.KubectlWith(manifest, append([]string{"apply", "-f", "-"}, args...)...)
	}
	apply(widget("alpha", "size: 1", "color: red")).Want("widget.example.com/alpha created\n", "")
	apply(widget("alpha", "size: 1", "color: red")).Want("widget.example.com/alpha unchanged\n", "")
	apply(widget("alpha", "size: 2", "color: red"), "--dry-run=server").Want("widget.example.com/alpha configured (server dry run)\n", "")
	if got := field(hello, "alpha", ".spec.size"); got != "1" {
		t.Errorf("a dry run made the size %s", got)
	}
	apply(widget("alpha", "size: 2", "color: red")).Want("widget.example.com/alpha configured\n", "")

	// Fields of other clients are kept. Fields that are no longer in the manifest are removed.
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"data":"theirs"}}`).OK()
	r := apply(widget("alpha", "size: 2"), "-v=8").OK()
	if got := field(hello, "alpha", ".spec"); got != `{"data":"theirs","size":2}` {
		t.Errorf("spec is %s", got)
	}
	if !strings.Contains(r.Stderr, "application/strategic-merge-patch+json") {
		t.Errorf("apply did not find in OpenAPI that it can use a strategic merge patch: %s", r)
	}
	apply(widget("alpha", "sise: 2")).Fails(`unknown field "spec.sise"`)

	// Several objects at once, and the pruning of removed ones.
	two := labelled("beta", "set", "a") + "---\n" + labelled("gamma", "set", "a")
	apply(two).Want("widget.example.com/beta created\nwidget.example.com/gamma created\n", "")
	apply(labelled("beta", "set", "a"), "--prune", "-l", "set=a", "--prune-allowlist=example.com/v1/Widget").
		Contains("widget.example.com/beta unchanged\n", "widget.example.com/gamma pruned\n")
	hello.KubectlWith(two, "delete", "-f", "-", "--ignore-not-found").OK()
}

func TestKubectlReplace(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 1", "color: red"), "create", "-f", "-").OK()
	hello.KubectlWith(widget("alpha", "size: 2"), "replace", "-f", "-").Want("widget.example.com/alpha replaced\n", "")
	if got := field(hello, "alpha", ".spec"); got != `{"size":2}` {
		t.Errorf("spec is %s", got)
	}
	if got := field(hello, "alpha", ".metadata.generation"); got != "2" {
		t.Errorf("generation is %s", got)
	}
	stale := strings.Replace(widget("alpha", "size: 3"), "  name:", "  resourceVersion: \"1\"\n  name:", 1)
	hello.KubectlWith(stale, "replace", "-f", "-").Fails("the object has been modified; please apply your changes to the latest version and try again")
	hello.KubectlWith(widget("beta", "size: 3"), "replace", "-f", "-").Fails(`widgets.example.com "beta" not found`)
	uid := field(hello, "alpha", ".metadata.uid")
	hello.KubectlWith(widget("alpha", "size: 4"), "replace", "--force", "-f", "-").
		Contains(`widget.example.com "alpha" deleted from default namespace`, "widget.example.com/alpha replaced\n")
	if field(hello, "alpha", ".metadata.uid") == uid {
		t.Error("replace --force kept the uid")
	}
}

func TestKubectlEdit(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	editor := func(script string) []string {
		path := hello.File(fmt.Sprintf("editor-%d.sh", len(script)), "#!/bin/sh\n"+script+"\n", 0o700)
		return []string{"EDITOR=" + path}
	}
	sed := func(expr string) []string {
		return editor(fmt.Sprintf(`sed %q "$1" > "$1.new" && cat "$1.new" > "$1" && rm "$1.new"`, expr))
	}
	hello.KubectlEnv(sed("s/size: 1/size: 5/"), "edit", "widget", "alpha").Want("widget.example.com/alpha edited\n", "")
	if got := field(hello, "alpha", ".spec.size"); got != "5" {
		t.Errorf("size is %s", got)
	}
	hello.KubectlEnv(editor("true"), "edit", "widget", "alpha").Want("", "Edit cancelled, no changes made.\n")
	hello.KubectlEnv(sed("s/size: 5/size: 6/;s/^metadata:/metadata:\\n  labels: {a: b}/"), "edit", "widget", "alpha", "-o", "yaml").Contains("size: 6", "a: b")
}

func TestKubectlPatchMerge(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 1", "color: red"), "create", "-f", "-").OK()
	patch := func(p string, args ...string) harness.Result {
		t.Helper()
		return hello.Kubectl(append([]string{"patch", "widget", "alpha", "--type=merge", "-p", p}, args...)...)
	}
	patch(`{"spec":{"size":2,"color":null}}`).Want("widget.example.com/alpha patched\n", "")
	if got := field(hello, "alpha", ".spec"); got != `{"size":2}` {
		t.Errorf("spec is %s", got)
	}
	patch(`{"spec":{"size":2}}`).Want("widget.example.com/alpha patched (no change)\n", "")
	patch(`{"spec":{"size":9}}`, "--dry-run=server").Want("widget.example.com/alpha patched\n", "")
	if got := field(hello, "alpha", ".spec.size"); got != "2" {
		t.Errorf("a dry run made the size %s", got)
	}

	// The status has its own subresource, and the main resource does not change it.
	patch(`{"status":{"ready":true}}`).Want("widget.example.com/alpha patched (no change)\n", "")
	patch(`{"status":{"ready":true},"spec":{"size":7}}`, "--subresource=status").Want("widget.example.com/alpha patched\n", "")
	if got := field(hello, "alpha", ".status.ready") + field(hello, "alpha", ".spec.size") + field(hello, "alpha", ".metadata.generation"); got != "true22" {
		t.Errorf("ready, size and generation are %s", got)
	}

	patch(`{"spec":{"size":"big"}}`).Fails("The request is invalid: patch: Invalid value: ")
	patch(`{"spec":{"sise":1}}`).Contains("patched (no change)")
	hello.Kubectl("patch", "widget", "beta", "--type=merge", "-p", `{"spec":{"size":2}}`).Fails(`widgets.example.com "beta" not found`)
}

func TestKubectlPatchJSON(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 1", "color: red"), "create", "-f", "-").OK()
	patch := func(p string) harness.Result {
		t.Helper()
		return hello.Kubectl("patch", "widget", "alpha", "--type=json", "-p", p)
	}
	patch(`[{"op":"test","path":"/spec/size","value":1},{"op":"replace","path":"/spec/size","value":3},{"op":"remove","path":"/spec/color"},{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`).
		Want("widget.example.com/alpha patched\n", "")
	if got := field(hello, "alpha", ".spec") + field(hello, "alpha", ".metadata.labels"); got != `{"size":3}{"a":"b"}` {
		t.Errorf("spec and labels are %s", got)
	}
	patch(`[{"op":"test","path":"/spec/size","value":1}]`).Fails("the server rejected our request due to an error in our request")
	patch(`[{"op":"remove","path":"/spec/nothing"}]`).Fails("the server rejected our request due to an error in our request")
	if got := field(hello, "alpha", ".spec.size"); got != "3" {
		t.Errorf("size is %s after patches that failed", got)
	}
}

func TestKubectlLabel(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta")
	hello.Kubectl("label", "widget", "alpha", "tier=front").Want("widget.example.com/alpha labeled\n", "")
	hello.Kubectl("label", "widget", "alpha", "tier=front").Want("widget.example.com/alpha not labeled\n", "")
	hello.Kubectl("label", "widget", "alpha", "tier=back").Fails("already has a value (front), and --overwrite is false")
	hello.Kubectl("label", "widget", "alpha", "tier=back", "--overwrite").Want("widget.example.com/alpha labeled\n", "")
	hello.Kubectl("label", "widgets", "--all", "seen=yes").Want("widget.example.com/alpha labeled\nwidget.example.com/beta labeled\n", "")
	hello.Kubectl("get", "widgets", "-l", "tier=back,seen=yes", "-o", "name").Want("widget.example.com/alpha\n", "")
	hello.Kubectl("label", "widget", "alpha", "tier-").Want("widget.example.com/alpha unlabeled\n", "")
	if got := field(hello, "alpha", ".metadata.labels"); got != `{"seen":"yes"}` {
		t.Errorf("labels are %s", got)
	}
	if got := field(hello, "alpha", ".metadata.generation"); got != "1" {
		t.Errorf("labelling made the generation %s", got)
	}
}

func TestKubectlAnnotate(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	hello.Kubectl("annotate", "widget", "alpha", "note=first").Want("widget.example.com/alpha annotated\n", "")
	hello.Kubectl("annotate", "widget", "alpha", "note=second", "--overwrite").Want("widget.example.com/alpha annotated\n", "")
	if got := field(hello, "alpha", ".metadata.annotations.note"); got != "second" {
		t.Errorf("note is %q", got)
	}
	hello.Kubectl("annotate", "widget", "alpha", "note-").Want("widget.example.com/alpha annotated\n", "")
	if got := field(hello, "alpha", ".metadata.annotations"); got != "" {
		t.Errorf("annotations are %s", got)
	}
}
