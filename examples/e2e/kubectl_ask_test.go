package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// The tests in this file expect the output of kubectl with a kube-apiserver that serves testdata/helm/lamps.yaml. With
// KEELSON_E2E_KUBERNETES they use that server.

// lampsServed serves three lamps and a ConfigMap; the lamp wall is in the second namespace. It makes the test parallel.
func lampsServed(t *testing.T) (d *desk, second string) {
	t.Helper()
	t.Parallel()
	d = newDesk(t)
	second = d.namespace + "-two"
	d.kubectl("create", "namespace", second).OK()
	t.Cleanup(func() { d.kubectl("delete", "namespace", second, "--wait=false").OK() })
	d.kube.Run(manifests(second), "create", "-f", "-").
		Want("lamp.home.example.com/desk created\nlamp.home.example.com/floor created\nlamp.home.example.com/wall created\nconfigmap/conf created\n", "")
	return d, second
}

func manifests(second string) string {
	const head = "apiVersion: home.example.com/v1\nkind: Lamp\n"
	return head + `metadata: {name: desk, labels: {room: study, level: "1"}}
spec: {watts: 60, color: red, bulbs: [{name: left}]}
---
` + head + `metadata: {name: floor, labels: {room: hall}}
spec: {watts: 7}
---
` + head + `metadata: {name: wall, namespace: ` + second + `}
spec: {watts: 100}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, labels: {room: study}}
data: {a: "1"}
`
}

var ages = regexp.MustCompile(`\b(\d+m)?\d+s\b`)

// prints checks a table line by line, with one space between columns and AGE in place of ages.
func prints(t *testing.T, r harness.Result, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(ages.ReplaceAllString(squeeze(r.OK().Stdout), "AGE")) {
		got = append(got, strings.TrimSpace(line))
	}
	if !slices.Equal(got, want) {
		t.Errorf("want the lines %q, got %q: %s", want, got, r)
	}
}

// metadataFields is the output of explain --recursive for the metadata of every kind.
const metadataFields = `  metadata	<ObjectMeta>
    annotations	<map[string]string>
    creationTimestamp	<string>
    deletionGracePeriodSeconds	<integer>
    deletionTimestamp	<string>
    finalizers	<[]string>
    generateName	<string>
    generation	<integer>
    labels	<map[string]string>
    managedFields	<[]ManagedFieldsEntry>
      apiVersion	<string>
      fieldsType	<string>
      fieldsV1	<FieldsV1>
      manager	<string>
      operation	<string>
      subresource	<string>
      time	<string>
    name	<string>
    namespace	<string>
    ownerReferences	<[]OwnerReference>
      apiVersion	<string> -required-
      blockOwnerDeletion	<boolean>
      controller	<boolean>
      kind	<string> -required-
      name	<string> -required-
      uid	<string> -required-
    resourceVersion	<string>
    selfLink	<string>
    uid	<string>
`

func TestKubectlExplainRecursive(t *testing.T) {
	d, _ := lampsServed(t)
	d.kubectl("explain", "configmaps", "--recursive").Want("KIND:       ConfigMap\nVERSION:    v1\n\nDESCRIPTION:\n    ConfigMap holds configuration data for pods to consume.\n    \nFIELDS:\n"+
		"  apiVersion\t<string>\n  binaryData\t<map[string]string>\n  data\t<map[string]string>\n  immutable\t<boolean>\n  kind\t<string>\n"+metadataFields+"\n", "")

	// The types of a Go program have names in OpenAPI; those of a CustomResourceDefinition have none.
	spec, bulbs, status, conditions := "LampSpec", "LampBulb", "LampStatus", "Condition"
	if d.crd {
		spec, bulbs, status, conditions = "Object", "Object", "Object", "Object"
	}
	d.kubectl("explain", "lamps", "--recursive").Contains("GROUP:      home.example.com\nKIND:       Lamp\nVERSION:    v1\n\nDESCRIPTION:\n    <empty>\nFIELDS:\n"+
		"  apiVersion\t<string>\n  kind\t<string>\n"+metadataFields, "  spec\t<"+spec+">\n    bulbs\t<[]"+bulbs+">\n      name\t<string> -required-\n      socket\t<string>\n    color\t<string>\n    watts\t<integer> -required-\n",
		"  status\t<"+status+">\n    conditions\t<[]"+conditions+">\n      lastTransitionTime\t<string> -required-\n      message\t<string> -required-\n      observedGeneration\t<integer>\n"+
			"      reason\t<string> -required-\n      status\t<string> -required-\n      type\t<string> -required-\n    observedGeneration\t<integer>\n\n")
}

func TestKubectlExplainEachVersion(t *testing.T) {
	d, _ := lampsServed(t)
	d.kubectl("explain", "lp.spec").Contains("VERSION:    v1\n", "  watts\t<integer> -required-\n")
	d.kubectl("explain", "lamps.spec.bulbs.socket", "--api-version=home.example.com/v1").Contains("FIELD: socket <string>\n")
	old := d.kubectl("explain", "lamps.spec", "--api-version=home.example.com/v1beta1").Contains("VERSION:    v1beta1\n", "  power\t<string> -required-\n")
	if strings.Contains(old.Stdout, "watts") {
		t.Errorf("v1beta1 has no watts: %s", old)
	}
	d.kubectl("explain", "lamps.spec.watts", "--api-version=home.example.com/v1beta1").Fails(`error: field "watts" does not exist`)
	d.kubectl("explain", "lamps", "--api-version=home.example.com/v2").Fails(`error: couldn't find resource for "home.example.com/v2, Resource=lamps"`)
	d.kubectl("explain", "gadgets").Fails(`the server doesn't have a resource type "gadgets"`)

	d.kubectl("explain", "secret.stringData").Want("KIND:       Secret\nVERSION:    v1\n\nFIELD: stringData <map[string]string>\n\n\nDESCRIPTION:\n"+
		"    stringData allows specifying non-binary secret data in string form. It is\n    provided as a write-only input field for convenience. All keys and values\n"+
		"    are merged into the data field on write, overwriting any existing values.\n    The stringData field is never output when reading from the API.\n    \n\n", "")
	d.kubectl("explain", "ns.status.conditions").Contains("FIELD: conditions <[]NamespaceCondition>\n", "  lastTransitionTime\t<string>\n", "  status\t<string> -required-\n")
	d.kubectl("explain", "lamps", "--output=plaintext-openapiv2").Contains("KIND:     Lamp\nVERSION:  home.example.com/v1\n")
}

func TestKubectlAPIResourcesOfGroups(t *testing.T) {
	d, _ := lampsServed(t)
	resources := func(args ...string) harness.Result {
		t.Helper()
		return d.kubectl(append([]string{"api-resources"}, args...)...)
	}
	const head = "NAME    SHORTNAMES   APIVERSION            NAMESPACED   KIND\n"
	const lamp = "lamps   lp           home.example.com/v1   true         Lamp\n"
	resources("--api-group=home.example.com").Want(head+lamp, "")
	resources("--api-group=home.example.com", "--cached", "--categories=all", "--no-headers").Want("lamps   lp    home.example.com/v1   true   Lamp\n", "")
	resources("--api-group=home.example.com", "--verbs=list,watch", "--namespaced", "-o", "name").Want("lamps.home.example.com\n", "")
	resources("--api-group=home.example.com", "--verbs=list,rule").Want("NAME   SHORTNAMES   APIVERSION   NAMESPACED   KIND\n", "")
	resources("--api-group=none").Want("NAME   SHORTNAMES   APIVERSION   NAMESPACED   KIND\n", "")
	verbs := "create,delete,deletecollection,get,list,patch,update,watch"
	if d.crd {
		verbs = "delete,deletecollection,get,list,patch,create,update,watch"
	}
	prints(t, resources("--api-group=home.example.com", "-o", "wide"), "NAME SHORTNAMES APIVERSION NAMESPACED KIND VERBS CATEGORIES", "lamps lp home.example.com/v1 true Lamp "+verbs+" all")
	var list struct {
		Kind      string
		Resources []struct{ Name, Group, Version, Kind, SingularName string }
	}
	parse(t, resources("--api-group=home.example.com", "-o", "yaml").OK().Stdout, &list)
	if got := fmt.Sprint(list); got != "{APIResourceList [{lamps home.example.com v1 Lamp lamp}]}" {
		t.Errorf("the resources are %s", got)
	}
	resources("--api-group=", "--namespaced=false").Contains("namespaces ", "   ns           v1           false        Namespace\n")

	core := resources("--api-group=", "--sort-by=kind").Contains("   cm           v1           true         ConfigMap\n", "   v1           true         Secret\n").Stdout
	if strings.Index(core, " ConfigMap\n") > strings.Index(core, " Namespace\n") || strings.Index(core, " Namespace\n") > strings.Index(core, " Secret\n") {
		t.Errorf("not sorted by kind:\n%s", core)
	}
	d.kubectl("api-versions").Contains("home.example.com/v1\nhome.example.com/v1beta1\n", "\nv1\n")
}

func TestKubectlGetColumns(t *testing.T) {
	d, second := lampsServed(t)
	get := func(args ...string) harness.Result {
		t.Helper()
		return d.kubectl(append([]string{"get", "lamps"}, args...)...)
	}
	get("-o", "custom-columns=NAME:.metadata.name,W:.spec.watts,B:.spec.bulbs[*].name,NONE:.spec.nothing").
		Want("NAME    W     B        NONE\ndesk    60    left     <none>\nfloor   7     <none>   <none>\n", "")
	columns := d.kube.File("columns", "NAME           SIZE\n.metadata.name .spec.watts\n", 0o600)
	get("-o", "custom-columns-file="+columns).Want("NAME    SIZE\ndesk    60\nfloor   7\n", "")
	get("-o", "custom-columns=N:.metadata.name", "--no-headers", "--sort-by=.spec.watts").Want("floor\ndesk\n", "")

	prints(t, get(), "NAME WATTS AGE", "desk 60 AGE", "floor 7 AGE")
	prints(t, get("-o", "wide"), "NAME WATTS COLOR AGE", "desk 60 red AGE", "floor 7 AGE")
	prints(t, get("--sort-by=.spec.watts"), "NAME WATTS AGE", "floor 7 AGE", "desk 60 AGE")
	prints(t, get("--sort-by={.spec.color}", "-o", "wide"), "NAME WATTS COLOR AGE", "floor 7 AGE", "desk 60 red AGE")
	prints(t, get("--show-labels"), "NAME WATTS AGE LABELS", "desk 60 AGE level=1,room=study", "floor 7 AGE room=hall")
	prints(t, get("-L", "room,level"), "NAME WATTS AGE ROOM LEVEL", "desk 60 AGE study 1", "floor 7 AGE hall")
	prints(t, get("-L", "room", "--show-labels", "-o", "wide"), "NAME WATTS COLOR AGE ROOM LABELS", "desk 60 red AGE study level=1,room=study", "floor 7 AGE hall room=hall")
	prints(t, get("--show-kind"), "NAME WATTS AGE", "lamp.home.example.com/desk 60 AGE", "lamp.home.example.com/floor 7 AGE")
	prints(t, get("-n", second, "--no-headers"), "wall 100 AGE")
	prints(t, get("-A", "--sort-by=.spec.watts", "--field-selector=metadata.namespace="+d.namespace), "NAMESPACE NAME WATTS AGE", d.namespace+" floor 7 AGE", d.namespace+" desk 60 AGE")
	prints(t, get("desk", "--subresource=status"), "NAME WATTS AGE", "desk 60 AGE")
	get("--sort-by=.spec.nothing").Want("", "No resources found in "+d.namespace+" namespace.\n")

	// Each version has its own columns, and its own fields.
	prints(t, d.kubectl("get", "lamps.v1beta1.home.example.com"), "NAME AGE", "desk AGE", "floor AGE")
	d.kubectl("get", "lamps.v1beta1.home.example.com", "desk", "-o", "jsonpath={.apiVersion} {.kind}").Want("home.example.com/v1beta1 Lamp", "")
	d.kubectl("get", "lamps.v2.home.example.com").Fails(`error: the server doesn't have a resource type "lamps" in group "v2.home.example.com"`)
}

func TestKubectlGetSeveralKinds(t *testing.T) {
	d, second := lampsServed(t)
	config := []string{"NAME DATA AGE", "configmap/conf 1 AGE"}
	prints(t, d.kubectl("get", "lamps,configmaps", "-l", "room"), append([]string{
		"NAME WATTS AGE", "lamp.home.example.com/desk 60 AGE", "lamp.home.example.com/floor 7 AGE", ""}, config...)...)
	prints(t, d.kubectl("get", "lamp/desk", "cm/conf"), append([]string{"NAME WATTS AGE", "lamp.home.example.com/desk 60 AGE", ""}, config...)...)
	d.kubectl("get", "lamp/desk", "cm/conf", "-o", "name").Want("lamp.home.example.com/desk\nconfigmap/conf\n", "")
	d.kubectl("get", "lamps,cm", "-A", "-l", "room=study", "--field-selector=metadata.namespace="+d.namespace, "-o", "name").Want("lamp.home.example.com/desk\nconfigmap/conf\n", "")
	file := d.kube.File("all.yaml", manifests(second), 0o600)
	d.kubectl("get", "-f", file, "-o", "name").Want("lamp.home.example.com/desk\nlamp.home.example.com/floor\nlamp.home.example.com/wall\nconfigmap/conf\n", "")
	d.kubectl("diff", "-f", file).Want("", "")
	// Here only lamps have the category; if services and pods were served too, kubectl would print the kind in each line.
	all := d.kubectl("get", "all", "-n", second).Contains("NAME ", "WATTS", "wall ", "100 ")
	if strings.Contains(all.Stdout, "configmap") {
		t.Errorf("ConfigMaps are of no category: %s", all)
	}

	missing := d.kubectl("get", "lamp", "desk", "nothing")
	missing.Fails(`Error from server (NotFound): lamps.home.example.com "nothing" not found` + "\n")
	if !strings.Contains(missing.Stdout, "desk ") {
		t.Errorf("what there is is not shown: %s", missing)
	}
	prints(t, d.kubectl("get", "lamp", "desk", "nothing", "--ignore-not-found"), "NAME WATTS AGE", "desk 60 AGE")
	d.kubectl("get", "lamp", "nothing", "--ignore-not-found").Want("", "")
	d.kubectl("get", "lamps", "-n", "none").Want("", "No resources found in none namespace.\n")
	d.kubectl("get", "lamps", "--subresource=status").Fails("error: subresource cannot be used when bulk resources are specified")
	d.kubectl("get", "lamp", "desk", "--subresource=scale").Fails("Error from server (NotFound): the server could not find the requested resource")
	d.kubectl("create", "configmap", "made", "--from-literal=a=b", "--dry-run=server").Want("configmap/made created (server dry run)\n", "")
}

func TestKubectlGetGoTemplate(t *testing.T) {
	d, _ := lampsServed(t)
	d.kubectl("get", "lamps", "-o", "go-template={{range .items}}{{.metadata.name}}={{.spec.watts}} {{end}}").Want("desk=60 floor=7 ", "")
	file := d.kube.File("template", `{{.kind}} {{.metadata.name}}{{range .spec.bulbs}} {{.name}} {{.socket}}{{end}}`, 0o600)
	d.kubectl("get", "lamp", "desk", "-o", "go-template-file="+file).Want("Lamp desk left E27", "")
	d.kubectl("get", "lamp", "desk", "-o", "go-template={{.spec.nothing.more}}").Want("<no value>", "")
	d.kubectl("get", "lamp", "desk", "--subresource=status", "-o", "jsonpath-as-json={.spec.bulbs[*].name}").Want("[\n    \"left\"\n]\n", "")
}

// Everybody may read the documents of discovery and OpenAPI.
func TestKubectlGetRawDiscovery(t *testing.T) {
	d, _ := lampsServed(t)
	raw := func(path string) harness.Result { t.Helper(); return d.kubectl("get", "--raw", path) }
	raw("/api").Contains(`{"kind":"APIVersions","versions":["v1"],`)
	raw("/api/v1").Contains(`"groupVersion":"v1"`, `"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap"`)
	raw("/apis").Contains(`"kind":"APIGroupList"`, `{"name":"home.example.com","versions":[{"groupVersion":"home.example.com/v1","version":"v1"},{"groupVersion":"home.example.com/v1beta1","version":"v1beta1"}],`+
		`"preferredVersion":{"groupVersion":"home.example.com/v1","version":"v1"}}`)
	raw("/apis/home.example.com").Contains(`{"kind":"APIGroup","apiVersion":"v1","name":"home.example.com",`)
	for _, path := range []string{"/apis/home.example.com/v1", "/apis/home.example.com/v1/", "/apis/home.example.com/v1beta1"} {
		raw(path).Contains(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"`, `"shortNames":["lp"],"categories":["all"],"storageVersionHash":"`,
			`{"name":"lamps/status","singularName":"","namespaced":true,"kind":"Lamp","verbs":["get","patch","update"]}`)
	}
	for _, path := range []string{"/apis/home.example.com/v2", "/apis/none", "/apis/none/v1", "/openapi/v3/apis/none/v1"} {
		raw(path).Fails("Error from server (NotFound): ")
	}

	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	parse(t, raw("/openapi/v3").OK().Stdout, &index)
	for _, path := range []string{"api", "api/v1", "apis", "apis/home.example.com/v1", "apis/home.example.com/v1beta1", "version"} {
		url := index.Paths[path].ServerRelativeURL
		if !strings.HasPrefix(url, "/openapi/v3/"+path+"?hash=") {
			t.Errorf("the document of %s is at %q", path, url)
			continue
		}
		if !json.Valid([]byte(raw(url).Contains(`"openapi":"3.0.0"`).Stdout)) {
			t.Errorf("%s is not JSON", url)
		}
	}
	raw(index.Paths["apis/home.example.com/v1"].ServerRelativeURL).Contains(`"x-kubernetes-list-map-keys":["name"]`, `"name":"fieldValidation"`)
	raw("/openapi/v2").Contains(`"swagger":"2.0"`, `"/apis/home.example.com/v1/namespaces/{namespace}/lamps/{name}"`, `{"group":"home.example.com","kind":"Lamp","version":"v1beta1"}`)
}

// kubectl proxy forwards any request, also a watch.
func TestKubectlProxy(t *testing.T) {
	d, _ := lampsServed(t)
	proxy := d.kube.Begin("proxy", "--port=0")
	var address string
	harness.Eventually(t, "the proxy listens", func() bool {
		if proxy.Exited() {
			t.Fatalf("the proxy ended: %s%s", proxy.Stdout, proxy.Stderr)
		}
		line, whole := strings.CutSuffix(proxy.Stdout.String(), "\n")
		address = strings.TrimPrefix(line, "Starting to serve on ")
		return whole
	})
	get := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	all := "/apis/home.example.com/v1/namespaces/" + d.namespace + "/lamps"
	var list struct {
		Kind     string
		Metadata struct{ ResourceVersion string }
		Items    []any
	}
	body, err := io.ReadAll(get(all).Body)
	if err != nil {
		t.Fatal(err)
	}
	if parse(t, string(body), &list); list.Kind != "LampList" || len(list.Items) != 2 {
		t.Errorf("through the proxy there is %s", body)
	}
	if resp := get("/apis/none/v1"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d of a group that is not served", resp.StatusCode)
	}
	changes := json.NewDecoder(get(all + "?watch=true&resourceVersion=" + list.Metadata.ResourceVersion).Body)
	d.kubectl("label", "lamp", "floor", "new=yes").Want("lamp.home.example.com/floor labeled\n", "")
	var event struct {
		Type   string
		Object struct{ Metadata struct{ Name string } }
	}
	if err := changes.Decode(&event); err != nil || event.Type != "MODIFIED" || event.Object.Metadata.Name != "floor" {
		t.Errorf("through the proxy comes %+v, %v", event, err)
	}
}

func TestKubectlWaitFor(t *testing.T) {
	d, _ := lampsServed(t)
	const met = "lamp.home.example.com/desk condition met\n"
	wait := func(args ...string) harness.Result {
		t.Helper()
		return d.kubectl(append([]string{"wait"}, args...)...)
	}
	wait("lamp/desk", "--for=create", "--timeout=50s").Want(met, "")
	wait("lamp/later", "--for=create", "--timeout=1s").Fails("error: timed out waiting for the condition")
	created := d.kube.Begin("wait", "lamp/later", "--for=create", "--timeout=50s")
	d.kube.Run("apiVersion: home.example.com/v1\nkind: Lamp\nmetadata: {name: later}\nspec: {watts: 1}\n", "create", "-f", "-").OK()
	if code := created.Wait(); code != 0 || created.Stdout.String() != "lamp.home.example.com/later condition met\n" {
		t.Errorf("wait for the creation exited with %d: %s%s", code, created.Stdout, created.Stderr)
	}
	wait("lamp/nothing", "--for=delete", "--timeout=50s").Want("", "")
	wait("lamp/desk", "--for=delete", "--timeout=1s").Fails("error: timed out waiting for the condition on lamps/desk")

	wait("lamp/desk", "--for=condition=Ready", "--timeout=1s").Fails("error: timed out waiting for the condition on lamps/desk")
	lit := d.kube.Begin("wait", "lamp/desk", "--for=condition=Ready", "--timeout=50s")
	d.kubectl("patch", "lamp", "desk", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Lit","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},`+
			`{"type":"Broken","status":"False","reason":"Lit","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`).OK()
	if code := lit.Wait(); code != 0 || lit.Stdout.String() != met {
		t.Errorf("wait for the condition exited with %d: %s%s", code, lit.Stdout, lit.Stderr)
	}
	wait("lamp/desk", "--for=condition=Broken=false", "--timeout=50s").Want(met, "")
	wait("lamps", "-l", "room=study", "--for=condition=Ready", "--timeout=50s").Want(met, "")
	wait("lamps", "-l", "room=none", "--for=condition=Ready", "--timeout=50s").Fails("error: no matching resources found")
	some := wait("lamps", "--all", "--for=condition=Ready", "--timeout=1s")
	some.Fails("timed out waiting for the condition on lamps/floor\ntimed out waiting for the condition on lamps/later\n")
	if some.Stdout != met {
		t.Errorf("what is ready is not said: %s", some)
	}
	wait("lamp/desk", `--for=jsonpath={.spec.bulbs[?(@.name=="left")].socket}=E27`, "--timeout=50s").Want(met, "")
	wait("lamp/desk", "--for=jsonpath={.spec.color}", "--timeout=50s").Want(met, "")
	wait("lamp/desk", "--for=jsonpath={.spec.nothing}", "--timeout=1s").Fails("error: timed out waiting for the condition on lamps/desk")
}

// Requests for kinds that are not served have clear errors: reviews of authentication and authorization, services, pods.
func TestKubectlNotServed(t *testing.T) {
	d, _ := lampsServed(t)
	if d.crd {
		t.Skip("kube-apiserver serves them")
	}
	for _, ask := range []struct{ command, says string }{
		{"auth whoami", "error: the selfsubjectreviews API is not enabled in the cluster"},
		{"auth can-i list lamps", "Error from server (NotFound): the server could not find the requested resource (post selfsubjectaccessreviews.authorization.k8s.io)"},
		{"auth can-i --list", "Error from server (NotFound): the server could not find the requested resource (post selfsubjectrulesreviews.authorization.k8s.io)"},
		{"cluster-info", `error: the server doesn't have a resource type "services"`},
		{"get pods", `error: the server doesn't have a resource type "pods"`},
		{"logs some", `error: the server doesn't have a resource type "pods"`},
		{"run some --image=some", `error: no matches for kind "Pod" in version "v1"`},
		{"create deployment some --image=some", "error: failed to create deployment: the server could not find the requested resource (post deployments.apps)"},
		{"rollout status deployment/some", `error: the server doesn't have a resource type "deployment"`},
		{"top nodes", "error: Metrics API not available"},
	} {
		if r := d.kubectl(strings.Fields(ask.command)...); r.Code == 0 || !strings.HasPrefix(r.Stderr, ask.says) {
			t.Errorf("want %q: %s", ask.says, r)
		}
	}
}
