package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWireDiscovery(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	const all = `["create","delete","deletecollection","get","list","patch","update","watch"]`
	const some = `["get","patch","update"]`
	t.Run("group", func(t *testing.T) {
		const group = `{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}`
		for _, path := range []string{"/apis/example.com", "/apis/example.com/"} {
			a := w.ask(t, "GET", path, "")
			a.want(t, 200)
			if want := `{"kind":"APIGroup","apiVersion":"v1",` + group[1:] + "\n"; a.body != want {
				t.Errorf("%s: %s\nwant %s", path, a.body, want)
			}
		}
		for _, path := range []string{"/apis", "/apis/"} {
			a := w.ask(t, "GET", path, "")
			a.want(t, 200)
			if want := `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group + "]}\n"; a.body != want {
				t.Errorf("%s: %s\nwant %s", path, a.body, want)
			}
		}
		a := w.ask(t, "GET", "/api", "")
		a.want(t, 200)
		if !strings.HasPrefix(a.body, `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"`) {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("resources", func(t *testing.T) {
		a := w.ask(t, "GET", "/apis/example.com/v1", "")
		a.want(t, 200)
		var list metav1.APIResourceList
		a.into(t, &list)
		if list.GroupVersion != "example.com/v1" || list.Kind != "APIResourceList" || list.APIVersion != "v1" {
			t.Errorf("%+v", list)
		}
		for _, want := range []string{
			`{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":` + all + `,"shortNames":["wd"],"categories":["all"],"storageVersionHash":"gIwvi5rymmg="}`,
			`{"name":"widgets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":` + some + `}`,
			`{"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":` + some + `}`,
			`{"name":"planets","singularName":"planet","namespaced":false,"kind":"Planet","verbs":` + all,
		} {
			if !strings.Contains(a.body, want) {
				t.Errorf("no %s in %s", want, a.body)
			}
		}
		if strings.Contains(a.body, "planets/status") {
			t.Error("a kind without status has /status")
		}
	})
	t.Run("core", func(t *testing.T) {
		a := w.ask(t, "GET", "/api/v1", "")
		a.want(t, 200)
		if want := `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":` + all; !strings.HasPrefix(a.body, want) {
			t.Errorf("%s", a.body)
		}
	})
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	t.Run("aggregated", func(t *testing.T) {
		for _, path := range []string{"/api", "/apis"} {
			a := w.ask(t, "GET", path, "", "Accept", accept+",application/json")
			a.want(t, 200)
			tag := a.header.Get("Etag")
			if a.header.Get("Content-Type") != accept || !regexp.MustCompile(`^"[0-9A-F]{128}"$`).MatchString(tag) || !slices.Contains(a.header.Values("Vary"), "Accept") || a.header.Get("Cache-Control") != "public" {
				t.Errorf("%s: %v", path, a.header)
			}
			if !strings.Contains(a.body, `"freshness":"Current"`) || strings.Contains(a.body, "storageVersionHash") {
				t.Errorf("%s: %s", path, a.body)
			}
			again := w.ask(t, "GET", path, "", "Accept", accept, "If-None-Match", tag)
			again.want(t, 304)
			if again.body != "" || again.header.Get("Etag") != tag {
				t.Errorf("%q %v", again.body, again.header)
			}
			w.ask(t, "GET", path, "", "Accept", accept, "If-None-Match", `"old"`).want(t, 200)
			old := w.ask(t, "GET", path, "", "Accept", strings.Replace(accept, "v2", "v2beta1", 1)+",application/json")
			if old.code != 200 || old.header.Get("Content-Type") != "application/json" {
				t.Errorf("v2beta1: %d %v", old.code, old.header)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		for path, code := range map[string]int{"/apis/none.io": 404, "/apis/none.io/v1": 404, "/apis/example.com/v9": 404, "/api/v9": 404} {
			if a := w.ask(t, "GET", path, ""); a.code != code {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			for path, code := range map[string]int{
				"/api": 405, "/apis/example.com/v1": 405, "/version": 405,
				"/apis": 200, "/apis/example.com": 200, "/": 200, "/openapi/v2": 200, "/openapi/v3": 200, "/healthz": 200,
			} {
				if a := w.ask(t, method, path, "{}"); a.code != code {
					t.Errorf("%s %s: %d %s", method, path, a.code, a.body)
				}
			}
		}
		w.ask(t, "GET", "/apis", "", "Accept", "text/html").want(t, 406)
	})
}

func TestWireFixedPaths(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(o *server.Options) {
		o.Observe.Checks = []server.Check{}
	})
	t.Run("version", func(t *testing.T) {
		a := w.ask(t, "GET", "/version", "")
		a.want(t, 200)
		var v map[string]string
		a.into(t, &v)
		if v["major"] != "1" || v["minor"] != "37" || v["gitVersion"] != "v1.37.0+keelson" || v["platform"] == "" || v["goVersion"] == "" || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("root", func(t *testing.T) {
		a := w.ask(t, "GET", "/", "")
		a.want(t, 200)
		var root struct{ Paths []string }
		a.into(t, &root)
		for _, want := range []string{"/api", "/api/v1", "/apis", "/apis/example.com", "/apis/example.com/v1", "/healthz", "/healthz/ping", "/livez", "/readyz/shutdown", "/openapi/v2", "/openapi/v3", "/version"} {
			if !slices.Contains(root.Paths, want) {
				t.Errorf("no %s in %v", want, root.Paths)
			}
		}
		if !slices.IsSorted(root.Paths) {
			t.Errorf("%v", root.Paths)
		}
		b := w.ask(t, "GET", "/nothing", "")
		b.want(t, 404)
		if b.body != "404 page not found\n" {
			t.Errorf("%s", b.body)
		}
		if c := w.ask(t, "GET", "/index.html", ""); c.code != 200 || c.body != a.body {
			t.Errorf("%d %s", c.code, c.body)
		}
	})
	t.Run("health", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/storage"} {
			a := w.ask(t, "GET", path, "")
			sniff := "nosniff"
			if strings.Count(path, "/") > 1 {
				sniff = ""
			}
			if a.code != 200 || a.body != "ok" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != sniff {
				t.Errorf("%s: %+v", path, a)
			}
		}
		for path, want := range map[string]string{
			"/livez?verbose":              "[+]ping ok\n[+]storage ok\nlivez check passed\n",
			"/readyz?verbose&exclude=foo": "[+]ping ok\n[+]storage ok\n[+]cache-readiness ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"foo\"\nreadyz check passed\n",
			"/healthz?verbose":            "[+]ping ok\n[+]storage ok\nhealthz check passed\n",
		} {
			if a := w.ask(t, "GET", path, ""); a.code != 200 || a.body != want {
				t.Errorf("%s: %d %q", path, a.code, a.body)
			}
		}
		w.ask(t, "GET", "/readyz/none", "").want(t, 404)
	})
	t.Run("openapi v3", func(t *testing.T) {
		a := w.ask(t, "GET", "/openapi/v3", "")
		a.want(t, 200)
		if a.header.Get("Content-Type") != "application/json" || a.header.Get("Etag") == "" {
			t.Errorf("%v", a.header)
		}
		var index struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		a.into(t, &index)
		at := index.Paths["apis/example.com/v1"].ServerRelativeURL
		if !regexp.MustCompile(`^/openapi/v3/apis/example.com/v1\?hash=[0-9A-F]+$`).MatchString(at) {
			t.Fatalf("%s", a.body)
		}
		doc := w.ask(t, "GET", at, "")
		doc.want(t, 200)
		if doc.header.Get("Cache-Control") != "public, immutable" || doc.header.Get("Expires") == "" || !slices.Contains(doc.header.Values("Vary"), "Accept") || doc.header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", doc.header)
		}
		w.ask(t, "GET", strings.Split(at, "?")[0], "", "If-None-Match", doc.header.Get("Etag")).want(t, 304)
		client := *w.client
		client.CheckRedirect = noRedirect
		moved := w.askAs(t, &client, "GET", "/openapi/v3/apis/example.com/v1?hash=OLD", "")
		if moved.code != 301 || moved.header.Get("Location") != at[strings.Index(at, "?"):] {
			t.Errorf("%d %v", moved.code, moved.header)
		}
		w.ask(t, "GET", "/openapi/v3/apis/none.io/v1", "").want(t, 404)
		w.ask(t, "GET", at, "", "Accept", "text/html").want(t, 406)
		var spec struct {
			Paths map[string]map[string]json.RawMessage
		}
		doc.into(t, &spec)
		for _, path := range []string{"/apis/example.com/v1/namespaces/{namespace}/widgets", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status",
			"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale", "/apis/example.com/v1/widgets", "/apis/example.com/v1/planets/{name}"} {
			if spec.Paths[path] == nil {
				t.Errorf("no path %s", path)
			}
		}
		var op struct {
			OperationID string                                `json:"operationId"`
			Action      string                                `json:"x-kubernetes-action"`
			GVK         struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			Parameters  []struct{ Name, In string }
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
		if err := json.Unmarshal(spec.Paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"], &op); err != nil {
			t.Fatal(err)
		}
		var params []string
		for _, p := range op.Parameters {
			params = append(params, p.Name)
		}
		slices.Sort(params)
		if op.OperationID != "patchExampleComV1NamespacedWidget" || op.Action != "patch" || op.GVK.Kind != "Widget" || op.GVK.Group != "example.com" ||
			fmt.Sprint(params) != "[dryRun fieldManager fieldValidation force]" || len(op.RequestBody.Content) != 4 || op.Responses["200"] == nil || op.Responses["401"] == nil {
			t.Errorf("%+v %v", op, params)
		}
	})
	t.Run("openapi v2", func(t *testing.T) {
		a := w.ask(t, "GET", "/openapi/v2", "")
		a.want(t, 200)
		tag := a.header.Get("Etag")
		if a.header.Get("Content-Type") != "application/json" || !regexp.MustCompile(`^"[0-9A-F]{128}"$`).MatchString(tag) || !strings.HasPrefix(a.body, `{"swagger":"2.0"`) {
			t.Errorf("%v", a.header)
		}
		w.ask(t, "GET", "/openapi/v2", "", "If-None-Match", tag).want(t, 304)
		w.ask(t, "GET", "/openapi/v2", "", "Accept", "text/html").want(t, 406)
	})
}
