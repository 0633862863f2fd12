package kinds_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/examples/controlplane/internal/kinds"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// absent returns what kube-apiserver serves and this package does not, according to the package comment.
func absent() map[string]bool {
	all := map[string]bool{}
	for gv, resources := range map[string]string{
		"v1": `bindings componentstatuses nodes/proxy pods/attach pods/binding pods/ephemeralcontainers pods/eviction pods/exec pods/log
			pods/portforward pods/proxy pods/resize replicationcontrollers/scale services/proxy`,
		"apiregistration.k8s.io/v1":   "apiservices apiservices/status",
		"apps/v1":                     "deployments/scale replicasets/scale statefulsets/scale",
		"authentication.k8s.io/v1":    "selfsubjectreviews tokenreviews",
		"authorization.k8s.io/v1":     "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
		"autoscaling/v1":              "horizontalpodautoscalers horizontalpodautoscalers/status",
		"certificates.k8s.io/v1":      "certificatesigningrequests/approval",
		"certificates.k8s.io/v1beta1": "podcertificaterequests podcertificaterequests/status",
	} {
		for _, resource := range strings.Fields(resources) {
			all[gv+" "+resource] = true
		}
	}
	return all
}

// Discovery is the same as that of kube-apiserver, except for absent.
func TestDiscovery(t *testing.T) {
	srv := servertest.New(t, builtin.New(builtin.Options{}), accounts.New(accounts.Options{NoControllers: true}), crd.New(crd.Options{}), kinds.Extension())
	if diff := cmp.Diff(recorded(t), discovered(t, srv.Client(), srv.URL)); diff != "" {
		t.Error(diff)
	}
}

// With roles and bindings, discovery is the same for a user without any role, who may also read OpenAPI. A client that is not
// authenticated may read neither.
func TestDiscoveryWithRoles(t *testing.T) {
	srv := servertest.New(t, builtin.New(builtin.Options{}), accounts.New(accounts.Options{NoControllers: true}), crd.New(crd.Options{}), rbac.New(rbac.Options{}), kinds.Extension())
	alice, nobody := srv.ClientOf(srv.AddUser(authn.User{Name: "alice"})), srv.Anonymous()
	if diff := cmp.Diff(recorded(t), discovered(t, alice, srv.URL)); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{
		"/api", "/api/", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1",
		"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1",
	} {
		if code, body := get(t, alice, srv.URL+path); code != http.StatusOK || body == "" {
			t.Errorf("alice at %s: %d %.200s", path, code, body)
		}
		want := fmt.Sprintf(`"message":"forbidden: User \"system:anonymous\" cannot get path \"%s\""`, path)
		if code, body := get(t, nobody, srv.URL+path); code != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("nobody at %s: %d %.200s; want 403 and %s", path, code, body, want)
		}
	}
	for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments", "/metrics", "/"} {
		if code, body := get(t, alice, srv.URL+path); code != http.StatusForbidden {
			t.Errorf("alice at %s: %d %.200s", path, code, body)
		}
	}
}

// discovered returns the descriptions of all resources in the form of the record.
func discovered(t *testing.T, client *http.Client, url string) map[string]string {
	t.Helper()
	var groups metav1.APIGroupList
	ask(t, client, url+"/apis", &groups)
	versions := []string{"v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions = append(versions, v.GroupVersion)
		}
	}
	got := map[string]string{}
	for _, gv := range versions {
		path := "/apis/" + gv
		if gv == "v1" {
			path = "/api/v1"
		}
		var list metav1.APIResourceList
		ask(t, client, url+path, &list)
		for _, r := range list.APIResources {
			got[gv+" "+r.Name] = described(r)
		}
	}
	return got
}

// recorded reads the record of kube-apiserver's resources.
func recorded(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("testdata/kube-apiserver-1.37.1-discovery.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, without := map[string]string{}, absent()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3)
		if resource := fields[0] + " " + fields[1]; fields[0] != "#" && !without[resource] {
			all[resource] = fields[2]
		}
	}
	if lines.Err() != nil || len(all) < 100 {
		t.Fatalf("%d resources, error %v", len(all), lines.Err())
	}
	return all
}

// described returns a line of the record, without its first two fields.
func described(r metav1.APIResource) string {
	scope := map[bool]string{true: "namespaced", false: "cluster"}[r.Namespaced]
	if strings.Contains(r.Name, "/") {
		return r.Kind + " " + scope
	}
	or := func(list ...string) string {
		if text := strings.Join(list, ","); text != "" {
			return text
		}
		return "-"
	}
	return strings.Join([]string{r.Kind, scope, or(r.SingularName), or(r.ShortNames...), or(r.Categories...), or(r.Verbs...)}, " ")
}

// get asks for a path and returns the answer's code and body.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// ask decodes the JSON at a path, which must exist.
func ask(t *testing.T, client *http.Client, url string, into any) {
	t.Helper()
	code, body := get(t, client, url)
	if code != http.StatusOK {
		t.Fatalf("%s: %d: %s", url, code, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatal(err)
	}
}

// Conversions lose nothing.
func TestConversions(t *testing.T) {
	var scheme *runtime.Scheme
	servertest.New(t, kinds.Extension(), server.ExtensionFunc(func(h *server.Host) error {
		scheme = h.Scheme()
		return nil
	}))
	kinds := slices.DeleteFunc(scheme.GroupKinds(), func(gk schema.GroupKind) bool { return len(scheme.Versions(gk)) == 1 })
	if len(kinds) != 10 {
		t.Errorf("%d kinds have several versions: %v", len(kinds), kinds)
	}
	slice := schema.GroupVersion{Group: "resource.k8s.io", Version: "v1"}.WithKind("ResourceSlice")
	old := schema.GroupVersion{Group: "resource.k8s.io", Version: "v1beta1"}.WithKind("ResourceSlice")
	const zero = "the field is no pointer in v1beta1, where the zero value is that it is absent"
	roundtrip.Test(t, scheme, roundtrip.Options{Kinds: kinds, Rounds: 10, Tolerate: []roundtrip.Tolerance{
		{Kind: slice, Through: "v1beta1", Path: "spec.allNodes", Reason: zero},
		{Kind: slice, Through: "v1beta1", Path: "spec.nodeName", Reason: zero},
		{Kind: old, Path: "spec.devices.basic", Reason: "a device without basic is one with an empty basic"},
	}})
}

// The storage keys are those of kube-apiserver; some do not have the plural of the kind.
func TestStoragePaths(t *testing.T) {
	backend := memory.New(memory.Options{})
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, kinds.Extension())
	for _, o := range []struct{ path, apiVersion, kind string }{
		{"/api/v1/nodes", "v1", "Node"},
		{"/api/v1/namespaces/a/services", "v1", "Service"},
		{"/api/v1/namespaces/a/endpoints", "v1", "Endpoints"},
		{"/api/v1/namespaces/a/replicationcontrollers", "v1", "ReplicationController"},
		{"/apis/apps/v1/namespaces/a/deployments", "apps/v1", "Deployment"},
		{"/apis/networking.k8s.io/v1/namespaces/a/ingresses", "networking.k8s.io/v1", "Ingress"},
		{"/apis/resource.k8s.io/v1beta1/deviceclasses", "resource.k8s.io/v1beta1", "DeviceClass"},
	} {
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n"}}`, o.apiVersion, o.kind)
		resp, err := srv.Client().Post(srv.URL+o.path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s", o.path, resp.Status)
		}
	}
	stored, err := backend.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range stored.KVs {
		keys = append(keys, kv.Key)
	}
	want := []string{
		"/registry/controllers/a/n", "/registry/deployments/a/n", "/registry/deviceclasses/n", "/registry/ingress/a/n",
		"/registry/minions/n", "/registry/services/endpoints/a/n", "/registry/services/specs/a/n",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
}

// A kind that is already served is left out.
func TestServedKindsAreLeft(t *testing.T) {
	own := servertest.Untyped("apps/v1", "Deployment")
	srv := servertest.New(t, own, kinds.Extension())
	var list metav1.APIResourceList
	ask(t, srv.Client(), srv.URL+"/apis/apps/v1", &list)
	names := map[string]bool{}
	for _, r := range list.APIResources {
		names[r.Name] = true
		if r.Name == "deployments" && len(r.ShortNames) > 0 {
			t.Error("the kind that was served was replaced")
		}
	}
	if !names["deployments"] || !names["statefulsets"] {
		t.Errorf("there are %v", names)
	}
}
