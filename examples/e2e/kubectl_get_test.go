package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"sigs.k8s.io/yaml"
)

func TestKubectlGetTable(t *testing.T) {
	hello := start(t)
	hello.Kubectl("get", "widgets").Want("", "No resources found in default namespace.\n")
	create(t, hello, "alpha", "beta")
	hello.Kubectl("create", "-n", "other", "-f", hello.File("w.yaml", widget("gamma", "size: 3", "color: red"), 0o600)).OK()

	table := regexp.MustCompile(`^NAME    SIZE   COLOR   READY   AGE\nalpha   1              false   \d+s\nbeta    1              false   \d+s\n$`)
	for _, alias := range []string{"widgets", "widget", "wd", "widgets.example.com", "widgets.v1.example.com"} {
		if r := hello.Kubectl("get", alias).OK(); !table.MatchString(r.Stdout) {
			t.Errorf("not the table of alpha and beta: %s", r)
		}
	}
	one := regexp.MustCompile(`^NAME   SIZE   COLOR   READY   AGE\nbeta   1              false   \d+s\n$`)
	if r := hello.Kubectl("get", "wd", "beta").OK(); !one.MatchString(r.Stdout) {
		t.Errorf("not the table of beta: %s", r)
	}
	everywhere := regexp.MustCompile(`^NAMESPACE   NAME    SIZE   COLOR   READY   AGE\n` +
		`default     alpha   1              false   \d+s\ndefault     beta    1              false   \d+s\nother       gamma   3      red     false   \d+s\n$`)
	if r := hello.Kubectl("get", "widgets", "-A").OK(); !everywhere.MatchString(r.Stdout) {
		t.Errorf("not the table of all namespaces: %s", r)
	}
	hello.Kubectl("get", "widgets", "--no-headers").Contains("alpha   ")
	hello.Kubectl("get", "widgets", "--sort-by=.spec.size", "-A").Contains("gamma")
	hello.Kubectl("get", "widgets", "--show-labels").Contains("LABELS", "<none>")
	hello.Kubectl("get", "widget", "delta").Fails(`Error from server (NotFound): widgets.example.com "delta" not found`)
	hello.Kubectl("get", "gadgets").Fails(`error: the server doesn't have a resource type "gadgets"`)
}

func TestKubectlGetYAML(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 4", "color: red"), "create", "-f", "-").OK()

	var one map[string]any
	parse(t, hello.Kubectl("get", "widget", "alpha", "-o", "yaml").OK().Stdout, &one)
	wantWidget(t, one, "alpha", map[string]any{"size": 4.0, "color": "red"})

	var list struct {
		Kind  string
		Items []map[string]any
	}
	parse(t, hello.Kubectl("get", "widgets", "-o", "yaml").OK().Stdout, &list)
	if list.Kind != "List" || len(list.Items) != 1 {
		t.Fatalf("want a List of one item, got %v", list)
	}
	wantWidget(t, list.Items[0], "alpha", map[string]any{"size": 4.0, "color": "red"})
}

func TestKubectlGetJSON(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 4", "color: red"), "create", "-f", "-").OK()
	out := hello.Kubectl("get", "widget", "alpha", "-o", "json").OK().Stdout
	if !json.Valid([]byte(out)) {
		t.Errorf("not JSON:\n%s", out)
	}
	var one map[string]any
	parse(t, out, &one)
	wantWidget(t, one, "alpha", map[string]any{"size": 4.0, "color": "red"})
}

// parse decodes YAML or JSON.
func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// wantWidget checks a widget that was just created in namespace default.
func wantWidget(t *testing.T, got map[string]any, name string, spec map[string]any) {
	t.Helper()
	if got["apiVersion"] != "example.com/v1" || got["kind"] != "Widget" {
		t.Errorf("apiVersion %v, kind %v", got["apiVersion"], got["kind"])
	}
	meta, _ := got["metadata"].(map[string]any)
	if meta["name"] != name || meta["namespace"] != "default" || meta["generation"] != 1.0 {
		t.Errorf("metadata is %v", meta)
	}
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		if s, _ := meta[key].(string); s == "" {
			t.Errorf("metadata has no %s: %v", key, meta)
		}
	}
	if fmt.Sprint(got["spec"]) != fmt.Sprint(spec) {
		t.Errorf("spec is %v, want %v", got["spec"], spec)
	}
}

func TestKubectlGetWide(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 4", "color: red", "replicas: 2"), "create", "-f", "-").OK()
	hello.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":true}}`).OK()
	wide := regexp.MustCompile(`^NAME    SIZE   COLOR   REPLICAS   READY   AGE\nalpha   4      red     2          true    \d+s\n$`)
	if r := hello.Kubectl("get", "widgets", "-o", "wide").OK(); !wide.MatchString(r.Stdout) {
		t.Errorf("not the wide table: %s", r)
	}
}

func TestKubectlGetName(t *testing.T) {
	hello := start(t)
	create(t, hello, "beta", "alpha")
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/alpha\nwidget.example.com/beta\n", "")
}

func TestKubectlGetJSONPath(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta")
	hello.Kubectl("get", "widgets", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.size}{"\n"}{end}`).Want("alpha=1\nbeta=1\n", "")
	hello.Kubectl("get", "widget", "beta", "-o", "jsonpath={.spec.size}").Want("1", "")
}

func TestKubectlGetWatch(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")

	all := hello.Begin("get", "widgets", "-w", "--output-watch-events", "-o", "custom-columns=EVENT:.type,NAME:.object.metadata.name,SIZE:.object.spec.size")
	table := hello.Begin("get", "widgets", "-w", "--no-headers")
	one := hello.Begin("get", "widget", "alpha", "-w", "-o", "jsonpath={.spec.size}{\"\\n\"}")
	wrote := func(p *harness.Process, text string) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("the watch shows %q", text), func() bool {
			if p.Exited() {
				t.Fatalf("the watch ended; stdout:\n%s\nstderr:\n%s", p.Stdout, p.Stderr)
			}
			return strings.Contains(squeeze(p.Stdout.String()), text)
		})
	}
	wrote(all, "ADDED alpha 1\n")
	wrote(table, "alpha 1 false ")
	wrote(one, "1\n")

	// The first lines come from the list; only later ones show that the watch works. The watch begins where the list ended, so no
	// later event is missed.
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"size":2}}`).OK()
	wrote(all, "MODIFIED alpha 2\n")
	wrote(one, "1\n2\n")
	create(t, hello, "beta")
	wrote(all, "ADDED beta 1\n")
	wrote(table, "alpha 2 false ")
	wrote(table, "beta 1 false ")
	hello.Kubectl("delete", "widget", "alpha").OK()
	wrote(all, "DELETED alpha 2\n")
	harness.Eventually(t, "the table shows alpha three times: listed, changed, deleted", func() bool {
		return strings.Count(table.Stdout.String(), "alpha") == 3
	})
	if strings.Contains(one.Stdout.String(), "beta") {
		t.Errorf("the watch of one widget shows another:\n%s", one.Stdout)
	}

	watchOnly := hello.Begin("get", "widgets", "--watch-only", "-o", "name")
	for i := 0; !strings.Contains(watchOnly.Stdout.String(), "widget.example.com/gamma"); i++ {
		if i == 100 {
			t.Fatalf("the watch shows no new widget; stdout:\n%s\nstderr:\n%s", watchOnly.Stdout, watchOnly.Stderr)
		}
		create(t, hello, fmt.Sprintf("gamma-%d", i))
	}
	if strings.Contains(watchOnly.Stdout.String(), "beta") {
		t.Errorf("--watch-only shows what was there before:\n%s", watchOnly.Stdout)
	}
}

// squeeze replaces runs of spaces by one space, because the columns of a watch change their width.
func squeeze(s string) string { return regexp.MustCompile(` +`).ReplaceAllString(s, " ") }

func TestKubectlGetLabelSelector(t *testing.T) {
	hello := start(t)
	for name, tier := range map[string]string{"a1": "front", "a2": "back", "a3": "front"} {
		hello.KubectlWith(labelled(name, "tier", tier), "create", "-f", "-").OK()
	}
	create(t, hello, "a4")
	for selector, want := range map[string]string{
		"tier=front":              "a1 a3 ",
		"tier!=front":             "a2 a4 ",
		"tier in (back,other)":    "a2 ",
		"tier notin (back,other)": "a1 a3 a4 ",
		"tier":                    "a1 a2 a3 ",
		"!tier":                   "a4 ",
	} {
		hello.Kubectl("get", "widgets", "-l", selector, "-o", `jsonpath={range .items[*]}{.metadata.name} {end}`).Want(want, "")
	}
	hello.Kubectl("get", "widgets", "-l", "tier=none").Want("", "No resources found in default namespace.\n")
	hello.Kubectl("get", "widgets", "-L", "tier").Contains("NAME   SIZE   COLOR   READY   AGE   TIER\n", "front\n", "back\n")
	hello.Kubectl("get", "widgets", "-l", "tier in").Fails("unable to parse requirement: found '' expected: '('")
}

func TestKubectlGetFieldSelectorName(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha", "beta")
	hello.Kubectl("get", "widgets", "--field-selector", "metadata.name=beta", "-o", "name").Want("widget.example.com/beta\n", "")
	hello.Kubectl("get", "widgets", "--field-selector", "metadata.name!=beta", "-o", "name").Want("widget.example.com/alpha\n", "")
	hello.Kubectl("get", "widgets", "-A", "--field-selector", "metadata.namespace=other").Want("", "No resources found\n")
	hello.Kubectl("get", "widgets", "--field-selector", "spec.size=1").
		Fails(`"spec.size" is not a known field selector: only "metadata.name", "metadata.namespace"`)
}

func TestKubectlGetChunkSize(t *testing.T) {
	hello := start(t)
	var names, want []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("w-%02d", i))
		want = append(want, "widget.example.com/"+names[i])
	}
	create(t, hello, names...)
	r := hello.Kubectl("get", "widgets", "--chunk-size=10", "-o", "name", "-v=6").OK()
	if got := strings.Fields(r.Stdout); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("want the 25 widgets in order: %s", r)
	}
	if n := strings.Count(r.Stderr, "limit=10"); n != 3 {
		t.Errorf("want 3 requests with limit=10, got %d: %s", n, r)
	}
	if n := strings.Count(r.Stderr, "continue="); n != 2 {
		t.Errorf("want 2 requests with continue, got %d: %s", n, r)
	}
	if got := strings.Count(hello.Kubectl("get", "widgets", "--chunk-size=4").OK().Stdout, "w-"); got != 25 {
		t.Errorf("the table has %d widgets, want 25", got)
	}
}
