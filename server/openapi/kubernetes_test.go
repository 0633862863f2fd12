package openapi_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/server/openapi"
)

const kubernetesDigest = "kubernetes.txt"

// Kinds of k8s.io/api have the operations and definitions of kube-apiserver's documents, except for the parts that structure
// removes. The digest is made from the documents of a server with these kinds:
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 KEELSON_WIRE_TOKEN=... KEELSON_WIRE_CA=ca.crt \
//	go test ./server/openapi -run TestDocumentsAreThoseOfKubeAPIServer -update
//
// With a server but without -update, its documents are compared, word by word.
func TestDocumentsAreThoseOfKubeAPIServer(t *testing.T) {
	s := openapi.New(openapi.Options{})
	s.Set(kubernetesGroups())
	ours, theirs := map[string]map[string]any{}, map[string]map[string]any{}
	for _, name := range []string{"api", "apis", "version", "api/v1", "apis/apps", "apis/apps/v1", "apis/coordination.k8s.io/v1", "apis/events.k8s.io/v1"} {
		ours[name] = structure(t, body(t, get(t, s, "/openapi/v3/"+name)))
		if server := os.Getenv("KEELSON_WIRE_SERVER"); server != "" {
			theirs[name] = structure(t, ask(t, server+"/openapi/v3/"+name))
			maps.DeleteFunc(theirs[name], func(key string, _ any) bool { return ours[name][key] == nil })
			if diff := cmp.Diff(theirs[name], ours[name]); diff != "" {
				t.Errorf("%s (-kube-apiserver +ours):\n%s", name, diff)
			}
		}
	}
	if *update && len(theirs) == 0 {
		t.Fatal("the digest is made of kube-apiserver's documents: give KEELSON_WIRE_SERVER")
	}
	if *update {
		golden(t, kubernetesDigest, digest(t, theirs))
		return
	}
	want, err := os.ReadFile("testdata/" + kubernetesDigest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), digest(t, ours)); diff != "" {
		t.Errorf("(-kube-apiserver +ours), with KEELSON_WIRE_SERVER it says what differs:\n%s", diff)
	}
}

func kubernetesGroups() []openapi.GroupVersion {
	types := []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	resource := func(gv apischema.GroupVersion, plural string, kind, list reflect.Type, without string, subs ...openapi.Subresource) openapi.Resource {
		for i := range subs {
			subs[i].PatchTypes = types
		}
		return openapi.Resource{
			Plural: plural, Kind: gv.WithKind(kind.Name()), Namespaced: plural != "namespaces", Type: kind, ListType: list,
			Verbs:      slices.DeleteFunc(slices.Clone(allVerbs), func(verb string) bool { return verb == without }),
			PatchTypes: types, Subresources: subs, ReturnsDeleted: plural == "pods" || plural == "services",
		}
	}
	status := openapi.Subresource{Name: "status", Verbs: partVerbs}
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []openapi.GroupVersion{
		{Version: "v1", Resources: []openapi.Resource{
			resource(core, "configmaps", reflect.TypeFor[corev1.ConfigMap](), reflect.TypeFor[corev1.ConfigMapList](), ""),
			resource(core, "secrets", reflect.TypeFor[corev1.Secret](), reflect.TypeFor[corev1.SecretList](), ""),
			resource(core, "events", reflect.TypeFor[corev1.Event](), reflect.TypeFor[corev1.EventList](), ""),
			resource(core, "pods", reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.PodList](), "", status),
			resource(core, "services", reflect.TypeFor[corev1.Service](), reflect.TypeFor[corev1.ServiceList](), "", status),
			resource(core, "namespaces", reflect.TypeFor[corev1.Namespace](), reflect.TypeFor[corev1.NamespaceList](), "deletecollection",
				status, openapi.Subresource{Name: "finalize", Verbs: []string{"update"}}),
		}},
		{Group: apps.Group, Version: apps.Version, Resources: []openapi.Resource{
			resource(apps, "deployments", reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[appsv1.DeploymentList](), "",
				status, openapi.Subresource{Name: "scale", Kind: scaleKind, Verbs: partVerbs}),
		}},
		{Group: coordinationv1.GroupName, Version: "v1", Resources: []openapi.Resource{
			resource(coordinationv1.SchemeGroupVersion, "leases", reflect.TypeFor[coordinationv1.Lease](), reflect.TypeFor[coordinationv1.LeaseList](), ""),
		}},
		{Group: eventsv1.GroupName, Version: "v1", Resources: []openapi.Resource{
			resource(eventsv1.SchemeGroupVersion, "events", reflect.TypeFor[eventsv1.Event](), reflect.TypeFor[eventsv1.EventList](), ""),
		}},
	}
}

// structure returns the paths and definitions of a document, without
//
//   - protobuf as a form of objects, shardSelector, and deleteCollection's ignoreStoreReadErrorWithClusterBreakingPotential:
//     Keelson has none of them, and kube-apiserver refuses the last;
//   - the deprecated paths of watches, which are served but not described, as kube-apiserver does with custom resources;
//   - the texts of definitions: some types have no SwaggerDoc, and the sentences about the values of enumerations are
//     in none; and with a text a reference is in allOf;
//   - x-kubernetes-unions, which no client reads since unions are not normalized any more;
//   - the groups that meta kinds such as DeleteOptions have, which are those that a server serves;
//   - that a RawExtension may have any fields, which kube-apiserver does not say of it.
func structure(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var d struct {
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatalf("%v in %.200s", err, document)
	}
	out := map[string]any{}
	for path, item := range d.Paths {
		for method, op := range item.(map[string]any) {
			if !strings.Contains(path, "/watch/") {
				out[path+" "+method] = strip(op, false)
			}
		}
	}
	for name, definition := range d.Components.Schemas {
		definition := strip(definition, true).(map[string]any)
		if strings.HasPrefix(name, "io.k8s.apimachinery.") {
			delete(definition, "x-kubernetes-group-version-kind")
		}
		if strings.HasSuffix(name, ".RawExtension") {
			delete(definition, "x-kubernetes-preserve-unknown-fields")
		}
		out[name] = definition
	}
	return out
}

func strip(v any, texts bool) any {
	switch v := v.(type) {
	case []any:
		v = slices.DeleteFunc(v, func(x any) bool {
			p, _ := x.(map[string]any)
			return p["in"] == "query" && (p["name"] == "shardSelector" || p["name"] == "ignoreStoreReadErrorWithClusterBreakingPotential" && p["description"] != nil && !texts)
		})
		for i := range v {
			v[i] = strip(v[i], texts)
		}
		return v
	case map[string]any:
		maps.DeleteFunc(v, func(key string, x any) bool {
			_, isText := x.(string)
			return strings.HasPrefix(key, "application/vnd.kubernetes.protobuf") || key == "x-kubernetes-unions" || texts && isText && key == "description"
		})
		for key, x := range v {
			v[key] = strip(x, texts)
		}
		if all, ok := v["allOf"].([]any); ok && texts && len(v) == 1 && len(all) == 1 {
			return all[0]
		}
		return v
	}
	return v
}

// digest has a line for each part of the documents.
func digest(t *testing.T, documents map[string]map[string]any) string {
	t.Helper()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		fmt.Fprintf(&out, "%s\n", name)
		for _, key := range slices.Sorted(maps.Keys(documents[name])) {
			text, err := json.Marshal(documents[name][key]) // members are sorted
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "  %s %x\n", key, sha256.Sum256(text))
		}
	}
	return out.String()
}

// ask asks another server.
func ask(t *testing.T, url string) []byte {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := os.Getenv("KEELSON_WIRE_CA"); path != "" {
		ca, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("KEELSON_WIRE_TOKEN"))
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, answer.StatusCode, err)
	}
	return text
}
