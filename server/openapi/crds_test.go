package openapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/keelson-dev/keelson/server/openapi"
)

const (
	crdFolder = "testdata/crds"
	crdGroup  = "shapes.example.com"
)

// crdObject describes the objects of one version of a custom resource, as an extension for them does.
type crdObject struct {
	props *apiextensionsv1.JSONSchemaProps
	*structural.Schema
}

func (o *crdObject) OpenAPI() *spec.Schema {
	if o.props == nil {
		return nil
	}
	s, err := structural.OpenAPI(o.props)
	if err != nil {
		panic(err)
	}
	return s
}

func newCRDObject(t testing.TB, props *apiextensionsv1.JSONSchemaProps) *crdObject {
	t.Helper()
	compiled, err := structural.Compile(props)
	if err != nil {
		t.Fatal(err)
	}
	return &crdObject{props, compiled}
}

// crdGroups returns the custom resources that are defined in testdata.
func crdGroups(t testing.TB) []openapi.GroupVersion {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(crdFolder, "definitions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	byVersion := map[string]openapi.GroupVersion{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			gv := byVersion[v.Name]
			gv.Group, gv.Version = crd.Spec.Group, v.Name
			gv.Resources = append(gv.Resources, crdResource(t, crd, v))
			byVersion[v.Name] = gv
		}
	}
	return slices.Collect(maps.Values(byVersion))
}

func crdResource(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) openapi.Resource {
	t.Helper()
	patchTypes := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	r := openapi.Resource{
		Plural: crd.Spec.Names.Plural, Kind: apischema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
		ListKind: crd.Spec.Names.ListKind, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, Verbs: allVerbs, PatchTypes: patchTypes,
		Object: newCRDObject(t, v.Schema.OpenAPIV3Schema), StreamTypes: []string{"application/json;stream=watch"},
	}
	for _, f := range v.SelectableFields {
		r.SelectableFields = append(r.SelectableFields, strings.TrimPrefix(f.JSONPath, "."))
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		r.Subresources = append(r.Subresources, openapi.Subresource{Name: "status", Kind: r.Kind, Verbs: partVerbs, PatchTypes: patchTypes})
	}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		r.Subresources = append(r.Subresources, openapi.Subresource{Name: "scale", Kind: scaleKind, Verbs: partVerbs, PatchTypes: patchTypes})
	}
	return r
}

// Custom resources have the definitions and operations of kube-apiserver's documents, except for the differences that
// customResources removes. The golden files are made from the documents of a server that has the definitions:
//
//	kubectl apply --server-side -f server/openapi/testdata/crds/definitions.yaml
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 KEELSON_WIRE_TOKEN=... KEELSON_WIRE_CA=ca.crt \
//	go test ./server/openapi -run TestCustomResourcesAreThoseOfKubeAPIServer -update
func TestCustomResourcesAreThoseOfKubeAPIServer(t *testing.T) {
	s := openapi.New(openapi.Options{})
	s.Set(crdGroups(t))
	for name, path := range map[string]string{
		"v1.json": "/openapi/v3/apis/" + crdGroup + "/v1", "v1beta1.json": "/openapi/v3/apis/" + crdGroup + "/v1beta1", "v2.json": "/openapi/v2",
	} {
		file := filepath.Join(crdFolder, name)
		if server := os.Getenv("KEELSON_WIRE_SERVER"); server != "" && *update {
			if err := os.WriteFile(file, indented(t, customResources(t, ask(t, server+path))), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if *update {
			t.Fatal("the golden files are made of kube-apiserver's documents: give KEELSON_WIRE_SERVER")
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(indented(t, customResources(t, body(t, get(t, s, path)))))); diff != "" {
			t.Errorf("%s (-kube-apiserver +ours):\n%s", name, diff)
		}
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// customResources returns the definitions and operations of the group crdGroup in a document of either form. References to
// parameters of OpenAPI v2 are resolved. These parts are left out:
//
//   - the list of the group version's resources, which kube-apiserver does not describe for custom resources;
//   - the texts of parameters, which TestDocumentsAreThoseOfKubeAPIServer has;
//   - shardSelector, as there;
//   - parameters and body of deletecollection: kube-apiserver describes there that a collection may be watched, but not
//     DeleteOptions, which it takes.
func customResources(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var d struct {
		Paths                   map[string]map[string]any
		Definitions, Parameters map[string]any
		Components              struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatalf("%v in %.200s", err, document)
	}
	parameters := func(list any) []any {
		out, _ := list.([]any)
		for i, p := range out {
			if ref, ok := p.(map[string]any)["$ref"].(string); ok {
				out[i] = maps.Clone(d.Parameters[strings.TrimPrefix(ref, "#/parameters/")].(map[string]any))
			}
			delete(out[i].(map[string]any), "description")
		}
		out = slices.DeleteFunc(out, func(p any) bool { return p.(map[string]any)["name"] == "shardSelector" })
		slices.SortFunc(out, func(a, b any) int {
			return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
		return out
	}
	paths, definitions := map[string]any{}, map[string]any{}
	for path, item := range d.Paths {
		if !strings.HasPrefix(path, "/apis/"+crdGroup+"/") || strings.HasSuffix(path, "/") {
			continue
		}
		for method, op := range item {
			if method == "parameters" {
				item[method] = parameters(op)
				continue
			}
			op := op.(map[string]any)
			op["parameters"] = parameters(op["parameters"])
			if op["x-kubernetes-action"] == "deletecollection" {
				delete(op, "parameters")
				delete(op, "requestBody")
			}
		}
		paths[path] = item
	}
	for _, all := range []map[string]any{d.Definitions, d.Components.Schemas} {
		for name, definition := range all {
			if strings.HasPrefix(name, "com.example.shapes.") {
				definitions[name] = definition
			}
		}
	}
	return map[string]any{"paths": paths, "definitions": definitions}
}
