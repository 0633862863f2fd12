package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// advice is printed by kubectl below the text of a conflict.
const advice = "Please review the fields above--they currently have other managers. Here\nare the ways you can resolve this warning:\n"

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// owners describes metadata.managedFields as lines "MANAGER OPERATION[/SUBRESOURCE] FIELDS", sorted by text: the server
// orders them by time, which has whole seconds.
func owners(t *testing.T, obj *unstructured.Unstructured) []string {
	t.Helper()
	var lines []string
	for _, e := range obj.GetManagedFields() {
		if e.APIVersion != obj.GetAPIVersion() || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil {
			t.Errorf("an entry of managedFields of %s is %+v", obj.GetName(), e)
			continue
		}
		operation := string(e.Operation)
		if e.Subresource != "" {
			operation += "/" + e.Subresource
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", e.Manager, operation, e.FieldsV1.GetRawString()))
	}
	slices.Sort(lines)
	return lines
}

// wantOwners compares the managers of what kubectl get -o json --show-managed-fields printed.
func wantOwners(t *testing.T, r harness.Result, want ...string) {
	t.Helper()
	obj := new(unstructured.Unstructured)
	if err := json.Unmarshal([]byte(r.OK().Stdout), obj); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
	slices.Sort(want)
	if got := owners(t, obj); !slices.Equal(got, want) {
		t.Errorf("the managers of %s are\n%s\nwant\n%s", obj.GetName(), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// managed is a widget with its managedFields, in JSON.
func managed(hello *harness.Server, name string) harness.Result {
	return hello.Kubectl("get", "widget", name, "-o", "json", "--show-managed-fields")
}

// applier returns kubectl apply --server-side of a manifest.
func applier(t *testing.T, hello *harness.Server) func(manifest string, args ...string) harness.Result {
	return func(manifest string, args ...string) harness.Result {
		t.Helper()
		return hello.KubectlWith(manifest, append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	}
}

const applied = "widget.example.com/alpha serverside-applied\n"

func TestKubectlApplyServerSide(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	apply(widget("alpha", "size: 1", "color: red"), "--dry-run=server").Want("widget.example.com/alpha serverside-applied (server dry run)\n", "")
	hello.Kubectl("get", "widget", "alpha").Fails("NotFound")

	apply(widget("alpha", "size: 1", "color: red")).Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:color":{},"f:size":{}}}`)
	if got := field(hello, "alpha", ".metadata.annotations"); got != "" {
		t.Errorf("server-side apply left annotations: %s", got)
	}

	// An apply that changes nothing is not written: not even the time in managedFields changes, which has whole seconds.
	before := managed(hello, "alpha").OK().Stdout
	second := time.Now().Unix()
	harness.Eventually(t, "the next second has begun", func() bool { return time.Now().Unix() > second })
	apply(widget("alpha", "size: 1", "color: red")).Want(applied, "")
	apply(widget("alpha", "size: 2", "color: red"), "--dry-run=server").Want("widget.example.com/alpha serverside-applied (server dry run)\n", "")
	if after := managed(hello, "alpha").OK().Stdout; after != before {
		t.Errorf("applying the same changed the widget from\n%s to\n%s", before, after)
	}

	apply(widget("alpha", "size: 2", "color: red")).Want(applied, "")
	if got := field(hello, "alpha", ".spec.size") + " " + field(hello, "alpha", ".metadata.generation"); got != "2 2" {
		t.Errorf("size and generation are %s", got)
	}

	// A field that a manager no longer applies is removed, unless it has another owner.
	apply(widget("alpha", "color: red"), "--field-manager=painter").Want(applied, "")
	apply(widget("alpha", "replicas: 3")).Want(applied, "")
	if got := field(hello, "alpha", ".spec"); got != `{"color":"red","replicas":3}` {
		t.Errorf("spec is %s", got)
	}
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:replicas":{}}}`, `painter Apply {"f:spec":{"f:color":{}}}`)

	// Only a manifest can be applied.
	apply(strings.Replace(widget("alpha", "size: 1"), "  name:", "  managedFields: []\n  name:", 1)).Fails("metadata.managedFields must be nil")
	apply(strings.Replace(widget("alpha", "size: 1"), "  name:", "  resourceVersion: \"1\"\n  name:", 1)).Fails("the object has been modified")
	apply(strings.Replace(widget("alpha", "size: 1"), "  name:", "  uid: another\n  name:", 1)).
		Fails(`The Widget "alpha" is invalid: metadata.uid: Invalid value: "another": field is immutable`)
	apply(strings.Replace(widget("beta", "size: 1"), "  name:", "  uid: another\n  name:", 1)).Fails("uid mismatch: the provided object specified uid another, and no existing object was found")
	apply(strings.Replace(widget("gen-", "size: 1"), "name:", "generateName:", 1)).Fails("cannot use generate name with apply")
	apply(widget("Bad_Name", "size: 1")).Fails(`The Widget "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"`)
}

func TestKubectlApplyConflict(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	apply(widget("alpha", "size: 1", "color: red")).Want(applied, "")
	before := managed(hello, "alpha").OK().Stdout

	for want, spec := range map[string][]string{
		"error: Apply failed with 1 conflict: conflict with \"kubectl\": .spec.size\n" + advice:                     {"size: 3"},
		"error: Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .spec.color\n- .spec.size\n" + advice: {"size: 3", "color: blue"},
	} {
		for _, dry := range []string{"none", "server"} {
			r := apply(widget("alpha", spec...), "--field-manager=other", "--dry-run="+dry)
			if r.Code != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, want) {
				t.Errorf("exit code %d, want 1 and stderr %q: %s", r.Code, want, r)
			}
		}
	}
	if after := managed(hello, "alpha").OK().Stdout; after != before {
		t.Errorf("a conflict changed the widget from\n%s to\n%s", before, after)
	}

	apply(widget("alpha", "size: 3"), "--field-manager=other", "--force-conflicts").Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:color":{}}}`, `other Apply {"f:spec":{"f:size":{}}}`)

	// Applying the same value is no conflict; both managers own the field.
	apply(widget("alpha", "size: 3", "color: red")).Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:color":{},"f:size":{}}}`, `other Apply {"f:spec":{"f:size":{}}}`)

	// If the other manager did not use apply, the conflict has its version and time.
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"color":"green"}}`).OK()
	apply(widget("alpha", "color: red")).Fails(`Apply failed with 1 conflict: conflict with "kubectl-patch" using example.com/v1: .spec.color`)
	apply(widget("alpha", "color: red"), "--force-conflicts=false").Fails("Apply failed with 1 conflict")
	hello.KubectlWith(widget("alpha", "size: 1"), "apply", "-f", "-", "--force-conflicts").Fails("--force-conflicts only works with --server-side")
}

// From client-side to server-side apply and back, with the same manifest. kubectl's annotation is kept up to date, and there are
// no conflicts.
func TestKubectlApplyTakesOver(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	clientSide := func(manifest string) harness.Result {
		t.Helper()
		return hello.KubectlWith(manifest, "apply", "-f", "-")
	}
	viewed := func(spec string) {
		t.Helper()
		hello.Kubectl("apply", "view-last-applied", "widget", "alpha", "-o", "json").Contains(`"spec": {`)
		var last struct{ Spec map[string]any }
		parse(t, hello.Kubectl("apply", "view-last-applied", "widget/alpha").OK().Stdout, &last)
		if got, err := json.Marshal(last.Spec); err != nil || string(got) != spec {
			t.Errorf("the last applied spec is %s, want %s", got, spec)
		}
	}
	const annotation = `{"f:metadata":{"f:annotations":{"f:` + lastApplied + `":{}}}}`

	clientSide(widget("alpha", "size: 1", "color: red")).Want("widget.example.com/alpha created\n", "")
	wantOwners(t, managed(hello, "alpha"),
		`kubectl-client-side-apply Update {"f:metadata":{"f:annotations":{".":{},"f:`+lastApplied+`":{}}},"f:spec":{"f:color":{},"f:size":{}}}`)
	viewed(`{"color":"red","size":1}`)

	apply(widget("alpha", "size: 2", "color: red")).Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:color":{},"f:size":{}}}`, `kubectl-last-applied Apply `+annotation)
	viewed(`{"color":"red","size":2}`)
	before := managed(hello, "alpha").OK().Stdout
	apply(widget("alpha", "size: 2", "color: red")).Want(applied, "")
	if after := managed(hello, "alpha").OK().Stdout; after != before {
		t.Errorf("applying the same changed the widget from\n%s to\n%s", before, after)
	}

	// Back: a field that is no longer in the manifest is removed, according to the annotation that server-side apply kept up to
	// date.
	clientSide(widget("alpha", "size: 3")).Want("widget.example.com/alpha configured\n", "")
	if got := field(hello, "alpha", ".spec"); got != `{"size":3}` {
		t.Errorf("spec is %s", got)
	}
	wantOwners(t, managed(hello, "alpha"),
		`kubectl-client-side-apply Update {"f:metadata":{"f:annotations":{"f:`+lastApplied+`":{}}},"f:spec":{"f:size":{}}}`)
	viewed(`{"size":3}`)
	clientSide(widget("alpha", "size: 3")).Want("widget.example.com/alpha unchanged\n", "")

	apply(widget("alpha", "color: blue")).Want(applied, "")
	if got := field(hello, "alpha", ".spec"); got != `{"color":"blue"}` {
		t.Errorf("spec is %s", got)
	}
	viewed(`{"color":"blue"}`)
}

func TestKubectlApplySubresource(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	ready := func(spec string) string {
		return "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: alpha\n" + spec + "status:\n  ready: true\n"
	}
	apply(ready(""), "--subresource=status").Fails("NotFound")
	apply(ready("spec:\n  size: 1\n")).Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:size":{}}}`) // the status has its own subresource
	apply(ready("spec:\n  size: 7\n"), "--subresource=status").Want(applied, "")
	wantOwners(t, managed(hello, "alpha"), `kubectl Apply {"f:spec":{"f:size":{}}}`, `kubectl Apply/status {"f:status":{"f:ready":{}}}`)
	if got := field(hello, "alpha", ".status.ready") + field(hello, "alpha", ".spec.size") + field(hello, "alpha", ".metadata.generation"); got != "true11" {
		t.Errorf("ready, size and generation are %s", got)
	}

	hello.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":4}}`).OK()
	apply(strings.Replace(ready(""), "ready: true", "replicas: 5", 1), "--subresource=status", "--field-manager=counter").
		Fails(`Apply failed with 1 conflict: conflict with "kubectl-patch" with subresource "status" using example.com/v1: .status.replicas`)
	apply(strings.Replace(ready(""), "ready: true", "replicas: 5", 1), "--subresource=status").
		Fails(`conflict with "kubectl-patch" with subresource "status"`)
	apply(strings.Replace(ready(""), "ready: true", "replicas: 5", 1), "--subresource=status", "--force-conflicts").Want(applied, "")
	if got := field(hello, "alpha", ".status"); got != `{"replicas":5}` {
		t.Errorf("status is %s", got)
	}
}

// Files of every form: YAML and JSON, several documents in one, a list, a directory.
func TestKubectlApplyFiles(t *testing.T) {
	hello := start(t)
	two := hello.File("two.yaml", widget("a", "size: 1")+"---\n# only a comment\n---\n"+widget("b", "size: 1"), 0o600)
	one := hello.File("one.json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c"},"spec":{"size":1}}`, 0o600)
	list := hello.File("list.yaml", `apiVersion: example.com/v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: d}, spec: {size: 1}}
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: e}, spec: {size: 1}}
`, 0o600)
	all := func(done string) string {
		var b strings.Builder
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			fmt.Fprintf(&b, "widget.example.com/%s %s\n", name, done)
		}
		return b.String()
	}
	files := []string{"-f", two, "-f", one, "-f", list}
	hello.Kubectl(append([]string{"apply", "--server-side"}, files...)...).Want(all("serverside-applied"), "")
	hello.Kubectl(append([]string{"diff", "--server-side"}, files...)...).Want("", "")
	hello.Kubectl(append([]string{"replace"}, files...)...).Want(all("replaced"), "")
	hello.Kubectl(append([]string{"apply"}, files...)...).Contains(all("configured"))
	hello.Kubectl(append([]string{"apply"}, files...)...).Want(all("unchanged"), "")
	hello.Kubectl(append([]string{"apply", "--server-side"}, files...)...).Want(all("serverside-applied"), "")

	// If one of several documents is invalid, the others are applied.
	some := widget("a", "size: 2") + "---\n" + widget("b", "sise: 2") + "---\n" + widget("c", "size: 2")
	r := applier(t, hello)(some)
	if r.Code != 1 || r.Stdout != "widget.example.com/a serverside-applied\nwidget.example.com/c serverside-applied\n" ||
		!strings.Contains(r.Stderr, ".spec.sise: field not declared in schema") {
		t.Errorf("exit code %d: %s", r.Code, r)
	}
	hello.Kubectl("get", "widgets", "-o", `jsonpath={.items[*].spec.size}`).Want("2 1 2 1 1", "")
}

func TestKubectlDiffServerSide(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	diff := func(manifest string, args ...string) harness.Result {
		t.Helper()
		return hello.KubectlWith(manifest, append([]string{"diff", "--server-side", "-f", "-"}, args...)...)
	}
	apply(widget("alpha", "size: 1", "color: red")).Want(applied, "")
	before := managed(hello, "alpha").OK().Stdout
	diff(widget("alpha", "size: 1", "color: red")).Want("", "")
	r := diff(widget("alpha", "size: 2"))
	if r.Code != 1 || !strings.Contains(r.Stdout, "-  color: red\n-  size: 1\n+  size: 2\n") || !strings.Contains(r.Stdout, "-  generation: 1\n+  generation: 2\n") {
		t.Errorf("exit code %d, want 1 and the difference: %s", r.Code, r)
	}
	r = diff(widget("alpha", "size: 2"), "--field-manager=other")
	if r.Code != 2 || !strings.Contains(r.Stderr, `Error from server (Conflict): Apply failed with 1 conflict: conflict with "kubectl": .spec.size`) {
		t.Errorf("exit code %d, want 2 and the conflict: %s", r.Code, r)
	}
	r = diff(widget("alpha", "size: 2"), "--field-manager=other", "--force-conflicts")
	if r.Code != 1 || !strings.Contains(r.Stdout, "-  size: 1\n+  size: 2\n") || strings.Contains(r.Stdout, "-  color") {
		t.Errorf("exit code %d, want 1 and the difference: %s", r.Code, r)
	}
	r = diff(widget("beta", "size: 2"))
	if r.Code != 1 || !strings.Contains(r.Stdout, "+  name: beta\n") {
		t.Errorf("exit code %d, want 1 and a new widget: %s", r.Code, r)
	}
	hello.Kubectl("get", "widget", "beta").Fails("NotFound")
	if after := managed(hello, "alpha").OK().Stdout; after != before {
		t.Errorf("diff changed the widget from\n%s to\n%s", before, after)
	}
}

// The annotation of client-side apply can be written by a command of its own.
func TestKubectlApplySetLastApplied(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	file := hello.File("alpha.yaml", widget("alpha", "size: 1"), 0o600)
	hello.Kubectl("apply", "view-last-applied", "widget", "alpha").Want("", "")
	hello.Kubectl("apply", "set-last-applied", "-f", file).Fails("no last-applied-configuration annotation found on resource: alpha")
	hello.Kubectl("apply", "set-last-applied", "-f", file, "--create-annotation").Want("widget.example.com/alpha configured\n", "")
	hello.Kubectl("apply", "set-last-applied", "-f", file).Want("set-last-applied alpha: no changes required.\n", "")
	hello.Kubectl("apply", "-f", file).Want("widget.example.com/alpha configured\n", "") // apply adds the namespace to it
	hello.Kubectl("apply", "-f", file).Want("widget.example.com/alpha unchanged\n", "")
	hello.KubectlEnv(sed(hello, "s/size: 1/size: 4/"), "apply", "edit-last-applied", "widget/alpha").Want("widget.example.com/alpha edited\n", "")
	hello.Kubectl("apply", "view-last-applied", "widget", "alpha").Contains("size: 4\n")
	if got := field(hello, "alpha", ".spec.size"); got != "1" {
		t.Errorf("editing what was applied last made the size %s", got)
	}
}

// sed is an editor for kubectl edit: a sed command.
func sed(hello *harness.Server, expr string) []string {
	script := fmt.Sprintf("#!/bin/sh\nsed %q \"$1\" > \"$1.new\" && cat \"$1.new\" > \"$1\" && rm \"$1.new\"\n", expr)
	return []string{"EDITOR=" + hello.File(fmt.Sprintf("sed-%d.sh", len(script)), script, 0o700)}
}
