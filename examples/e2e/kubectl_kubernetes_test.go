package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// deployment is a manifest with one container named main and two environment variables; lines are added to the container.
func deployment(image string, lines ...string) string {
	more := ""
	for _, l := range lines {
		more += "\n        " + l
	}
	return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: ` + image + `
        env: [{name: A, value: "1"}, {name: B, value: "2"}]` + more + "\n"
}

const containers = `jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {.env[*].name};{end}`

// kubectl computes strategic merge patches for the kinds of Kubernetes. A list element is identified by its key, so that two
// independent clients can both add to a list.
func TestKubectlDeploymentPatches(t *testing.T) {
	kubectl := kubectlOn(t)
	patch := func(p string, args ...string) harness.Result {
		t.Helper()
		return kubectl("", append([]string{"patch", "deployment", "web", "-p", p}, args...)...)
	}
	has := func(want string) {
		t.Helper()
		kubectl("", "get", "deployment", "web", "-o", containers).Want(want, "")
	}
	kubectl(deployment("nginx:1"), "apply", "-f", "-").Want("deployment.apps/web created\n", "")
	patch(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`).Want("deployment.apps/web patched\n", "")
	has("side=side:1 ;main=nginx:1 A B;")
	kubectl(deployment("nginx:2"), "apply", "-f", "-").Want("deployment.apps/web configured\n", "")
	has("side=side:1 ;main=nginx:2 A B;")
	kubectl("", "set", "image", "deployment/web", "main=nginx:3").Want("deployment.apps/web image updated\n", "")
	kubectl("", "set", "env", "deployment/web", "-c", "main", "C=3", "A-").Want("deployment.apps/web env updated\n", "")
	has("side=side:1 ;main=nginx:3 B C;")
	kubectl(deployment("nginx:2"), "apply", "-f", "-").Want("deployment.apps/web configured\n", "") // back to its own values, and C is kept
	has("side=side:1 ;main=nginx:2 A B C;")
	kubectl(strings.Replace(deployment("nginx:2"), `{name: A, value: "1"}, `, "", 1), "apply", "-f", "-").OK()
	has("side=side:1 ;main=nginx:2 B C;")

	patch(`{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`).Want("deployment.apps/web patched\n", "")
	patch(`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"main"},{"name":"last"}],"containers":[{"name":"last","image":"last:1"}]}}}}`).OK()
	has("main=nginx:2 B C;last=last:1 ;")
	patch(`{"spec":{"template":{"spec":{"containers":[{"$patch":"replace"},{"name":"only","image":"only:1"}]}}}}`).OK()
	has("only=only:1 ;")
	patch(`{"spec":{"template":{"spec":{"containers":[{"name":"other","image":"other:1"}]}}}}`, "--type=merge").OK() // a merge patch replaces lists
	has("other=other:1 ;")
	patch(`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%"}}}}`).OK()
	patch(`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`).OK()
	kubectl("", "get", "deployment", "web", "-o", "jsonpath={.spec.strategy}").Want(`{"type":"Recreate"}`, "")

	status := func(condition string) {
		t.Helper()
		patch(`{"status":{"replicas":3,"conditions":[{"type":"`+condition+`","status":"True"}]}}`, "--subresource=status").Want("deployment.apps/web patched\n", "")
	}
	status("Available")
	status("Progressing")
	kubectl("", "get", "deployment", "web", "-o", "jsonpath={.status.replicas} {.status.conditions[*].type}").Want("3 Progressing Available", "")

	patch(`{"spec":{"template":{"spec":{"containers":[{"image":"nameless"}]}}}}`).Fails("map: map[image:nameless] does not contain declared merge key: name")
	patch(`{"spec":{"template":{"spec":{"containers":"x"}}}}`).Fails("The request is invalid: patch: Invalid value: ")
	kubectl("", "rollout", "restart", "deployment/web").Want("deployment.apps/web restarted\n", "")
	kubectl("", "get", "deployment", "web", "-o", "jsonpath={.spec.template.metadata.annotations}").Contains("kubectl.kubernetes.io/restartedAt")
}

// kubectl edit sends a strategic merge patch for the kinds of Kubernetes, and for others a merge patch.
func TestKubectlEditPatches(t *testing.T) {
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed 's/image: nginx:1/image: nginx:2/;s/size: 1/size: 2/' \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	kube := serveKubernetes(t)
	kubectl := harness.NewKubectl(t, kube.kubeconfig, "EDITOR="+editor)
	kubectl.Run(deployment("nginx:1"), "create", "-f", "-").OK()
	kubectl.Run("", "patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`).OK()
	edited := kubectl.Run("", "edit", "deployment", "web", "-v=8").Contains("deployment.apps/web edited\n")
	if !strings.Contains(edited.Stderr, "Content-Type: application/strategic-merge-patch+json") {
		t.Errorf("edit did not send a strategic merge patch: %s", edited)
	}
	kubectl.Run("", "get", "deployment", "web", "-o", containers).Want("side=side:1 ;main=nginx:2 A B;", "")
	kubectl.Run("", "edit", "deployment", "web").Want("", "Edit cancelled, no changes made.\n")

	hello := harness.Start(t, harness.Options{})
	create(t, hello, "alpha")
	edited = hello.KubectlEnv([]string{"EDITOR=" + editor}, "edit", "widget", "alpha", "-v=8").Contains("widget.example.com/alpha edited\n")
	if !strings.Contains(edited.Stderr, "Content-Type: application/merge-patch+json") {
		t.Errorf("edit did not send a merge patch: %s", edited)
	}
	wantOwners(t, managed(hello, "alpha"), `kubectl-edit Update {"f:spec":{"f:size":{}}}`)
}

// Server-side apply merges the kinds of Kubernetes by their list types: an element of a list has its own owners.
func TestKubectlDeploymentServerSideApply(t *testing.T) {
	kubectl := kubectlOn(t)
	apply := func(manifest string, args ...string) harness.Result {
		t.Helper()
		return kubectl(manifest, append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	}
	const done = "deployment.apps/web serverside-applied\n"
	apply(deployment("nginx:1", "ports: [{containerPort: 80}]")).Want(done, "") // the protocol is a key with a default
	managed := func() harness.Result {
		return kubectl("", "get", "deployment", "web", "-o", "json", "--show-managed-fields")
	}
	const rest = `"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":`
	wantOwners(t, managed(), `kubectl Apply {`+rest+`{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},`+
		`"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`)

	side := `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: main
        env: [{name: C, value: "3"}]
      - name: side
        image: side:1
`
	apply(side, "--field-manager=mesh").Want(done, "")
	kubectl("", "get", "deployment", "web", "-o", containers).Want("main=nginx:1 A B C;side=side:1 ;", "")
	apply(deployment("nginx:2")).Want(done, "")
	kubectl("", "get", "deployment", "web", "-o", containers).Want("main=nginx:2 A B C;side=side:1 ;", "")
	kubectl("", "get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].ports}").Want("", "")
	apply(strings.Replace(side, `value: "3"`, `value: "4"`, 1), "--field-manager=another").
		Fails("error: Apply failed with 1 conflict: conflict with \"mesh\": .spec.template.spec.containers[name=\"main\"].env[name=\"C\"].value\n" + advice)
	apply(strings.Replace(side, "  - name: side\n        image: side:1\n", "", 1), "--field-manager=mesh").OK()
	kubectl("", "get", "deployment", "web", "-o", containers).Want("main=nginx:2 A B C;", "")

	kubectl("", "scale", "deployment/web", "--replicas=5").Want("deployment.apps/web scaled\n", "")
	kubectl("", "set", "image", "deployment/web", "main=nginx:3").OK()
	apply(deployment("nginx:2")).Fails("error: Apply failed with 2 conflicts: conflicts with \"kubectl\" with subresource \"scale\" using apps/v1:\n- .spec.replicas\n" +
		"conflicts with \"kubectl-set\" using apps/v1:\n- .spec.template.spec.containers[name=\"main\"].image\n" + advice)
	apply(deployment("nginx:2"), "--force-conflicts").Want(done, "")
	kubectl("", "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}").Want("2", "")
	apply(strings.Replace(deployment("nginx:2"), `[{name: A,`, `[{name: B, value: "3"}, {name: A,`, 1)).
		Fails(`.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="B"]`)
}

func TestKubectlServicePorts(t *testing.T) {
	kubectl := kubectlOn(t)
	service := func(ports string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: dns}\nspec:\n  selector: {app: dns}\n  ports: [" + ports + "]\n"
	}
	const tcp, udp = "{name: tcp, port: 53}", "{name: udp, port: 53, protocol: UDP}"
	kubectl(service(tcp+", "+udp), "apply", "--server-side", "-f", "-").Want("service/dns serverside-applied\n", "")
	kubectl(service(udp), "apply", "--server-side", "-f", "-").Want("service/dns serverside-applied\n", "")
	kubectl("", "get", "svc", "dns", "-o", "jsonpath={.spec.ports[*].name}").Want("udp", "")
	kubectl(service(tcp), "apply", "--server-side", "-f", "-", "--field-manager=other").OK()
	kubectl("", "get", "svc", "dns", "-o", "jsonpath={.spec.ports[*].name}").Want("udp tcp", "")
}

// The output of kubectl get can be applied again: it is a v1 List.
func TestKubectlList(t *testing.T) {
	kubectl := kubectlOn(t)
	list := `{"apiVersion":"v1","kind":"List","items":[` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"x":"1"}}]}`
	kubectl(list, "create", "-f", "-").Want("configmap/a created\nconfigmap/b created\n", "")
	kubectl(list, "apply", "--server-side", "-f", "-").Want("configmap/a serverside-applied\nconfigmap/b serverside-applied\n", "")
	got := kubectl("", "get", "configmaps", "-o", "yaml").OK().Stdout
	kubectl(strings.ReplaceAll(got, `x: "1"`, `x: "2"`), "replace", "-f", "-").Want("configmap/a replaced\nconfigmap/b replaced\n", "")
	kubectl("", "get", "configmaps", "-o", "jsonpath={.items[*].data.x}").Want("2 2", "")
	kubectl(got, "replace", "-f", "-").Fails(`Operation cannot be fulfilled on configmaps "a": the object has been modified`)
}

// explain uses the same document for merge rules as server-side apply and kubectl's own patches.
func TestKubectlExplainKubernetes(t *testing.T) {
	kubectl := kubectlOn(t)
	kubectl("", "explain", "deployment.spec.template.spec.containers.ports").Contains(
		"FIELD: ports <[]ContainerPort>", "  containerPort\t<integer> -required-\n", "  protocol\t<string>\n")
	kubectl("", "explain", "deployment.metadata.finalizers").Contains("FIELD: finalizers <[]string>")
	kubectl("", "explain", "svc.spec", "--recursive").Contains("  ports\t<[]ServicePort>\n", "  selector\t<map[string]string>\n")
	kubectl("", "get", "--raw", "/openapi/v3/apis/apps/v1").Contains(
		`"x-kubernetes-list-map-keys":["containerPort","protocol"]`, `"x-kubernetes-patch-merge-key":"name"`, `"x-kubernetes-patch-strategy":"merge"`)
}
