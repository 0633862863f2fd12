package e2e_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// Each command of kubectl owns the fields that it changes, under its own name or a given one.
func TestKubectlFieldManagers(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 1"), "create", "-f", "-").OK()
	wantOwners(t, managed(hello, "alpha"), `kubectl-create Update {"f:spec":{"f:size":{}}}`)
	hello.KubectlWith(widget("beta", "size: 1"), "create", "-f", "-", "--field-manager=me").OK()
	wantOwners(t, managed(hello, "beta"), `me Update {"f:spec":{"f:size":{}}}`)

	hello.KubectlWith(widget("alpha", "size: 2"), "replace", "-f", "-").OK()
	hello.Kubectl("annotate", "widget", "alpha", "note=first").Want("widget.example.com/alpha annotated\n", "")
	hello.Kubectl("annotate", "widget", "alpha", "more=yes", "--field-manager=clerk").Want("widget.example.com/alpha annotated\n", "")
	hello.Kubectl("label", "widget", "alpha", "tier=front").Want("widget.example.com/alpha labeled\n", "")
	hello.Kubectl("label", "widget", "alpha", "tier=back", "--overwrite", "--field-manager=clerk").Want("widget.example.com/alpha labeled\n", "")
	hello.Kubectl("patch", "widget", "alpha", "--type=json", "-p", `[{"op":"add","path":"/spec/color","value":"red"}]`, "--field-manager=painter").OK()
	hello.KubectlEnv(sed(hello, "s/^spec:/spec:\\n  data: mine/"), "edit", "widget", "alpha").Want("widget.example.com/alpha edited\n", "")
	wantOwners(t, managed(hello, "alpha"),
		`clerk Update {"f:metadata":{"f:annotations":{"f:more":{}},"f:labels":{"f:tier":{}}}}`,
		`kubectl-annotate Update {"f:metadata":{"f:annotations":{".":{},"f:note":{}}}}`,
		`kubectl-edit Update {"f:spec":{"f:data":{}}}`,
		`kubectl-label Update {"f:metadata":{"f:labels":{}}}`,
		`kubectl-replace Update {"f:spec":{"f:size":{}}}`,
		`painter Update {"f:spec":{"f:color":{}}}`)

	// A write of another value makes the writer the owner. A write of the same value changes no owner.
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"color":"red","data":"ours"}}`).OK()
	hello.Kubectl("label", "widget", "alpha", "tier-", "--field-manager=janitor").Want("widget.example.com/alpha unlabeled\n", "")
	wantOwners(t, managed(hello, "alpha"),
		`clerk Update {"f:metadata":{"f:annotations":{"f:more":{}}}}`,
		`kubectl-annotate Update {"f:metadata":{"f:annotations":{".":{},"f:note":{}}}}`,
		`kubectl-patch Update {"f:spec":{"f:data":{}}}`,
		`kubectl-replace Update {"f:spec":{"f:size":{}}}`,
		`painter Update {"f:spec":{"f:color":{}}}`)
}

// The subresources have managers of their own. The managed fields of scale are those of the kind.
func TestKubectlSubresourceManagers(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	apply(widget("alpha", "size: 1", "replicas: 1")).Want(applied, "")
	hello.Kubectl("scale", "widget", "alpha", "--replicas=4").Want("widget.example.com/alpha scaled\n", "")
	hello.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":true}}`).
		Want("widget.example.com/alpha patched\n", "")
	wantOwners(t, managed(hello, "alpha"),
		`kubectl Apply {"f:spec":{"f:size":{}}}`,
		`kubectl Update/scale {"f:spec":{"f:replicas":{}}}`,
		`kubectl-patch Update/status {"f:status":{"f:ready":{}}}`)

	apply(widget("alpha", "size: 1", "replicas: 1")).
		Fails(`Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using example.com/v1: .spec.replicas`)
	hello.Kubectl("scale", "widget", "alpha", "--replicas=4").Want("widget.example.com/alpha scaled\n", "") // unchanged
	hello.Kubectl("scale", "widget", "alpha", "--replicas=6", "--dry-run=server").Want("widget.example.com/alpha scaled (server dry run)\n", "")
	apply(widget("alpha", "size: 1")).Want(applied, "")
	if got := field(hello, "alpha", ".spec"); got != `{"replicas":4,"size":1}` {
		t.Errorf("spec is %s", got)
	}
	hello.Kubectl("patch", "widget", "alpha", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":2}}`, "--field-manager=scaler").OK()
	apply(widget("alpha", "size: 1", "replicas: 3"), "--force-conflicts").Want(applied, "")
	wantOwners(t, managed(hello, "alpha"),
		`kubectl Apply {"f:spec":{"f:replicas":{},"f:size":{}}}`,
		`kubectl-patch Update/status {"f:status":{"f:ready":{}}}`)
}

// managedFields can be cleared, and are then recorded anew.
func TestKubectlClearsManagedFields(t *testing.T) {
	hello := start(t)
	apply := applier(t, hello)
	for name, patch := range map[string][]string{
		"null entry": {"--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`},
		"empty list": {"--type=merge", "-p", `{"metadata":{"managedFields":[]}}`},
		"json":       {"--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
	} {
		apply(widget("alpha", "size: 1", "color: red"), "--force-conflicts").Want(applied, "")
		hello.Kubectl(append([]string{"patch", "widget", "alpha"}, patch...)...).Want("widget.example.com/alpha patched\n", "")
		wantOwners(t, managed(hello, "alpha"))
		if t.Failed() {
			t.Fatal(name)
		}
		// The existing fields belong to a manager that cannot apply.
		apply(widget("alpha", "size: 2")).Fails(`conflict with "before-first-apply" using example.com/v1: .spec.size`)
		apply(widget("alpha", "size: 1")).Want(applied, "")
		wantOwners(t, managed(hello, "alpha"), `before-first-apply Update {"f:spec":{"f:color":{},"f:size":{}}}`, `kubectl Apply {"f:spec":{"f:size":{}}}`)
		hello.Kubectl("delete", "widget", "alpha").OK()
	}
}

// The three types of patch have the same effect on a custom kind.
func TestKubectlPatchTypes(t *testing.T) {
	hello := start(t)
	for _, kind := range []string{"strategic", "merge", "json"} {
		create(t, hello, kind)
		patch := func(color string, args ...string) harness.Result {
			t.Helper()
			body := `{"spec":{"color":"` + color + `"},"status":{"ready":true}}`
			if kind == "json" {
				body = `[{"op":"add","path":"/spec/color","value":"` + color + `"},{"op":"add","path":"/status/ready","value":true}]`
			}
			return hello.Kubectl(append([]string{"patch", "widget", kind, "--type=" + kind, "-p", body}, args...)...)
		}
		name := "widget.example.com/" + kind
		before := managed(hello, kind).OK().Stdout
		patch("red", "--dry-run=server").Want(name+" patched\n", "")
		patch("red", "--dry-run=server", "-o", "jsonpath={.spec.color}").Want("red", "")
		if after := managed(hello, kind).OK().Stdout; after != before {
			t.Errorf("a dry run changed the widget from\n%s to\n%s", before, after)
		}
		patch("red").Want(name+" patched\n", "")
		patch("red").Want(name+" patched (no change)\n", "")
		if got := field(hello, kind, ".spec") + field(hello, kind, ".status") + field(hello, kind, ".metadata.generation"); got != `{"color":"red","size":1}{}2` {
			t.Errorf("spec, status and generation are %s", got)
		}
		patch("blue", "--subresource=status").Want(name+" patched\n", "")
		patch("blue", "--subresource=status").Want(name+" patched (no change)\n", "")
		if got := field(hello, kind, ".spec.color") + field(hello, kind, ".status.ready") + field(hello, kind, ".metadata.generation"); got != "redtrue2" {
			t.Errorf("color, ready and generation are %s", got)
		}
		wantOwners(t, managed(hello, kind), `kubectl-create Update {"f:spec":{"f:size":{}}}`,
			`kubectl-patch Update {"f:spec":{"f:color":{}}}`, `kubectl-patch Update/status {"f:status":{"f:ready":{}}}`)
		hello.Kubectl("patch", "widget", kind, "--type="+kind, "-p", "{").Fails("")
	}

	// Strategic merge patches have directives, which are not stored.
	hello.Kubectl("patch", "widget", "strategic", "-p", `{"spec":{"$retainKeys":["data"],"data":"only"}}`).OK()
	hello.Kubectl("patch", "widget", "strategic", "-p", `{"metadata":{"finalizers":["example.com/a"],"labels":{"a":"b"}}}`).OK()
	hello.Kubectl("patch", "widget", "strategic", "-p", `{"metadata":{"finalizers":["example.com/b"],"labels":{"$patch":"replace","c":"d"}}}`).OK()
	hello.Kubectl("patch", "widget", "strategic", "-p", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`).OK()
	if got := field(hello, "strategic", ".spec") + field(hello, "strategic", ".metadata.finalizers") + field(hello, "strategic", ".metadata.labels"); got != `{"data":"only"}["example.com/b"]{"c":"d"}` {
		t.Errorf("spec, finalizers and labels are %s", got)
	}
	hello.Kubectl("patch", "widget", "strategic", "-p", `{"spec":{"$patch":"bogus"}}`).Fails("unknown patch type: bogus in map: map[$patch:bogus]")

	// A patch may name the state that it is for.
	for _, kind := range []string{"strategic", "merge"} {
		hello.Kubectl("patch", "widget", kind, "--type="+kind, "-p", `{"metadata":{"resourceVersion":"1"},"spec":{"size":9}}`).
			Fails("the object has been modified; please apply your changes to the latest version and try again")
	}
	hello.Kubectl("patch", "widget", "strategic", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).OK()
}

// A dry run of any verb has the same answer, and changes nothing.
func TestKubectlDryRun(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	before := managed(hello, "alpha").OK().Stdout
	dry := func(stdin string, args ...string) harness.Result {
		t.Helper()
		return hello.KubectlWith(stdin, append(args, "--dry-run=server")...)
	}
	dry(widget("beta", "size: 1"), "create", "-f", "-").Want("widget.example.com/beta created (server dry run)\n", "")
	out := dry(widget("beta", "size: 1"), "create", "-f", "-", "-o", "yaml").Contains("  generation: 1\n", "  uid: ", "  creationTimestamp: ").Stdout
	if strings.Contains(out, "resourceVersion") {
		t.Errorf("what is not stored has a version: %s", out)
	}
	dry(widget("beta", "size: 1"), "apply", "-f", "-").Want("widget.example.com/beta created (server dry run)\n", "")
	dry(widget("alpha", "size: 1"), "create", "-f", "-").Fails(`widgets.example.com "alpha" already exists`)
	dry(widget("alpha", "size: 2"), "replace", "-f", "-").Want("widget.example.com/alpha replaced (server dry run)\n", "")
	dry(widget("alpha", "size: 2"), "replace", "-f", "-", "-o", "jsonpath={.spec.size} {.metadata.generation}").Want("2 2", "")
	dry(widget("beta", "size: 2"), "replace", "-f", "-").Fails(`widgets.example.com "beta" not found`)
	dry("", "label", "widget", "alpha", "a=b").Want("widget.example.com/alpha labeled (server dry run)\n", "")
	dry("", "annotate", "widget", "alpha", "a=b").Want("widget.example.com/alpha annotated (server dry run)\n", "")
	dry("", "scale", "widget", "alpha", "--replicas=9").Want("widget.example.com/alpha scaled (server dry run)\n", "")
	dry("", "delete", "widget", "alpha").Want("widget.example.com \"alpha\" deleted from default namespace (server dry run)\n", "")
	dry("", "delete", "widgets", "--all").Want("widget.example.com \"alpha\" deleted from default namespace (server dry run)\n", "")
	if after := managed(hello, "alpha").OK().Stdout; after != before {
		t.Errorf("dry runs changed the widget from\n%s to\n%s", before, after)
	}
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/alpha\n", "")
}

func TestKubectlShowManagedFields(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	if out := hello.Kubectl("get", "widget", "alpha", "-o", "yaml").OK().Stdout; strings.Contains(out, "managedFields") {
		t.Errorf("kubectl shows managedFields unasked: %s", out)
	}
	hello.Kubectl("get", "widget", "alpha", "-o", "yaml", "--show-managed-fields").Contains(`
  managedFields:
  - apiVersion: example.com/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        f:size: {}
    manager: kubectl-create
    operation: Update
    time: "`)
}
