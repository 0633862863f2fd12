package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/runtime/schema/testdata/shop"
	"github.com/keelson-dev/keelson/server/openapi"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var (
	widgetKind = apischema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}
	scaleKind  = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	allVerbs   = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	partVerbs  = []string{"get", "patch", "update"}
	patchTypes = []string{"application/json-patch+json", "application/merge-patch+json"}
)

// shopGroups are a namespaced resource with subresources, a cluster-scoped one that can be read only, and a core
// resource.
func shopGroups(t testing.TB) []openapi.GroupVersion {
	t.Helper()
	docs, err := schema.ParseDocs(shop.Source)
	if err != nil {
		t.Fatal(err)
	}
	return []openapi.GroupVersion{
		{Group: "shop.example.com", Version: "v1", Resources: []openapi.Resource{
			{
				Plural: "widgets", Kind: widgetKind, Namespaced: true, Verbs: allVerbs, PatchTypes: patchTypes, Docs: docs,
				Type: reflect.TypeFor[shop.Widget](), ListType: reflect.TypeFor[runtime.List[shop.Widget]](),
				Subresources: []openapi.Subresource{
					{Name: "status", Kind: widgetKind, Verbs: partVerbs, PatchTypes: patchTypes},
					{Name: "scale", Kind: scaleKind, Type: reflect.TypeFor[autoscalingv1.Scale](), Verbs: partVerbs, PatchTypes: patchTypes},
					{Name: "polish", Kind: widgetKind, Verbs: []string{"create"}},
					{Name: "door", ConnectMethods: []string{"POST", "GET"}},
				},
			},
			{
				Plural: "crates", Kind: apischema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Crate"}, Docs: docs,
				Type: reflect.TypeFor[shop.Crate](), ListType: reflect.TypeFor[shop.CrateList](), Verbs: []string{"get", "list"},
			},
		}},
		{Version: "v1", Resources: []openapi.Resource{{
			Plural: "configmaps", Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true,
			Type: reflect.TypeFor[corev1.ConfigMap](), ListType: reflect.TypeFor[corev1.ConfigMapList](),
			Verbs: []string{"patch"}, PatchTypes: []string{"application/apply-patch+yaml"},
		}}},
	}
}

func shopService(t testing.TB) *openapi.Service {
	s := openapi.New(openapi.Options{Title: "shop", Version: "v1.2.3"})
	s.Set(shopGroups(t))
	return s
}

func get(t testing.TB, s http.Handler, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func body(t testing.TB, r *http.Response) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// index returns the addresses in /openapi/v3 by name.
func index(t testing.TB, s http.Handler) map[string]string {
	t.Helper()
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body(t, get(t, s, "/openapi/v3")), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, entry := range list.Paths {
		out[name] = entry.ServerRelativeURL
	}
	return out
}

func document(t testing.TB, s http.Handler, name string) *spec3.OpenAPI {
	t.Helper()
	var d spec3.OpenAPI
	if err := json.Unmarshal(body(t, get(t, s, "/openapi/v3/"+name)), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

func TestIndexNamesEveryDocument(t *testing.T) {
	s := shopService(t)
	addresses := index(t, s)
	want := []string{"api", "api/v1", "apis", "apis/shop.example.com", "apis/shop.example.com/v1", "version"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(addresses))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, address := range addresses {
		r := get(t, s, address)
		u, err := url.Parse(address)
		if err != nil || u.Path != "/openapi/v3/"+name {
			t.Errorf("%s has the address %s", name, address)
		}
		etag := `"` + u.Query().Get("hash") + `"`
		if r.StatusCode != http.StatusOK || r.Header.Get("Etag") != etag || len(etag) != 130 || strings.ToUpper(etag) != etag {
			t.Errorf("%s: %d, ETag %s", address, r.StatusCode, r.Header.Get("Etag"))
		}
		if got := r.Header.Get("Cache-Control"); got != "public, immutable" {
			t.Errorf("%s: Cache-Control %q", address, got)
		}
	}
}

// Compares paths, names of operations, actions, kinds and parameters, one operation in each line.
func TestOperations(t *testing.T) {
	s := shopService(t)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(index(t, s))) {
		paths := document(t, s, name).Paths.Paths
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			fmt.Fprintf(&out, "%s%s\n", path, names(paths[path].Parameters))
			for _, m := range methods(paths[path]) {
				fmt.Fprintf(&out, "  %-6s %s %s %q", m.name, m.op.OperationId, m.op.Tags, m.op.Description)
				if action, ok := m.op.Extensions.GetString("x-kubernetes-action"); ok {
					fmt.Fprintf(&out, " %s %v", action, m.op.Extensions["x-kubernetes-group-version-kind"])
				}
				fmt.Fprintf(&out, "%s\n", names(m.op.Parameters))
				if b := m.op.RequestBody; b != nil {
					fmt.Fprintf(&out, "         body (required: %v)%s\n", b.Required, content(b.Content))
				}
				for _, code := range slices.Sorted(maps.Keys(m.op.Responses.StatusCodeResponses)) {
					fmt.Fprintf(&out, "         %d%s\n", code, content(m.op.Responses.StatusCodeResponses[code].Content))
				}
			}
		}
	}
	golden(t, "operations.txt", out.String())
}

type method struct {
	name string
	op   *spec3.Operation
}

func methods(p *spec3.Path) []method {
	all := []method{{"GET", p.Get}, {"POST", p.Post}, {"PUT", p.Put}, {"PATCH", p.Patch}, {"DELETE", p.Delete}}
	return slices.DeleteFunc(all, func(m method) bool { return m.op == nil })
}

func names(parameters []*spec3.Parameter) string {
	var out strings.Builder
	for _, p := range parameters {
		fmt.Fprintf(&out, " %s:%s(%s)", p.In, p.Name, p.Schema.Type[0])
	}
	return out.String()
}

func content(media map[string]*spec3.MediaType) string {
	var out strings.Builder
	for _, mediaType := range slices.Sorted(maps.Keys(media)) {
		ref := media[mediaType].Schema.Ref.String()
		fmt.Fprintf(&out, " %s=%s", mediaType, ref[strings.LastIndexByte(ref, '/')+1:])
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), go test -update rewrites it:\n%s", path, diff)
	}
}

// kubectl relies on validation by the server only if the PATCH operation has the parameter fieldValidation. It ignores parameters
// of the path.
func TestEveryPatchHasTheParametersClientsLookFor(t *testing.T) {
	s, seen := shopService(t), 0
	for name := range index(t, s) {
		for path, item := range document(t, s, name).Paths.Paths {
			if item.Patch == nil {
				continue
			}
			seen++
			for _, want := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
				if !slices.ContainsFunc(item.Patch.Parameters, func(p *spec3.Parameter) bool { return p.Name == want && p.In == "query" && p.Description != "" }) {
					t.Errorf("PATCH %s has no parameter %s", path, want)
				}
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d PATCH operations, want 4", seen)
	}
}

func TestEveryReferenceResolves(t *testing.T) {
	s := shopService(t)
	for name := range index(t, s) {
		checkReferences(t, body(t, get(t, s, "/openapi/v3/"+name)), "#/components/schemas/", "components", "schemas")
	}
	checkReferences(t, body(t, get(t, s, "/openapi/v2")), "#/definitions/", "definitions")
}

func checkReferences(t *testing.T, document []byte, prefix string, where ...string) {
	t.Helper()
	var root any
	if err := json.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	definitions := root
	for _, key := range where {
		definitions = definitions.(map[string]any)[key]
	}
	seen := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				seen++
				target, ok := strings.CutPrefix(ref, prefix)
				if _, defined := definitions.(map[string]any)[target]; !ok || !defined {
					t.Errorf("%s is not there", ref)
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(root)
	if seen == 0 {
		t.Error("no reference begins with " + prefix)
	}
}

// The libraries that kubectl and client-go use find the kinds in the documents.
func TestDocumentsParseAsClientsParseThem(t *testing.T) {
	s := shopService(t)
	for name := range index(t, s) {
		d, err := openapi_v3.ParseDocument(body(t, get(t, s, "/openapi/v3/"+name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := openapiproto.NewOpenAPIV3Data(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	d2, err := openapi_v2.ParseDocument(body(t, get(t, s, "/openapi/v2")))
	if err != nil {
		t.Fatal(err)
	}
	models, err := openapiproto.NewOpenAPIData(d2)
	if err != nil {
		t.Fatal(err)
	}
	widget, ok := models.LookupModel("com.example.shop.v1.Widget").(*openapiproto.Kind)
	if !ok {
		t.Fatalf("the model is %T", models.LookupModel("com.example.shop.v1.Widget"))
	}
	if diff := cmp.Diff([]string{"apiVersion", "kind", "metadata", "spec", "status"}, widget.Keys()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(widget.GetExtensions()["x-kubernetes-group-version-kind"]); !strings.Contains(got, "shop.example.com") {
		t.Errorf("kinds of the model: %s", got)
	}
}

// The Go value of a document is the same after encoding and decoding, as JSON and as protobuf.
func TestProtobufSaysTheSame(t *testing.T) {
	s := shopService(t)
	for _, name := range []string{"apis/shop.example.com/v1", "api/v1", "version"} {
		want, err := openapi_v3.ParseDocument(body(t, get(t, s, "/openapi/v3/"+name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, accept := range []string{
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
		} {
			r := get(t, s, "/openapi/v3/"+name, "Accept", accept)
			if got := r.Header.Get("Content-Type"); got != "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" {
				t.Errorf("%s: Content-Type %s", accept, got)
			}
			var got openapi_v3.Document
			if err := proto.Unmarshal(body(t, r), &got); err != nil || !proto.Equal(want, &got) {
				t.Errorf("%s as %s differs from its JSON: %v", name, accept, err)
			}
		}
	}
	want, err := openapi_v2.ParseDocument(body(t, get(t, s, "/openapi/v2")))
	if err != nil {
		t.Fatal(err)
	}
	var got openapi_v2.Document
	r := get(t, s, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	if err := proto.Unmarshal(body(t, r), &got); err != nil || !proto.Equal(want, &got) {
		t.Errorf("the v2 document differs from its JSON: %v", err)
	}
}

func TestV2HasThePathsOfAllDocuments(t *testing.T) {
	s := shopService(t)
	var swagger spec.Swagger
	if err := json.Unmarshal(body(t, get(t, s, "/openapi/v2")), &swagger); err != nil {
		t.Fatal(err)
	}
	for name := range index(t, s) {
		for path, item := range document(t, s, name).Paths.Paths {
			for _, m := range methods(item) {
				ops := swagger.Paths.Paths[path]
				for method, op := range map[string]*spec.Operation{"GET": ops.Get, "POST": ops.Post, "PUT": ops.Put, "PATCH": ops.Patch, "DELETE": ops.Delete} {
					if method == m.name && (op == nil || op.ID != m.op.OperationId) {
						t.Errorf("%s %s is missing or differs", m.name, path)
					}
				}
			}
		}
	}
	patch := swagger.Paths.Paths["/apis/shop.example.com/v1/namespaces/{namespace}/widgets/{name}"].Patch
	if diff := cmp.Diff(patchTypes, patch.Consumes); diff != "" {
		t.Errorf("patch types (-want +got):\n%s", diff)
	}
}

func TestV2JoinsTheKindsOfATypeThatGroupsShare(t *testing.T) {
	s := openapi.New(openapi.Options{})
	var groups []openapi.GroupVersion
	for _, group := range []string{"a.example.com", "b.example.com"} {
		groups = append(groups, openapi.GroupVersion{Group: group, Version: "v1", Resources: []openapi.Resource{{
			Plural: "things", Kind: apischema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"}, Verbs: []string{"delete"},
		}}})
	}
	s.Set(groups)
	var swagger spec.Swagger
	if err := json.Unmarshal(body(t, get(t, s, "/openapi/v2")), &swagger); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(swagger.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].Extensions["x-kubernetes-group-version-kind"])
	want := "[map[group: kind:DeleteOptions version:v1] map[group:a.example.com kind:DeleteOptions version:v1] map[group:b.example.com kind:DeleteOptions version:v1]]"
	if got != want {
		t.Errorf("DeleteOptions stands for %s, want %s", got, want)
	}
	got = fmt.Sprint(swagger.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.Status"].Extensions["x-kubernetes-group-version-kind"])
	if want := "[map[group: kind:Status version:v1]]"; got != want {
		t.Errorf("Status, which is the same for all, stands for %s, want %s", got, want)
	}
}

func TestGroupsInTheNamesOfOperations(t *testing.T) {
	for group, want := range map[string]string{
		"":                          "readCoreV1beta1Thing core_v1beta1",
		"apps":                      "readAppsV1beta1Thing apps_v1beta1",
		"rbac.authorization.k8s.io": "readRbacAuthorizationV1beta1Thing rbacAuthorization_v1beta1",
		"my-group.example.io":       "readMyGroupExampleIoV1beta1Thing myGroupExampleIo_v1beta1",
	} {
		s := openapi.New(openapi.Options{})
		gv := openapi.GroupVersion{Group: group, Version: "v1beta1", Resources: []openapi.Resource{{
			Plural: "things", Kind: apischema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "Thing"}, Verbs: []string{"get"},
		}}}
		s.Set([]openapi.GroupVersion{gv})
		name := "apis/" + group + "/v1beta1"
		if group == "" {
			name = "api/v1beta1"
		}
		op := document(t, s, name).Paths.Paths["/"+name+"/things/{name}"].Get
		if got := op.OperationId + " " + op.Tags[0]; got != want {
			t.Errorf("%q: %s, want %s", group, got, want)
		}
	}
}
