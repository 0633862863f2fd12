package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// script is a session with kubectl that holds for the present kubectl and for those of harness.OlderReleases.
type script struct {
	name, example string
	// run uses only the server's kubectl, whose release is 1.minor.
	run func(t *testing.T, s *harness.Server, minor string)
}

var scripts = []script{
	{"apply", "hello", scriptApply},
	{"server-side apply", "hello", scriptServerSideApply},
	{"get", "hello", scriptGet},
	{"label, annotate, patch", "hello", scriptPatch},
	{"edit, replace, scale", "hello", scriptEdit},
	{"watch and wait", "hello", scriptWatch},
	{"validation and dry runs", "hello", scriptValidate},
	{"discovery and explain", "crds", scriptDiscovery},
	{"kinds of clusters", "crds", scriptCore},
	{"deletion", "crds", scriptDelete},
	{"definitions", "crds", scriptDefinitions},
	{"events, describe and refusals", "crds", scriptEvents},
}

// What TestOlderKubectl expects of older releases holds for the present kubectl.
func TestScriptsOfKubectl(t *testing.T) {
	harness.Long(t, "the scripts take 20 seconds of two processors")
	t.Parallel()
	runScripts(t, "", "37")
}

// runScripts runs each script with a server of its own and the kubectl of a release; "" means the present one.
func runScripts(t *testing.T, release, minor string) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, harness.Start(t, harness.Options{Example: s.example, Release: release}), minor)
		})
	}
}

// exits checks the exit code, stdout and stderr of a command that need not succeed.
func exits(t *testing.T, r harness.Result, code int, stdout, stderr string) {
	t.Helper()
	if r.Code != code || r.Stdout != stdout || r.Stderr != stderr {
		t.Errorf("exit code %d, want %d, stdout %q and stderr %q: %s", r.Code, code, stdout, stderr, r)
	}
}

// differs checks that kubectl diff found a difference that contains all parts.
func differs(t *testing.T, r harness.Result, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if r.Code != 1 || !strings.Contains(r.Stdout, p) {
			t.Errorf("exit code %d, want 1 and the difference %q: %s", r.Code, p, r)
		}
	}
}

func scriptApply(t *testing.T, s *harness.Server, _ string) {
	apply := func(manifest string, args ...string) harness.Result {
		t.Helper()
		return s.KubectlWith(manifest, append([]string{"apply", "-f", "-"}, args...)...)
	}
	diff := func(manifest string) harness.Result { t.Helper(); return s.KubectlWith(manifest, "diff", "-f", "-") }
	one := widget("alpha", "size: 1", "color: red")
	differs(t, diff(one), "+  name: alpha\n", "+  color: red\n+  size: 1\n")
	apply(one).Want("widget.example.com/alpha created\n", "")
	diff(one).Want("", "")
	apply(one).Want("widget.example.com/alpha unchanged\n", "")
	differs(t, diff(widget("alpha", "size: 2")), "-  color: red\n-  size: 1\n+  size: 2\n", "-  generation: 1\n+  generation: 2\n")
	apply(widget("alpha", "size: 2"), "--dry-run=server").Want("widget.example.com/alpha configured (server dry run)\n", "")
	if got := field(s, "alpha", ".spec"); got != `{"color":"red","size":1}` {
		t.Errorf("the dry runs and the diff left the spec %s", got)
	}

	// A field of another client stays; one that is no longer in the manifest goes.
	s.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"data":"theirs"}}`).Want("widget.example.com/alpha patched\n", "")
	apply(widget("alpha", "size: 2")).Want("widget.example.com/alpha configured\n", "")
	if got := field(s, "alpha", ".spec"); got != `{"data":"theirs","size":2}` {
		t.Errorf("the spec is %s", got)
	}
	s.Kubectl("apply", "view-last-applied", "widget", "alpha", "-o", "json").Contains(`"size": 2`)
	wantOwners(t, managed(s, "alpha"), `kubectl-patch Update {"f:spec":{"f:data":{}}}`,
		`kubectl-client-side-apply Update {"f:metadata":{"f:annotations":{".":{},"f:`+lastApplied+`":{}}},"f:spec":{"f:size":{}}}`)

	s.KubectlWith(widget("beta", "size: 1"), "create", "-f", "-").OK()
	r := apply(widget("beta", "size: 1")).OK()
	if r.Stdout != "widget.example.com/beta configured\n" || !strings.Contains(r.Stderr, "is missing the "+lastApplied+" annotation which is required by kubectl apply") {
		t.Errorf("want a warning of the missing annotation: %s", r)
	}
	two := labelled("gamma", "set", "a") + "---\n" + labelled("delta", "set", "a")
	apply(two).Want("widget.example.com/gamma created\nwidget.example.com/delta created\n", "")
	apply(labelled("gamma", "set", "a"), "--prune", "-l", "set=a", "--prune-allowlist=example.com/v1/Widget").
		Contains("widget.example.com/gamma unchanged\n", "widget.example.com/delta pruned\n")
	s.KubectlWith(two, "delete", "-f", "-", "--ignore-not-found").Want(deleted("gamma"), "")
}

func scriptServerSideApply(t *testing.T, s *harness.Server, _ string) {
	apply := applier(t, s)
	one := widget("alpha", "size: 1", "color: red")
	apply(one, "--dry-run=server").Want("widget.example.com/alpha serverside-applied (server dry run)\n", "")
	exits(t, s.Kubectl("get", "widget", "alpha"), 1, "", `Error from server (NotFound): widgets.example.com "alpha" not found`+"\n")
	apply(one).Want(applied, "")
	wantOwners(t, managed(s, "alpha"), `kubectl Apply {"f:spec":{"f:color":{},"f:size":{}}}`)
	before := managed(s, "alpha").OK().Stdout
	second := time.Now().Unix()
	harness.Eventually(t, "the next second has begun", func() bool { return time.Now().Unix() > second })
	apply(one).Want(applied, "")
	if after := managed(s, "alpha").OK().Stdout; after != before {
		t.Errorf("applying the same changed the widget from\n%s to\n%s", before, after)
	}

	r := apply(widget("alpha", "size: 3", "color: blue"), "--field-manager=other")
	if want := "error: Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .spec.color\n- .spec.size\n" + advice; r.Code != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, want) {
		t.Errorf("want exit code 1 and stderr %q: %s", want, r)
	}
	diff := func(manifest string, args ...string) harness.Result {
		t.Helper()
		return s.KubectlWith(manifest, append([]string{"diff", "--server-side", "-f", "-"}, args...)...)
	}
	diff(one).Want("", "")
	differs(t, diff(widget("alpha", "size: 2")), "-  color: red\n-  size: 1\n+  size: 2\n")
	if r := diff(widget("alpha", "size: 2"), "--field-manager=other"); r.Code != 2 ||
		!strings.Contains(r.Stderr, `Error from server (Conflict): Apply failed with 1 conflict: conflict with "kubectl": .spec.size`) {
		t.Errorf("exit code %d, want 2 and the conflict: %s", r.Code, r)
	}
	apply(widget("alpha", "size: 3"), "--field-manager=other", "--force-conflicts").Want(applied, "")
	wantOwners(t, managed(s, "alpha"), `kubectl Apply {"f:spec":{"f:color":{}}}`, `other Apply {"f:spec":{"f:size":{}}}`)
	apply(widget("alpha", "replicas: 1")).Want(applied, "")
	if got := field(s, "alpha", ".spec"); got != `{"replicas":1,"size":3}` {
		t.Errorf("the spec is %s", got)
	}
	s.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"replicas":2}}`).OK()
	apply(widget("alpha", "replicas: 1")).Fails(`Apply failed with 1 conflict: conflict with "kubectl-patch" using example.com/v1: .spec.replicas`)
	ready := "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: alpha\nstatus:\n  ready: true\n"
	apply(ready, "--subresource=status").Want(applied, "")
	if got := field(s, "alpha", ".status"); got != `{"ready":true}` {
		t.Errorf("the status is %s", got)
	}

	// From client-side apply to server-side apply and back.
	clientSide := func(spec ...string) harness.Result {
		t.Helper()
		return s.KubectlWith(widget("beta", spec...), "apply", "-f", "-")
	}
	clientSide("size: 1", "color: red").Want("widget.example.com/beta created\n", "")
	apply(widget("beta", "size: 2", "color: red")).Want(strings.Replace(applied, "alpha", "beta", 1), "")
	wantOwners(t, managed(s, "beta"), `kubectl Apply {"f:spec":{"f:color":{},"f:size":{}}}`, `kubectl-last-applied Apply {"f:metadata":{"f:annotations":{"f:`+lastApplied+`":{}}}}`)
	clientSide("size: 3").Want("widget.example.com/beta configured\n", "")
	if got := field(s, "beta", ".spec"); got != `{"size":3}` {
		t.Errorf("the spec is %s", got)
	}
}

func scriptGet(t *testing.T, s *harness.Server, _ string) {
	get := func(args ...string) harness.Result { t.Helper(); return s.Kubectl(append([]string{"get"}, args...)...) }
	get("widgets").Want("", "No resources found in default namespace.\n")
	s.KubectlWith(widget("alpha", "size: 4", "color: red", "replicas: 2"), "create", "-f", "-").Want("widget.example.com/alpha created\n", "")
	s.KubectlWith(widget("beta", "size: 1"), "create", "-f", "-", "-o", "name").Want("widget.example.com/beta\n", "")
	s.KubectlWith(widget("gamma", "size: 3"), "create", "-n", "other", "-f", "-").OK()
	for _, alias := range []string{"widgets", "widget", "wd", "widgets.v1.example.com", "all"} {
		prints(t, get(alias), "NAME SIZE COLOR READY AGE", "alpha 4 red false AGE", "beta 1 false AGE")
	}
	prints(t, get("wd", "-o", "wide", "--sort-by=.spec.size"), "NAME SIZE COLOR REPLICAS READY AGE", "beta 1 0 false AGE", "alpha 4 red 2 false AGE")
	prints(t, get("wd", "-A", "--show-labels"), "NAMESPACE NAME SIZE COLOR READY AGE LABELS", "default alpha 4 red false AGE <none>", "default beta 1 false AGE <none>", "other gamma 3 false AGE <none>")
	get("wd", "-o", "name").Want("widget.example.com/alpha\nwidget.example.com/beta\n", "")
	get("wd", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.size}{"\n"}{end}`).Want("alpha=4\nbeta=1\n", "")
	get("wd", "-o", "custom-columns=NAME:.metadata.name,SIZE:.spec.size,COLOR:.spec.color").Want("NAME    SIZE   COLOR\nalpha   4      red\nbeta    1      <none>\n", "")
	get("wd", "-o", "go-template={{range .items}}{{.metadata.name}} {{end}}").Want("alpha beta ", "")
	get("wd", "--field-selector", "metadata.name=beta", "-o", "name").Want("widget.example.com/beta\n", "")
	var one map[string]any
	for _, form := range []string{"yaml", "json"} {
		parse(t, get("widget", "alpha", "-o", form).OK().Stdout, &one)
		wantWidget(t, one, "alpha", map[string]any{"color": "red", "replicas": 2.0, "size": 4.0})
	}
	var list struct {
		Kind  string
		Items []map[string]any
	}
	if parse(t, get("wd", "-o", "yaml").OK().Stdout, &list); list.Kind != "List" || len(list.Items) != 2 {
		t.Errorf("want a List of two items, got %v", list)
	}
	if r := get("wd", "-A", "--chunk-size=1", "-o", "name", "-v=6").OK(); strings.Count(r.Stdout, "\n") != 3 || strings.Count(r.Stderr, "continue=") != 2 {
		t.Errorf("want three widgets in three pages: %s", r)
	}
	exits(t, get("widget", "delta"), 1, "", `Error from server (NotFound): widgets.example.com "delta" not found`+"\n")
	exits(t, get("gadgets"), 1, "", `error: the server doesn't have a resource type "gadgets"`+"\n")
	get("wd", "--field-selector", "spec.size=1").Fails(`"spec.size" is not a known field selector: only "metadata.name", "metadata.namespace"`)
	get("--raw", "/readyz").Want("ok", "")
	get("--raw", "/apis/example.com/v1/namespaces/default/widgets").Contains(`"kind":"WidgetList"`, `"name":"alpha"`)
}

func scriptPatch(t *testing.T, s *harness.Server, _ string) {
	create(t, s, "alpha", "beta")
	for _, c := range []struct{ command, stdout string }{
		{"label widget alpha tier=front", "widget.example.com/alpha labeled\n"},
		{"label widget alpha tier=front", "widget.example.com/alpha not labeled\n"},
		{"label widget alpha tier=back --overwrite", "widget.example.com/alpha labeled\n"},
		{"label widgets --all seen=yes", "widget.example.com/alpha labeled\nwidget.example.com/beta labeled\n"},
		{"get widgets -l tier=back,seen=yes -o name", "widget.example.com/alpha\n"},
		{"label widget alpha tier-", "widget.example.com/alpha unlabeled\n"},
		{"annotate widget alpha note=first", "widget.example.com/alpha annotated\n"},
		{"annotate widget alpha note=second --overwrite", "widget.example.com/alpha annotated\n"},
		{"annotate widget alpha --list", "note=second\n"},
		{"annotate widget alpha note-", "widget.example.com/alpha annotated\n"},
	} {
		s.Kubectl(strings.Fields(c.command)...).Want(c.stdout, "")
	}
	s.Kubectl("label", "widget", "beta", "seen=no").Fails("already has a value (yes), and --overwrite is false")
	patch := func(kind, p string, args ...string) harness.Result {
		t.Helper()
		return s.Kubectl(append([]string{"patch", "widget", "alpha", "--type=" + kind, "-p", p}, args...)...)
	}
	const patched, unchanged = "widget.example.com/alpha patched\n", "widget.example.com/alpha patched (no change)\n"
	patch("merge", `{"spec":{"size":2,"color":"red"}}`).Want(patched, "")
	patch("merge", `{"spec":{"size":2}}`).Want(unchanged, "")
	patch("strategic", `{"spec":{"color":null},"metadata":{"labels":{"a":"b"}}}`).Want(patched, "")
	patch("strategic", `{"spec":{"$patch":"replace","size":2}}`).Want(unchanged, "")
	patch("json", `[{"op":"test","path":"/spec/size","value":2},{"op":"add","path":"/spec/data","value":"x"}]`).Want(patched, "")
	patch("json", `[{"op":"test","path":"/spec/size","value":1}]`).Fails("the server rejected our request due to an error in our request")
	patch("merge", `{"spec":{"size":"big"}}`).Fails("The request is invalid: patch: Invalid value: ")
	patch("merge", `{"spec":{"sise":1}}`).Want(unchanged, "Warning: unknown field \"spec.sise\"\n")
	patch("merge", `{"status":{"ready":true}}`).Want(unchanged, "")
	patch("merge", `{"status":{"ready":true},"spec":{"size":7}}`, "--subresource=status").Want(patched, "")
	if got := field(s, "alpha", ".spec") + field(s, "alpha", ".metadata.labels") + field(s, "alpha", ".status.ready"); got != `{"data":"x","size":2}{"a":"b","seen":"yes"}true` {
		t.Errorf("spec, labels and readiness are %s", got)
	}
	s.Kubectl("patch", "widget", "delta", "--type=merge", "-p", `{}`).Fails(`Error from server (NotFound): widgets.example.com "delta" not found`)
}

func scriptEdit(t *testing.T, s *harness.Server, _ string) {
	s.KubectlWith(widget("alpha", "size: 1", "replicas: 1"), "create", "-f", "-").OK()
	s.KubectlEnv(sed(s, "s/size: 1/size: 5/"), "edit", "widget", "alpha").Want("widget.example.com/alpha edited\n", "")
	s.KubectlEnv(sed(s, "s/nothing/something/"), "edit", "widget", "alpha").Want("", "Edit cancelled, no changes made.\n")
	s.KubectlEnv(sed(s, "s/ready: false/ready: true/;s/^metadata:/metadata:\\n  labels: {a: b}/"), "edit", "widget", "alpha", "-o", "yaml").Contains("size: 5", "a: b")
	if got := field(s, "alpha", ".spec") + field(s, "alpha", ".metadata.labels"); got != `{"replicas":1,"size":5}{"a":"b"}` {
		t.Errorf("spec and labels are %s", got)
	}
	wantOwners(t, managed(s, "alpha"), `kubectl-create Update {"f:spec":{"f:replicas":{}}}`, `kubectl-edit Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:size":{}}}`)

	s.KubectlWith(widget("alpha", "size: 2", "replicas: 1"), "replace", "-f", "-").Want("widget.example.com/alpha replaced\n", "")
	stale := strings.Replace(widget("alpha", "size: 3"), "  name:", "  resourceVersion: \"1\"\n  name:", 1)
	s.KubectlWith(stale, "replace", "-f", "-").Fails("Error from server (Conflict): ", "the object has been modified; please apply your changes to the latest version and try again")
	uid := field(s, "alpha", ".metadata.uid")
	s.KubectlWith(widget("alpha", "size: 4", "replicas: 1"), "replace", "--force", "-f", "-").Want(deleted("alpha")+"widget.example.com/alpha replaced\n", "")
	if field(s, "alpha", ".metadata.uid") == uid {
		t.Error("replace --force kept the uid")
	}

	const scaled = "widget.example.com/alpha scaled\n"
	s.Kubectl("scale", "widget", "alpha", "--replicas=3").Want(scaled, "")
	s.Kubectl("scale", "widget", "alpha", "--current-replicas=3", "--replicas=5").Want(scaled, "")
	s.Kubectl("scale", "widget", "alpha", "--current-replicas=3", "--replicas=6").Fails("Expected replicas to be 3, was 5")
	s.Kubectl("scale", "widget", "alpha", "--replicas=7", "--dry-run=server").Want("widget.example.com/alpha scaled (server dry run)\n", "")
	s.Kubectl("get", "widget", "alpha", "--subresource=scale", "-o", "jsonpath={.apiVersion} {.spec.replicas}").Want("autoscaling/v1 5", "")
	s.Kubectl("patch", "widget", "alpha", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":-1}}`).Fails("spec.replicas: Invalid value: -1: ")
	wantOwners(t, managed(s, "alpha"), `kubectl-replace Update {"f:spec":{"f:size":{}}}`, `kubectl Update/scale {"f:spec":{"f:replicas":{}}}`)
}

func scriptWatch(t *testing.T, s *harness.Server, _ string) {
	create(t, s, "alpha")
	events := s.Begin("get", "widgets", "-w", "--output-watch-events", "-o", "custom-columns=EVENT:.type,NAME:.object.metadata.name,SIZE:.object.spec.size", "--no-headers")
	table := s.Begin("get", "widgets", "-w", "--no-headers")
	one := s.Begin("get", "widget", "alpha", "-w", "-o", `jsonpath={.spec.size}{"\n"}`)
	shows := func(p *harness.Process, what string, want string) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("%s shows %q", what, want), func() bool {
			if p.Exited() {
				t.Fatalf("the watch ended; stdout:\n%s\nstderr:\n%s", p.Stdout, p.Stderr)
			}
			return ages.ReplaceAllString(squeeze(p.Stdout.String()), "AGE") == want
		})
	}
	shows(events, "the watch of events", "ADDED alpha 1\n")
	shows(table, "the table", "alpha 1 false AGE\n")
	shows(one, "the watch of alpha", "1\n")
	forReady := s.Begin("wait", "widget/alpha", "--for=jsonpath={.status.ready}=true", "--timeout=50s")
	forBeta := s.Begin("wait", "widget/beta", "--for=create", "--timeout=50s")
	s.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"size":2}}`).OK()
	shows(one, "the watch of alpha", "1\n2\n")
	create(t, s, "beta")
	s.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":true}}`).OK()
	shows(events, "the watch of events", "ADDED alpha 1\nMODIFIED alpha 2\nADDED beta 1\nMODIFIED alpha 2\n")
	ends := func(p *harness.Process, want string) {
		t.Helper()
		if code := p.Wait(); code != 0 || p.Stdout.String() != want || p.Stderr.String() != "" {
			t.Errorf("it ended with %d, stdout %q and stderr %q; want stdout %q", code, p.Stdout, p.Stderr, want)
		}
	}
	ends(forReady, "widget.example.com/alpha condition met\n")
	ends(forBeta, "widget.example.com/beta condition met\n")
	forGone := s.Begin("wait", "widget/alpha", "--for=delete", "--timeout=50s")
	s.Kubectl("wait", "widget/alpha", "--for=jsonpath={.spec.size}=2", "--timeout=50s").Want("widget.example.com/alpha condition met\n", "")
	s.Kubectl("delete", "widget", "alpha").Want(deleted("alpha"), "")
	if code := forGone.Wait(); code != 0 {
		t.Errorf("wait --for=delete ended with %d: %s", code, forGone.Stderr)
	}
	shows(events, "the watch of events", "ADDED alpha 1\nMODIFIED alpha 2\nADDED beta 1\nMODIFIED alpha 2\nDELETED alpha 2\n")
	shows(table, "the table", "alpha 1 false AGE\nalpha 2 false AGE\nbeta 1 false AGE\nalpha 2 true AGE\nalpha 2 true AGE\n")
	exits(t, s.Kubectl("wait", "widget/beta", "--for=delete", "--timeout=1s"), 1, "", "error: timed out waiting for the condition on widgets/beta\n")
	s.Kubectl("wait", "widget/delta", "--for=jsonpath={.spec.size}=2", "--timeout=1s").Fails(`Error from server (NotFound): widgets.example.com "delta" not found`)

	// The watches end with the server, without an error.
	s.Stop()
	for _, p := range []*harness.Process{events, table, one} {
		if code := p.Wait(); code != 0 || p.Stderr.String() != "" {
			t.Errorf("a watch ended with %d: %s", code, p.Stderr)
		}
	}
}

func scriptValidate(t *testing.T, s *harness.Server, _ string) {
	const unknown = `unknown field "spec.sise"`
	sise := func(name string, args ...string) harness.Result {
		t.Helper()
		return s.KubectlWith(widget(name, "sise: 4", "size: 2"), append(args, "-f", "-")...)
	}
	for _, command := range []string{"create", "apply"} {
		exits(t, sise("alpha", command), 1, "", `Error from server (BadRequest): error when creating "STDIN": Widget in version "v1" cannot be handled as a Widget: strict decoding error: `+unknown+"\n")
		for validate, stderr := range map[string]string{"warn": "Warning: " + unknown + "\n", "ignore": "", "false": ""} {
			name := command + "-" + validate
			sise(name, command, "--validate="+validate).Want("widget.example.com/"+name+" created\n", stderr)
		}
	}
	sise("alpha", "apply", "--server-side").Fails("failed to create typed patch object (default/alpha; example.com/v1, Kind=Widget): .spec.sise: field not declared in schema")
	s.KubectlWith(widget("alpha", "size: many"), "create", "-f", "-").Fails("Error from server (BadRequest)")
	s.KubectlWith(widget("alpha", "size: -1"), "create", "-f", "-").Fails(`The Widget "alpha" is invalid: spec.size: Invalid value: -1`)
	s.KubectlWith(widget("Alpha", "size: 1"), "create", "-f", "-").Fails(`The Widget "Alpha" is invalid: metadata.name: Invalid value: "Alpha": a lowercase RFC 1123 subdomain`)

	create(t, s, "alpha")
	before := managed(s, "alpha").OK().Stdout
	s.KubectlWith(widget("beta", "size: 1"), "create", "-f", "-", "--dry-run=server").Want("widget.example.com/beta created (server dry run)\n", "")
	s.KubectlWith(widget("beta", "size: 1"), "create", "-f", "-", "--dry-run=client").Want("widget.example.com/beta created (dry run)\n", "")
	s.KubectlWith(widget("alpha", "size: 2"), "replace", "-f", "-", "--dry-run=server").Want("widget.example.com/alpha replaced (server dry run)\n", "")
	s.KubectlWith(widget("alpha", "size: 2"), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", "--dry-run=server").
		Want("widget.example.com/alpha serverside-applied (server dry run)\n", "")
	s.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"size":2}}`, "--dry-run=server", "-o", "jsonpath={.spec.size}").Want("2", "")
	s.Kubectl("label", "widget", "alpha", "a=b", "--dry-run=server").Want("widget.example.com/alpha labeled (server dry run)\n", "")
	s.Kubectl("annotate", "widget", "alpha", "a=b", "--dry-run=server").Want("widget.example.com/alpha annotated (server dry run)\n", "")
	s.Kubectl("delete", "widget", "alpha", "--dry-run=server").Want(strings.TrimSuffix(deleted("alpha"), "\n")+" (server dry run)\n", "")
	if after := managed(s, "alpha").OK().Stdout; after != before {
		t.Errorf("dry runs changed the widget from\n%s to\n%s", before, after)
	}
	s.KubectlWith(widget("beta", "size: -1"), "create", "-f", "-", "--dry-run=server").Fails(`The Widget "beta" is invalid: spec.size: Invalid value: -1`)
	s.Kubectl("get", "widget", "beta").Fails("NotFound")
}

func scriptDiscovery(t *testing.T, s *harness.Server, minor string) {
	defineBoats(t, s)
	resources := func(args ...string) harness.Result {
		t.Helper()
		return s.Kubectl(append([]string{"api-resources"}, args...)...)
	}
	resources("--api-group=sea.example.com").Want("NAME    SHORTNAMES   APIVERSION           NAMESPACED   KIND\nboats   bt           sea.example.com/v1   true         Boat\n", "")
	prints(t, resources("--api-group=sea.example.com", "--no-headers", "-o", "wide"), "boats bt sea.example.com/v1 true Boat delete,deletecollection,get,list,patch,create,update,watch all")
	resources("--api-group=", "-o", "name").Contains("configmaps\n", "events\n", "namespaces\n", "secrets\n")
	resources("--namespaced=false", "-o", "name").Contains("namespaces\n", "customresourcedefinitions.apiextensions.k8s.io\n")
	resources("--categories=all", "-o", "name").Want("boats.sea.example.com\n", "")
	s.Kubectl("api-versions").Contains("apiextensions.k8s.io/v1\n", "coordination.k8s.io/v1\n", "sea.example.com/v1\n", "v1\n")

	explain := func(args ...string) harness.Result {
		t.Helper()
		return s.Kubectl(append([]string{"explain"}, args...)...)
	}
	explain("configmaps.data").Want("KIND:       ConfigMap\nVERSION:    v1\n\nFIELD: data <map[string]string>\n\n\nDESCRIPTION:\n"+
		"    Data contains the configuration data. Each key must consist of alphanumeric\n    characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use\n"+
		"    the BinaryData field. The keys stored in Data must not overlap with the keys\n    in the BinaryData field, this is enforced during validation process.\n    \n\n", "")
	explain("configmaps", "--recursive").Contains("  data\t<map[string]string>\n  immutable\t<boolean>\n  kind\t<string>\n" + metadataFields)
	explain("ns.status.conditions").Contains("FIELD: conditions <[]NamespaceCondition>\n", "  status\t<string> -required-\n")
	explain("lease.spec.holderIdentity").Contains("GROUP:      coordination.k8s.io\nKIND:       Lease\nVERSION:    v1\n", "FIELD: holderIdentity <string>\n")
	explain("crd.spec.versions.subresources").Contains("FIELD: subresources <CustomResourceSubresources>\n", "  scale\t<CustomResourceSubresourceScale>\n")
	explain("boats").Contains("GROUP:      sea.example.com\nKIND:       Boat\nVERSION:    v1\n", "    Boat is a vessel with sails.\n", "  spec\t<Object> -required-\n", "  status\t<Object>\n")
	explain("bt.spec.color").Want("GROUP:      sea.example.com\nKIND:       Boat\nVERSION:    v1\n\nFIELD: color <string>\nENUM:\n    red\n    white\n    blue\n\nDESCRIPTION:\n    Color of the hull.\n    \n\n", "")
	explain("boats", "--recursive", "--api-version=sea.example.com/v1").Contains("    crew\t<[]Object>\n      name\t<string> -required-\n      rank\t<string>\n", "    sails\t<integer>\n")
	explain("boats", "--output=plaintext-openapiv2").Contains("KIND:     Boat\nVERSION:  sea.example.com/v1\n")
	exits(t, explain("boats.spec.mast"), 1, "GROUP:      sea.example.com\nKIND:       Boat\nVERSION:    v1\n\n", "error: field \"mast\" does not exist\n")
	exits(t, explain("gadgets"), 1, "", "the server doesn't have a resource type \"gadgets\"\n")
	exits(t, explain("boats", "--api-version=sea.example.com/v2"), 1, "", "error: couldn't find resource for \"sea.example.com/v2, Resource=boats\"\n")

	// kubectl warns if it is older than the server by two releases or more.
	warning := ""
	if minor == "35" {
		warning = "Warning: version difference between client (1.35) and server (1.37) exceeds the supported minor version skew of +/-1\n"
	}
	r := s.Kubectl("version").OK()
	if !strings.HasPrefix(r.Stdout, "Client Version: v1."+minor+".") || !strings.HasSuffix(r.Stdout, "\nServer Version: v1.37.0+keelson\n") || r.Stderr != warning {
		t.Errorf("want a client of 1.%s and the warning %q: %s", minor, warning, r)
	}
}

func scriptCore(t *testing.T, s *harness.Server, _ string) {
	for _, c := range []struct{ command, stdout string }{
		{"create namespace team", "namespace/team created\n"},
		{"create configmap conf -n team --from-literal=a=1 --from-literal=b=2", "configmap/conf created\n"},
		{"create secret generic key -n team --from-literal=password=open", "secret/key created\n"},
		{"get secret key -n team -o jsonpath={.type},{.data.password}", "Opaque,b3Blbg=="},
		{"get namespaces -o name", "namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\nnamespace/team\n"},
		{"get cm,secrets -n team -o name", "configmap/conf\nsecret/key\n"},
		{"patch cm conf -n team --type=strategic --patch={\"data\":{\"a\":null,\"c\":\"3\"}}", "configmap/conf patched\n"},
		{"get cm conf -n team -o jsonpath={.data}", `{"b":"2","c":"3"}`},
		{"label namespace team stage=test", "namespace/team labeled\n"},
		{"get ns -l stage=test -o name", "namespace/team\n"},
	} {
		s.Kubectl(strings.Fields(c.command)...).Want(c.stdout, "")
	}
	prints(t, s.Kubectl("get", "cm,secrets", "-n", "team"), "NAME DATA AGE", "configmap/conf 2 AGE", "", "NAME TYPE DATA AGE", "secret/key Opaque 1 AGE")
	prints(t, s.Kubectl("get", "ns", "team"), "NAME STATUS AGE", "team Active AGE")
	s.Kubectl("create", "configmap", "conf", "-n", "none", "--from-literal=a=1").Fails(`error: failed to create configmap: namespaces "none" not found`)
	lease := "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: lead, namespace: team}\nspec: {holderIdentity: me, leaseDurationSeconds: 15}\n"
	s.KubectlWith(lease, "apply", "-f", "-").Want("lease.coordination.k8s.io/lead created\n", "")
	s.KubectlWith(lease, "apply", "--server-side", "-f", "-").Want("lease.coordination.k8s.io/lead serverside-applied\n", "")
	prints(t, s.Kubectl("get", "leases", "-n", "team"), "NAME HOLDER AGE", "lead me AGE")

	fixed := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\nimmutable: true\ndata: {a: %q}\n"
	s.KubectlWith(fmt.Sprintf(fixed, "1"), "apply", "-f", "-").Want("configmap/fixed created\n", "")
	s.KubectlWith(fmt.Sprintf(fixed, "2"), "apply", "-f", "-").Fails(`The ConfigMap "fixed" is invalid: data: Forbidden: field is immutable when ` + "`immutable`" + ` is set`)
	s.KubectlWith(strings.Replace(fmt.Sprintf(fixed, "1"), "\ndata:", "\ndate:", 1), "create", "-f", "-").Fails(`strict decoding error: unknown field "date"`)

	s.Kubectl("delete", "namespace", "team").Want("namespace \"team\" deleted\n", "")
	s.Kubectl("get", "cm,secrets,leases", "-n", "team").Want("", "No resources found in team namespace.\n")
	s.Kubectl("delete", "namespace", "default").Fails(`Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted`)
}

func scriptDelete(t *testing.T, s *harness.Server, _ string) {
	conf := func(names ...string) {
		t.Helper()
		for _, n := range names {
			s.Kubectl("create", "configmap", n, "--from-literal=a=1").Want("configmap/"+n+" created\n", "")
		}
	}
	gone := func(names ...string) (out string) {
		for _, n := range names {
			out += fmt.Sprintf("configmap %q deleted from default namespace\n", n)
		}
		return out
	}
	owned := func(name, owner string, block bool) {
		t.Helper()
		uid := s.Kubectl("get", "cm", owner, "-o", "jsonpath={.metadata.uid}").OK().Stdout
		s.Kubectl("patch", "cm", name, "--type=merge", "-p", fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":%t}]}}`, owner, uid, block)).OK()
	}
	patch := func(name, finalizers string) {
		t.Helper()
		s.Kubectl("patch", "cm", name, "--type=merge", "-p", `{"metadata":{"finalizers":`+finalizers+`}}`).Want("configmap/"+name+" patched\n", "")
	}
	conf("a", "b", "c", "d")
	s.Kubectl("delete", "cm", "a").Want(gone("a"), "")
	exits(t, s.Kubectl("delete", "cm", "a"), 1, "", "Error from server (NotFound): configmaps \"a\" not found\n")
	s.Kubectl("delete", "cm", "a", "--ignore-not-found").Want("", "")
	s.Kubectl("label", "cm", "b", "d", "old=yes").OK()
	s.Kubectl("delete", "cm", "-l", "old=yes", "--now").Want(gone("b", "d"), "")
	s.Kubectl("delete", "cm", "-l", "old=yes").Want("No resources found\n", "")
	s.Kubectl("delete", "cm", "--all", "--wait=false").Want(gone("c"), "")

	// A finalizer holds an object, and kubectl waits for it.
	conf("held")
	patch("held", `["example.com/hold"]`)
	waiting := s.Begin("delete", "cm", "held")
	harness.Eventually(t, "held is being deleted", func() bool {
		return s.Kubectl("get", "cm", "held", "-o", "jsonpath={.metadata.deletionTimestamp}").OK().Stdout != ""
	})
	s.Kubectl("patch", "cm", "held", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`).
		Fails("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted")
	exits(t, s.Kubectl("delete", "cm", "held", "--timeout=1s"), 1, gone("held"), "error: timed out waiting for the condition on configmaps/held\n")
	if waiting.Exited() {
		t.Error("kubectl delete did not wait for the finalizer")
	}
	patch("held", "null")
	if code := waiting.Wait(); code != 0 || waiting.Stdout.String() != gone("held") {
		t.Errorf("delete ended with %d: %s%s", code, waiting.Stdout, waiting.Stderr)
	}

	// The garbage collector deletes what an owner leaves, before it, after it, or not.
	conf("front", "front-child", "back", "back-child", "parent", "orphan")
	owned("front-child", "front", true)
	owned("back-child", "back", false)
	owned("orphan", "parent", false)
	patch("front-child", `["example.com/hold"]`)
	foreground := s.Begin("delete", "cm", "front", "--cascade=foreground")
	harness.Eventually(t, "the dependent of front is being deleted", func() bool {
		return s.Kubectl("get", "cm", "front-child", "-o", "jsonpath={.metadata.deletionTimestamp}").OK().Stdout != ""
	})
	s.Kubectl("get", "cm", "front", "-o", "jsonpath={.metadata.finalizers}").Want(`["foregroundDeletion"]`, "")
	patch("front-child", "null")
	if code := foreground.Wait(); code != 0 || foreground.Stdout.String() != gone("front") {
		t.Errorf("delete --cascade=foreground ended with %d: %s%s", code, foreground.Stdout, foreground.Stderr)
	}
	s.Kubectl("delete", "cm", "back", "--cascade=background").Want(gone("back"), "")
	s.Kubectl("wait", "--for=delete", "cm/back-child", "--timeout=50s").OK()
	s.Kubectl("delete", "cm", "parent", "--cascade=orphan").Want(gone("parent"), "")
	s.Kubectl("get", "cm", "-o", `jsonpath={.items[*]['metadata.name','metadata.ownerReferences']}`).Want("orphan", "")
}

func scriptDefinitions(t *testing.T, s *harness.Server, _ string) {
	const boats = "boats.sea.example.com"
	defineBoats(t, s)
	s.Kubectl("get", "crds", "-o", "custom-columns=N:.metadata.name,V:.status.storedVersions[0],K:.status.acceptedNames.kind", "--no-headers").Want(boats+"   v1    Boat\n", "")
	s.KubectlWith(boat("a", "color: red"), "create", "-f", "-").Want("boat.sea.example.com/a created\n", "")
	s.KubectlWith(boat("b", "color: blue"), "apply", "-f", "-").Want("boat.sea.example.com/b created\n", "")
	s.KubectlWith(boat("b", "color: blue"), "apply", "-f", "-").Want("boat.sea.example.com/b unchanged\n", "")
	s.KubectlWith(boat("b", "color: red"), "apply", "-f", "-", "--dry-run=client").Want("boat.sea.example.com/b configured (dry run)\n", "")
	s.KubectlWith(boat("b", "color: white"), "apply", "--server-side", "--field-manager=mate", "-f", "-").
		Fails(`Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using sea.example.com/v1: .spec.color`)
	crewed := func(manager, name string) {
		t.Helper()
		s.KubectlWith(boat("crewed", "crew: [{name: "+name+"}]"), "apply", "--server-side", "--field-manager="+manager, "-f", "-").Want("boat.sea.example.com/crewed serverside-applied\n", "")
	}
	crewed("kubectl", "ann")
	crewed("mate", "bob")
	s.Kubectl("get", "boat", "crewed", "-o", "jsonpath={.spec.crew[*].name} {.spec.sails}").Want("ann bob 1", "")
	s.Kubectl("patch", "boat", "a", "-p", `{"spec":{"sails":4}}`).Fails("application/strategic-merge-patch+json is not supported by sea.example.com/v1, Kind=Boat: ")
	s.Kubectl("patch", "boat", "a", "--type=merge", "-p", `{"spec":{"port":"away"}}`).Want("boat.sea.example.com/a patched\n", "")
	s.Kubectl("scale", "boat", "a", "--replicas=5").Want("boat.sea.example.com/a scaled\n", "")
	s.Kubectl("scale", "boat", "a", "--replicas=10").Fails("spec.sails: Invalid value: 10")
	s.KubectlWith(boat("c", "color: green"), "create", "-f", "-").Fails(`The Boat "c" is invalid: spec.color: Unsupported value: "green": supported values: "red", "white", "blue"`)
	s.KubectlWith(boat("c", "colour: red"), "create", "-f", "-").Fails(`strict decoding error: unknown field "spec.colour"`)
	s.KubectlWith(boat("c", "colour: red"), "create", "-f", "-", "--validate=warn").Want("boat.sea.example.com/c created\n", "Warning: unknown field \"spec.colour\"\n")
	ready := s.Begin("wait", "--for=condition=Ready", "--timeout=50s", "boat/a")
	s.Kubectl("patch", "boat", "a", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`).OK()
	if code := ready.Wait(); code != 0 || ready.Stdout.String() != "boat.sea.example.com/a condition met\n" {
		t.Errorf("wait ended with %d: %s%s", code, ready.Stdout, ready.Stderr)
	}
	s.Kubectl("get", "boats", "-o", "wide").Want("NAME     COLOR   SAILS   PORT\na        red     5       away\nb        blue    1       home\nc                1       home\ncrewed           1       home\n", "")
	s.Kubectl("get", "bt", "--field-selector=spec.color=blue", "-o", "name").Want("boat.sea.example.com/b\n", "")
	s.Kubectl("get", "bt", "--field-selector=spec.port=home").Fails("field label not supported: spec.port")
	s.Kubectl("describe", "boat", "a").Contains("Name:         a\n", "API Version:  sea.example.com/v1\n", "  Sails:  5\n", "Events:      <none>\n")

	// The definition changes, and with it what it serves.
	s.Kubectl("patch", "crd", boats, "--type=json", "-p", `[{"op":"replace","path":"/spec/scope","value":"Cluster"}]`).Fails(`spec.scope: Invalid value: "Cluster": field is immutable`)
	s.Kubectl("patch", "crd", boats, "--type=json", "-p", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mast","value":{"type":"string","description":"It holds the sails."}},
		{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/1"}]`).Want("customresourcedefinition.apiextensions.k8s.io/"+boats+" patched\n", "")
	untilServed(t, func() bool { return s.Kubectl("get", "boat", "a").OK().Stdout == "NAME   COLOR\na      red\n" })
	untilServed(t, func() bool {
		return strings.Contains(s.Kubectl("explain", "boats.spec.mast").Stdout, "FIELD: mast <string>\n\n\nDESCRIPTION:\n    It holds the sails.\n")
	})
	s.KubectlWith(boat("d", "mast: high"), "apply", "-f", "-").Want("boat.sea.example.com/d created\n", "")

	// It is gone when its last object is.
	s.Kubectl("patch", "boat", "a", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`).OK()
	s.Kubectl("delete", "crd", boats, "--wait=false").Want(fmt.Sprintf("customresourcedefinition.apiextensions.k8s.io %q deleted\n", boats), "")
	s.Kubectl("wait", "--for=condition=Terminating", "--timeout=60s", "crd/"+boats).OK()
	s.KubectlWith(boat("e"), "create", "-f", "-").Fails("create not allowed while custom resource definition is terminating")
	s.Kubectl("patch", "boat", "a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).OK()
	s.Kubectl("wait", "--for=delete", "--timeout=60s", "crd/"+boats).OK()
	s.Kubectl("get", "boats").Fails("the server could not find the requested resource")
	defineBoats(t, s)
	s.Kubectl("get", "boats").Want("", "No resources found in default namespace.\n")
}

// untilServed waits until the server serves a definition that has changed.
func untilServed(t *testing.T, served func() bool) {
	t.Helper()
	harness.Eventually(t, "the changed definition is served", served)
}

func scriptEvents(t *testing.T, s *harness.Server, _ string) {
	s.Kubectl("create", "configmap", "conf", "--from-literal=a=1").OK()
	uid := s.Kubectl("get", "cm", "conf", "-o", "jsonpath={.metadata.uid}").OK().Stdout
	now := time.Now().UTC()
	s.KubectlWith(fmt.Sprintf(`apiVersion: v1
kind: Event
metadata: {name: old}
involvedObject: {apiVersion: v1, kind: ConfigMap, namespace: default, name: conf, uid: %[1]s}
reason: Bent
message: it is bent
type: Warning
source: {component: bender, host: here}
firstTimestamp: %[2]s
lastTimestamp: %[2]s
count: 3
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: new}
regarding: {apiVersion: v1, kind: ConfigMap, namespace: default, name: conf, uid: %[1]s}
eventTime: %[3]s
reportingController: example.com/bender
reportingInstance: b-1
action: Bend
reason: Straight
note: it is straight
type: Normal
`, uid, now.Format(time.RFC3339), now.Format("2006-01-02T15:04:05.000000Z07:00")), "create", "-f", "-").Want("event/old created\nevent.events.k8s.io/new created\n", "")
	const head, bent, straight = "LAST SEEN TYPE REASON OBJECT MESSAGE", "AGE Warning Bent configmap/conf it is bent", "AGE Normal Straight configmap/conf it is straight"
	rows := func(args ...string) string {
		t.Helper()
		return regexp.MustCompile(`(?m)^(<unknown>|\S+( \([^)]*\))?) `).ReplaceAllString(squeeze(s.Kubectl(args...).OK().Stdout), "AGE ")
	}
	for _, resource := range []string{"events", "ev", "events.events.k8s.io"} {
		got := strings.Replace(rows("get", resource, "--sort-by=.metadata.name"), "AGE SEEN", "LAST SEEN", 1)
		if want := head + "\n" + straight + "\n" + bent + "\n"; strings.ReplaceAll(got, " \n", "\n") != want {
			t.Errorf("get %s shows %q, want %q", resource, got, want)
		}
	}
	s.Kubectl("get", "events", "--field-selector=involvedObject.name=conf,type=Warning", "-o", "name").Want("event/old\n", "")
	s.Kubectl("events", "--for", "configmap/conf", "--types=Warning", "--no-headers").Contains(" (x3 over ", "   Warning   Bent   ConfigMap/conf   it is bent\n")
	s.Kubectl("events", "--for", "configmap/none").Want("", "No events found in default namespace.\n")
	s.Kubectl("describe", "configmap", "conf").Contains("Name:         conf\nNamespace:    default\nLabels:       <none>\nAnnotations:  <none>\n\nData\n====\na:\n----\n1\n", "Events:\n", "Bent", "it is straight")
	s.Kubectl("describe", "namespace", "default").Contains("Name:         default\nLabels:       kubernetes.io/metadata.name=default\nAnnotations:  <none>\nStatus:       Active\n")
	s.Kubectl("describe", "event", "old").Contains("Involved Object:", "Bent")
	s.Kubectl("delete", "events.events.k8s.io", "old").Want("event.events.k8s.io \"old\" deleted from default namespace\n", "")

	// Refused: kinds that this server does not serve, and users that it does not know.
	for _, ask := range []struct{ command, says string }{
		{"auth whoami", "error: the selfsubjectreviews API is not enabled in the cluster"},
		{"auth can-i list configmaps", "Error from server (NotFound): the server could not find the requested resource (post selfsubjectaccessreviews.authorization.k8s.io)"},
		{"auth can-i --list", "Error from server (NotFound): the server could not find the requested resource (post selfsubjectrulesreviews.authorization.k8s.io)"},
		{"get pods", `error: the server doesn't have a resource type "pods"`},
		{"run some --image=some", `error: no matches for kind "Pod" in version "v1"`},
		{"create deployment some --image=some", "error: failed to create deployment: the server could not find the requested resource (post deployments.apps)"},
		{"rollout status deployment/some", `error: the server doesn't have a resource type "deployment"`},
		{"top nodes", "error: Metrics API not available"},
		{"get configmaps --as=somebody", "Error from server (Forbidden): "},
	} {
		if r := s.Kubectl(strings.Fields(ask.command)...); r.Code == 0 || !strings.HasPrefix(r.Stderr, ask.says) {
			t.Errorf("want %q: %s", ask.says, r)
		}
	}
	ca := s.File("ca.pem", string(s.Config().CAData), 0o600)
	stranger := []string{"KUBECONFIG=" + s.File("none", "apiVersion: v1\nkind: Config\n", 0o600)}
	s.KubectlEnv(stranger, "get", "cm", "--server="+s.URL, "--certificate-authority="+ca, "--token=wrong").Fails("error: You must be logged in to the server (Unauthorized)")
}
