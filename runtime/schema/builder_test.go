package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/runtime/schema/testdata/shop"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var shopV1 = apischema.GroupVersion{Group: "shop.example.com", Version: "v1"}

func shopDocs(t testing.TB) *schema.Docs {
	t.Helper()
	docs, err := schema.ParseDocs(shop.Source)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func shopKinds() []schema.Kind {
	return []schema.Kind{
		{GVK: shopV1.WithKind("Widget"), Type: reflect.TypeFor[shop.Widget](), ListType: reflect.TypeFor[runtime.List[shop.Widget]]()},
		{GVK: shopV1.WithKind("Crate"), Type: reflect.TypeFor[*shop.Crate](), ListType: reflect.TypeFor[shop.CrateList]()},
	}
}

func shopBuilder(t testing.TB) *schema.Builder {
	b := schema.NewBuilder(schema.Options{GroupVersion: shopV1, Docs: shopDocs(t)})
	for _, k := range shopKinds() {
		b.AddKind(k)
	}
	b.AddType(reflect.TypeFor[metav1.DeleteOptions]())
	b.AddType(reflect.TypeFor[metav1.Status]())
	return b
}

func TestDefinitionsOfAShop(t *testing.T) {
	definitions := shopBuilder(t).Definitions()
	golden(t, "shop.v3.json", definitions)
	golden(t, "shop.v2.json", schema.V2(definitions))
	golden(t, "shop.v3.json", definitions) // V2 did not change its argument
}

// golden compares a value, as indented JSON, with a file in testdata.
func golden(t *testing.T, file string, value any) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, append(body, '\n'), "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), go test -update rewrites it:\n%s", path, diff)
	}
}

func TestEveryReferenceResolves(t *testing.T) {
	v3 := shopBuilder(t).Definitions()
	for prefix, definitions := range map[string]map[string]spec.Schema{schema.RefPrefix: v3, "#/definitions/": schema.V2(v3)} {
		seen := 0
		for name, s := range definitions {
			for _, ref := range references(t, s) {
				seen++
				target, ok := strings.CutPrefix(ref, prefix)
				if _, defined := definitions[target]; !ok || !defined {
					t.Errorf("%s refers to %s, which is not there", name, ref)
				}
			}
		}
		if seen < 20 {
			t.Errorf("only %d references begin with %s", seen, prefix)
		}
	}
}

// references returns the text of every $ref in a schema.
func references(t *testing.T, s spec.Schema) []string {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if ref, ok := inner.(string); ok && key == "$ref" {
					out = append(out, ref)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(value)
	return out
}

func TestTheSameTypesGiveTheSameBytes(t *testing.T) {
	want, err := json.Marshal(shopBuilder(t).Definitions())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		b := schema.NewBuilder(schema.Options{GroupVersion: shopV1, Docs: shopDocs(t)})
		b.AddType(reflect.TypeFor[metav1.Status]())
		kinds := shopKinds()
		slices.Reverse(kinds)
		for _, k := range kinds {
			b.AddKind(k)
			b.AddKind(k)
		}
		b.AddType(reflect.TypeFor[*metav1.DeleteOptions]())
		got, err := json.Marshal(b.Definitions())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("another order gave other definitions: %s", diff)
		}
	}
}

func TestNamesOfDefinitions(t *testing.T) {
	type Widget struct{ A int } // as the kind is called
	for _, tc := range []struct {
		what string
		gv   apischema.GroupVersion
		add  func(*schema.Builder) string
		want string
	}{
		{"a kind", shopV1, func(b *schema.Builder) string { return b.AddKind(shopKinds()[0]) }, "com.example.shop.v1.Widget"},
		{"a kind of the core group", apischema.GroupVersion{Version: "v1"}, func(b *schema.Builder) string {
			k := shopKinds()[0]
			k.GVK = apischema.GroupVersionKind{Version: "v1", Kind: "Widget"}
			return b.AddKind(k)
		}, "v1.Widget"},
		{"a kind of Kubernetes", shopV1, func(b *schema.Builder) string {
			return b.AddKind(schema.Kind{GVK: autoscalingv1.SchemeGroupVersion.WithKind("Scale"), Type: reflect.TypeFor[autoscalingv1.Scale]()})
		}, "io.k8s.api.autoscaling.v1.Scale"},
		{"a kind of another group", shopV1, func(b *schema.Builder) string {
			return b.AddKind(schema.Kind{GVK: apischema.GroupVersionKind{Group: "other.org", Version: "v2", Kind: "Offer"}, Type: reflect.TypeFor[shop.Crate]()})
		}, "org.other.v2.Offer"},
		{"a kind without a Go type", shopV1, func(b *schema.Builder) string {
			return b.AddKind(schema.Kind{GVK: shopV1.WithKind("Ghost")})
		}, "com.example.shop.v1.Ghost"},
		{"a struct", shopV1, func(b *schema.Builder) string { return b.AddType(reflect.TypeFor[shop.Part]()) }, "com.example.shop.v1.Part"},
		{"a generic struct", shopV1, func(b *schema.Builder) string { return b.AddType(reflect.TypeFor[shop.Page[*shop.Part]]()) }, "com.example.shop.v1.Page_Part"},
		{"a struct of Kubernetes", shopV1, func(b *schema.Builder) string { return b.AddType(reflect.TypeFor[metav1.ObjectMeta]()) }, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
		{"a struct named like a kind", shopV1, func(b *schema.Builder) string {
			b.AddKind(shopKinds()[0])
			return b.AddType(reflect.TypeFor[Widget]())
		}, "com.example.shop.v1.schema_test.Widget"},
		{"a struct named like another of its package", shopV1, func(b *schema.Builder) string {
			type Part struct{ B int }
			b.AddType(reflect.TypeFor[shop.Part]())
			b.AddType(reflect.TypeFor[Part]())
			return b.AddType(otherPart())
		}, "com.example.shop.v1.schema_test.Part_2"},
		{"what is not a struct", shopV1, func(b *schema.Builder) string { return b.AddType(reflect.TypeFor[[]string]()) }, ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			b := schema.NewBuilder(schema.Options{GroupVersion: tc.gv})
			if got := tc.add(b); got != tc.want {
				t.Errorf("named %q, want %q", got, tc.want)
			}
			if _, ok := b.Definitions()[tc.want]; !ok && tc.want != "" {
				t.Errorf("%s is not defined", tc.want)
			}
		})
	}
}

func otherPart() reflect.Type {
	type Part struct{ C int }
	return reflect.TypeFor[Part]()
}

func TestKindsAreMarked(t *testing.T) {
	definitions := shopBuilder(t).Definitions()
	for name, want := range map[string][]any{
		"com.example.shop.v1.Widget":     {kind("shop.example.com", "v1", "Widget")},
		"com.example.shop.v1.WidgetList": {kind("shop.example.com", "v1", "WidgetList")},
		"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions": {
			kind("", "v1", "DeleteOptions"), kind("shop.example.com", "v1", "DeleteOptions"),
		},
		"io.k8s.apimachinery.pkg.apis.meta.v1.Status": {kind("", "v1", "Status")},
		"com.example.shop.v1.WidgetSpec":              nil,
	} {
		got, _ := definitions[name].Extensions["x-kubernetes-group-version-kind"].([]any)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTypesOfTheCoreGroupAreOfOneKind(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Version: "v1"}})
	name := b.AddType(reflect.TypeFor[metav1.DeleteOptions]())
	got := b.Definitions()[name].Extensions["x-kubernetes-group-version-kind"]
	if diff := cmp.Diff([]any{kind("", "v1", "DeleteOptions")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func kind(group, version, kind string) map[string]any {
	return map[string]any{"group": group, "version": version, "kind": kind}
}

// Server-side apply and strategic merge patch use the merge rules in the definition of ObjectMeta that kube-apiserver publishes.
func TestObjectMetaMergesAsInKubernetes(t *testing.T) {
	meta := shopBuilder(t).Definitions()["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
	for property, want := range map[string]spec.Extensions{
		"finalizers":    {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
		"managedFields": {"x-kubernetes-list-type": "atomic"},
		"ownerReferences": {
			"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"uid"},
			"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
		},
		"labels": nil,
	} {
		if diff := cmp.Diff(want, meta.Properties[property].Extensions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", property, diff)
		}
	}
	if text := meta.Properties["name"].Description; !strings.HasPrefix(text, "Name must be unique within a namespace.") {
		t.Errorf("name is described as %q", text)
	}
}

func TestTypesOfKubernetesInsideAKind(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: shopV1})
	b.AddType(reflect.TypeFor[corev1.PodTemplateSpec]())
	definitions := b.Definitions()
	containers := definitions["io.k8s.api.core.v1.PodSpec"].Properties["containers"]
	if got := containers.Extensions["x-kubernetes-patch-merge-key"]; got != "name" {
		t.Errorf("containers merge by %v, want name", got)
	}
	for name := range definitions {
		if !strings.HasPrefix(name, "io.k8s.") {
			t.Errorf("definition %s does not have its name in Kubernetes", name)
		}
	}
}
