package e2e_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

func TestKubectlScale(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	hello.Kubectl("scale", "widget", "alpha", "--replicas=3").Want("widget.example.com/alpha scaled\n", "")
	if got := field(hello, "alpha", ".spec.replicas"); got != "3" {
		t.Errorf("replicas are %s", got)
	}
	hello.Kubectl("scale", "widget", "alpha", "--current-replicas=3", "--replicas=5").Want("widget.example.com/alpha scaled\n", "")
	hello.Kubectl("scale", "widget", "alpha", "--current-replicas=3", "--replicas=6").Fails("Expected replicas to be 3, was 5")
	hello.Kubectl("patch", "widget", "alpha", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":-1}}`).
		Fails("spec.replicas: Invalid value: -1: ")
	hello.Kubectl("scale", "widget", "alpha", "--replicas=0").OK()
	if got := field(hello, "alpha", ".spec.replicas"); got != "" && got != "0" {
		t.Errorf("replicas are %s", got)
	}

	hello.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":2,"selector":"app=alpha"}}`).OK()
	var scale struct {
		APIVersion, Kind string
		Status           struct {
			Replicas int32
			Selector string
		}
	}
	parse(t, hello.Kubectl("get", "widget", "alpha", "--subresource=scale", "-o", "json").OK().Stdout, &scale)
	if scale.APIVersion != "autoscaling/v1" || scale.Kind != "Scale" || scale.Status.Replicas != 2 || scale.Status.Selector != "app=alpha" {
		t.Errorf("scale is %+v", scale)
	}
}

func TestKubectlWaitJSONPath(t *testing.T) {
	hello := start(t)
	create(t, hello, "alpha")
	hello.Kubectl("wait", "widget/alpha", "--for=jsonpath={.spec.size}=1", "--timeout=50s").Want("widget.example.com/alpha condition met\n", "")
	hello.Kubectl("wait", "widget/alpha", "--for=jsonpath={.status.ready}=true", "--timeout=1s").Fails("timed out waiting for the condition on widgets/alpha")
	waiting := hello.Begin("wait", "widget/alpha", "--for=jsonpath={.status.ready}=true", "--timeout=50s")
	hello.Kubectl("patch", "widget", "alpha", "--subresource=status", "--type=merge", "-p", `{"status":{"ready":true}}`).OK()
	if code := waiting.Wait(); code != 0 || waiting.Stdout.String() != "widget.example.com/alpha condition met\n" {
		t.Errorf("wait exited with %d: %s%s", code, waiting.Stdout, waiting.Stderr)
	}
}

func TestKubectlAPIResources(t *testing.T) {
	hello := start(t)
	hello.Kubectl("api-resources").Want(
		"NAME      SHORTNAMES   APIVERSION       NAMESPACED   KIND\nwidgets   wd           example.com/v1   true         Widget\n", "")
	wide := hello.Kubectl("api-resources", "-o", "wide").OK()
	if !strings.Contains(wide.Stdout, "create,delete,deletecollection,get,list,patch,update,watch   all\n") {
		t.Errorf("not the verbs and category: %s", wide)
	}
	hello.Kubectl("api-resources", "--api-group=example.com", "--categories=all", "-o", "name").Want("widgets.example.com\n", "")
	hello.Kubectl("api-resources", "--namespaced=false", "-o", "name").Want("", "")

	create(t, hello, "alpha")
	table := regexp.MustCompile(`^NAME    SIZE   COLOR   READY   AGE\nalpha   1              false   \d+s\n$`)
	if r := hello.Kubectl("get", "all").OK(); !table.MatchString(r.Stdout) {
		t.Errorf("get all shows no widgets: %s", r)
	}
}

func TestKubectlAPIVersions(t *testing.T) {
	start(t).Kubectl("api-versions").Want("example.com/v1\n", "")
}

func TestKubectlExplain(t *testing.T) {
	hello := start(t)
	hello.Kubectl("explain", "widgets").Contains(
		"GROUP:      example.com\nKIND:       Widget\nVERSION:    v1\n",
		"Widget is a thing with a size and a color.",
		"  apiVersion\t<string>\n", "  kind\t<string>\n", "  metadata\t<ObjectMeta>\n", "  spec\t<WidgetSpec>", "  status\t<WidgetStatus>")
	hello.Kubectl("explain", "widgets.spec").Contains(
		"FIELD: spec <WidgetSpec>", "WidgetSpec is what the owner of a widget asks for.",
		"  size\t<integer>\n    Size of the widget, in millimetres.\n",
		"  color\t<string>\n    Color of the widget, such as \"red\".\n",
		"  replicas\t<integer>\n    Replicas is how many of this widget there should be.\n")
	hello.Kubectl("explain", "wd.spec.color").Contains("FIELD: color <string>", `Color of the widget, such as "red".`)
	hello.Kubectl("explain", "widgets.metadata.labels").Contains("Map of string keys and values")
	hello.Kubectl("explain", "widgets", "--recursive").Contains("    selector\t<string>", "    ownerReferences\t<[]OwnerReference>")
	hello.Kubectl("explain", "widgets", "--output=plaintext-openapiv2").Contains("Widget is a thing with a size and a color.")
	hello.Kubectl("explain", "widgets.spec.sise").Fails(`field "sise" does not exist`)
}

func TestKubectlVersion(t *testing.T) {
	hello := start(t)
	r := hello.Kubectl("version").OK()
	if !strings.Contains(r.Stdout, "Client Version: v1.37.2\n") || !strings.Contains(r.Stdout, "Server Version: v1.37.0+keelson\n") || r.Stderr != "" {
		t.Errorf("want both versions and no warning: %s", r)
	}
	var v struct {
		ServerVersion struct{ Major, Minor, GitVersion, GoVersion, Platform string }
	}
	parse(t, hello.Kubectl("version", "-o", "json").OK().Stdout, &v)
	if s := v.ServerVersion; s.Major != "1" || s.Minor != "37" || s.GitVersion != "v1.37.0+keelson" || s.GoVersion == "" || s.Platform == "" {
		t.Errorf("server version is %+v", s)
	}
}

func TestKubectlDiff(t *testing.T) {
	hello := start(t)
	hello.KubectlWith(widget("alpha", "size: 1", "color: red"), "apply", "-f", "-").OK()
	hello.KubectlWith(widget("alpha", "size: 1", "color: red"), "diff", "-f", "-").Want("", "")
	r := hello.KubectlWith(widget("alpha", "size: 2"), "diff", "-f", "-")
	if r.Code != 1 || !strings.Contains(r.Stdout, "-  color: red\n-  size: 1\n+  size: 2\n") || !strings.Contains(r.Stdout, "-  generation: 1\n+  generation: 2\n") {
		t.Errorf("exit code %d, want 1 and the difference: %s", r.Code, r)
	}
	if got := field(hello, "alpha", ".spec"); got != `{"color":"red","size":1}` {
		t.Errorf("diff changed the widget: %s", got)
	}
	r = hello.KubectlWith(widget("beta", "size: 2"), "diff", "-f", "-")
	if r.Code != 1 || !strings.Contains(r.Stdout, "+  name: beta\n") {
		t.Errorf("exit code %d, want 1 and a new widget: %s", r.Code, r)
	}
	hello.Kubectl("get", "widget", "beta").Fails("NotFound")
}

func TestKubectlGetRaw(t *testing.T) {
	hello := start(t)
	raw := func(path string) harness.Result { t.Helper(); return hello.Kubectl("get", "--raw", path).OK() }

	var rootPaths struct{ Paths []string }
	if err := json.Unmarshal([]byte(raw("/").Stdout), &rootPaths); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"/apis", "/apis/example.com", "/apis/example.com/v1", "/healthz", "/healthz/ping", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"} {
		if !slices.Contains(rootPaths.Paths, want) {
			t.Errorf("/ has no %s: %q", want, rootPaths.Paths)
		}
	}
	if !slices.IsSorted(rootPaths.Paths) {
		t.Errorf("the paths are not sorted: %q", rootPaths.Paths)
	}
	raw("/apis/example.com/v1").Contains(`"kind":"APIResourceList"`, `"name":"widgets/status"`, `"name":"widgets/scale"`)
	raw("/apis/example.com/v1/namespaces/default/widgets").Contains(`"kind":"WidgetList"`, `"items":[]`)
	hello.Kubectl("get", "--raw", "/nowhere").Fails("the server could not find the requested resource")
}

func TestKubectlHealthz(t *testing.T) { testHealth(t, "healthz") }
func TestKubectlLivez(t *testing.T)   { testHealth(t, "livez") }
func TestKubectlReadyz(t *testing.T)  { testHealth(t, "readyz") }

// testHealth requests all checks of a path, short and verbose, one check, and all but one.
func testHealth(t *testing.T, path string) {
	hello := start(t)
	raw := func(suffix string) harness.Result {
		t.Helper()
		return hello.Kubectl("get", "--raw", "/"+path+suffix)
	}
	raw("").Want("ok", "")
	raw("/ping").Want("ok", "")
	raw("/storage").Want("ok", "")
	if r := raw("?verbose").OK(); !strings.HasPrefix(r.Stdout, "[+]ping ok\n") || !strings.HasSuffix(r.Stdout, "\n"+path+" check passed\n") {
		t.Errorf("not the checks one by one: %s", r)
	}
	raw("?verbose&exclude=ping").Contains("[+]ping excluded: ok\n")
	raw("/nothing").Fails("the server could not find the requested resource")
}
