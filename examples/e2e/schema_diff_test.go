package e2e_test

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/randfill"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// mergedOtherwise has the only differences between the merge rules of our schemas and those of client-go for types of k8s.io/api,
// with the reason. Those of client-go are made from OpenAPI v2.
var mergedOtherwise = map[string]string{
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString: list true, want false": "OpenAPI v3 has oneOf where v2 has a format; so has kube-apiserver itself. No value of the type is a list",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString: map true, want false":  "as above; no value of the type is an object",
}

// This test compares the merge rules of the types of k8s.io/api in our schemas with the schema in client-go, which is made from
// the documents of kube-apiserver: every type, field by field.
func TestKubernetesTypesMergeAsUpstream(t *testing.T) {
	want, got := upstreamTypes(t), ourTypes(t)
	compare := mergeComparison{want: want, got: got}
	compared, listed := 0, 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if writtenOut(name) {
			continue // compared where it is used; the upstream schema skips it
		}
		def, ok := got[name]
		if !ok {
			t.Errorf("%s: we do not have it", name)
			continue
		}
		compared++
		for _, diff := range compare.atoms(want[name].Atom, def.Atom) {
			if mergedOtherwise[name+diff] == "" {
				t.Error(name + diff)
			} else {
				listed++
			}
		}
	}
	if listed != len(mergedOtherwise) {
		t.Errorf("%d of the %d differences that are allowed for exist; take the others out", listed, len(mergedOtherwise))
	}
	if compared < 900 {
		t.Errorf("only %d types were compared", compared)
	}
}

// mergeComparison compares types of two schemas.
type mergeComparison struct{ want, got map[string]smdschema.TypeDef }

// atoms returns the differences, each with its path in the type.
func (c mergeComparison) atoms(want, got smdschema.Atom) []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case (want.Scalar == nil) != (got.Scalar == nil):
		report(": scalar %v, want %v", got.Scalar != nil, want.Scalar != nil)
	case want.Scalar != nil && *want.Scalar != *got.Scalar:
		report(": scalar is %s, want %s", *got.Scalar, *want.Scalar)
	}
	switch {
	case (want.List == nil) != (got.List == nil):
		report(": list %v, want %v", got.List != nil, want.List != nil)
	case want.List != nil:
		if want.List.ElementRelationship != got.List.ElementRelationship {
			report(": list is %s, want %s", got.List.ElementRelationship, want.List.ElementRelationship)
		}
		if !slices.Equal(want.List.Keys, got.List.Keys) {
			report(": keys %v, want %v", got.List.Keys, want.List.Keys)
		}
		for _, diff := range c.references(want.List.ElementType, got.List.ElementType) {
			report("[]%s", diff)
		}
	}
	switch {
	case (want.Map == nil) != (got.Map == nil):
		report(": map %v, want %v", got.Map != nil, want.Map != nil)
	case want.Map != nil:
		out = append(out, c.maps(want.Map, got.Map)...)
	}
	return out
}

func (c mergeComparison) maps(want, got *smdschema.Map) []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if granular(want.ElementRelationship) != granular(got.ElementRelationship) {
		report(": map is %q, want %q", got.ElementRelationship, want.ElementRelationship)
	}
	for _, diff := range c.references(want.ElementType, got.ElementType) {
		report("[*]%s", diff)
	}
	for _, field := range want.Fields {
		ours, ok := got.FindField(field.Name)
		if !ok {
			report(".%s: we do not have it", field.Name)
			continue
		}
		for _, diff := range c.references(field.Type, ours.Type) {
			report(".%s%s", field.Name, diff)
		}
		if fmt.Sprint(field.Default) != fmt.Sprint(ours.Default) || (field.Default == nil) != (ours.Default == nil) {
			report(".%s: default %#v, want %#v", field.Name, ours.Default, field.Default)
		}
	}
	for _, field := range got.Fields {
		if _, ok := want.FindField(field.Name); !ok {
			report(".%s: upstream does not have it", field.Name)
		}
	}
	return out
}

func granular(r smdschema.ElementRelationship) bool { return r == "" || r == smdschema.Separable }

// references compares the types that two references mean. A name in both schemas is a type that is compared separately. The
// free-form types and RawExtension have names in one schema and are inlined in the other.
func (c mergeComparison) references(want, got smdschema.TypeRef) []string {
	wantName, wantAtom := resolve(c.want, want)
	gotName, gotAtom := resolve(c.got, got)
	var out []string
	if w, g := overriding(want), overriding(got); w != g {
		out = append(out, fmt.Sprintf(": overridden with %q, want %q", g, w))
	}
	switch {
	case wantName == gotName && wantName != "":
	case freeForm(wantName) && freeForm(gotName) && (writtenOut(wantName) || writtenOut(gotName)):
		out = append(out, c.atoms(wantAtom, gotAtom)...)
	default:
		out = append(out, fmt.Sprintf(": type is %q, want %q", gotName, wantName))
	}
	return out
}

func freeForm(name string) bool { return strings.HasPrefix(name, "__") || writtenOut(name) }

func writtenOut(name string) bool {
	return name == "" || name == "io.k8s.apimachinery.pkg.runtime.RawExtension"
}

func resolve(types map[string]smdschema.TypeDef, r smdschema.TypeRef) (string, smdschema.Atom) {
	if r.NamedType == nil {
		return "", r.Inlined
	}
	return *r.NamedType, types[*r.NamedType].Atom
}

func overriding(r smdschema.TypeRef) smdschema.ElementRelationship {
	if r.ElementRelationship == nil {
		return ""
	}
	return *r.ElementRelationship
}

// Random objects of every kind have the same fields by both schemas, and two of them have the same merge result.
func TestKubernetesObjectsMergeAsUpstream(t *testing.T) {
	known := kubernetesKinds(t)
	upstream := applyconfigurations.NewTypeConverter(known.scheme)
	ours, err := managedfields.NewTypeConverter(ourModels(t), false)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Int63()
	fill := objectFiller(seed)
	compared, merged := 0, 0
	for _, gvk := range known.order {
		for range 10 {
			a, b := known.object(gvk), known.object(gvk)
			fill.Fill(a)
			fill.Fill(b)
			a.GetObjectKind().SetGroupVersionKind(gvk)
			b.GetObjectKind().SetGroupVersionKind(gvk)
			want, ok := fieldsAndMerge(t, upstream, a, b)
			if !ok {
				break // client-go has no apply configuration of the kind
			}
			if got, _ := fieldsAndMerge(t, ours, a, b); got != want {
				t.Fatalf("seed %d: %s\n got %s\nwant %s", seed, gvk, got, want)
			}
			compared++
			if strings.Contains(want, "\nmerged ") {
				merged++
			}
		}
	}
	if compared < 1000 || merged < compared/2 {
		t.Errorf("%d pairs of objects were compared and %d merged, which is few", compared, merged)
	}
}

// fieldsAndMerge returns the fields of a, the changes from a to b, and the merge result. ok is false if the converter does not
// have the kind.
func fieldsAndMerge(t *testing.T, c managedfields.TypeConverter, a, b apiruntime.Object) (result string, ok bool) {
	t.Helper()
	one, err := c.ObjectToTyped(a, smdtyped.AllowDuplicates)
	if err != nil && strings.Contains(err.Error(), "no type found") {
		return "", false
	}
	if err != nil {
		return "one: " + err.Error(), true
	}
	two, err := c.ObjectToTyped(b, smdtyped.AllowDuplicates)
	if err != nil {
		return "two: " + err.Error(), true
	}
	fields, err := one.ToFieldSet()
	if err != nil {
		return "fields: " + err.Error(), true
	}
	changes, err := one.Compare(two)
	if err != nil {
		return "compare: " + err.Error(), true
	}
	merged, err := one.Merge(two)
	if err != nil {
		return fmt.Sprintf("fields %s\nchanges %s\nmerge: %v", fields, changes, err), true
	}
	return fmt.Sprintf("fields %s\nchanges %s\nmerged %v", fields, changes, merged.AsValue().Unstructured()), true
}

// objectFiller fills objects with values from a small set, so that two objects have some in common.
func objectFiller(seed int64) *randfill.Filler {
	word := func(c randfill.Continue) string { return string(rune('a' + c.Intn(12))) }
	return randfill.New().NilChance(0.3).NumElements(0, 3).MaxDepth(14).RandSource(rand.NewSource(seed)).Funcs(
		func(s *string, c randfill.Continue) { *s = word(c) },
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<32), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(metav1.Unix(c.Int63n(1<<32), 0).Time)
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(9), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(c.Int31n(9)); c.Bool() {
				*i = intstr.FromString(word(c))
			}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes([]byte(`{"f:spec":{}}`)) },
		func(e *apiruntime.RawExtension, c randfill.Continue) {
			e.Raw = fmt.Appendf(nil, `{%q:[{%q:%d}],%q:{}}`, word(c), word(c), c.Intn(3), word(c)+"x")
		},
		func(m *metav1.TypeMeta, c randfill.Continue) {},
	)
}

// apiKinds are kinds of k8s.io/api.
type apiKinds struct {
	scheme *apiruntime.Scheme
	order  []apischema.GroupVersionKind
}

func (k apiKinds) object(gvk apischema.GroupVersionKind) apiruntime.Object {
	return reflect.New(k.scheme.AllKnownTypes()[gvk]).Interface().(apiruntime.Object)
}

// kubernetesKinds returns the kinds of k8s.io/api in client-go, and those with only an apply configuration.
func kubernetesKinds(t *testing.T) apiKinds {
	t.Helper()
	k := apiKinds{scheme: apiruntime.NewScheme()}
	for _, add := range []func(*apiruntime.Scheme) error{scheme.AddToScheme, imagepolicyv1alpha1.AddToScheme} {
		if err := add(k.scheme); err != nil {
			t.Fatal(err)
		}
	}
	for gvk, typ := range k.scheme.AllKnownTypes() {
		if _, ok := reflect.New(typ).Interface().(metav1.ObjectMetaAccessor); ok && strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			k.order = append(k.order, gvk)
		}
	}
	slices.SortFunc(k.order, func(a, b apischema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return k
}

// upstreamTypes returns the schema of client-go, which every typed value references.
func upstreamTypes(t *testing.T) map[string]smdschema.TypeDef {
	t.Helper()
	known := kubernetesKinds(t)
	gvk := apischema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	obj := known.object(gvk)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	value, err := applyconfigurations.NewTypeConverter(known.scheme).ObjectToTyped(obj)
	if err != nil {
		t.Fatal(err)
	}
	return byName(value.Schema())
}

func ourTypes(t *testing.T) map[string]smdschema.TypeDef {
	t.Helper()
	made, err := schemaconv.ToSchemaFromOpenAPI(ourModels(t), false)
	if err != nil {
		t.Fatal(err)
	}
	return byName(made)
}

func byName(s *smdschema.Schema) map[string]smdschema.TypeDef {
	out := map[string]smdschema.TypeDef{}
	for _, def := range s.Types {
		out[def.Name] = def
	}
	return out
}

// ourModels returns our definitions of all the kinds.
func ourModels(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	known, b := kubernetesKinds(t), schema.NewBuilder(schema.Options{})
	for _, gvk := range known.order {
		b.AddKind(schema.Kind{GVK: gvk, Type: reflect.TypeOf(known.object(gvk))})
	}
	models := map[string]*spec.Schema{}
	for name, s := range b.Definitions() {
		models[name] = &s
	}
	return models
}
