package patch

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

type (
	namedText  string
	namedInt   int16
	namedBytes []byte
	namedByte  byte
	loudByte   byte // writes itself
	inlined    struct {
		A string         `json:"a"`
		B map[string]int `json:"b,omitempty"`
	}
	deepest struct {
		X string `json:"x"`
		Y string `json:"y"`
		Z string `json:"z"`
	}
	// Deepest to Deep1 are inlined in each other.
	Deepest deepest
	Deep3   struct {
		Deepest `json:",inline"`
		C       string `json:"c"`
	}
	Deep2 struct {
		Deep3 `json:",inline"`
		B     string `json:"b"`
	}
	Deep1 struct {
		Deep2 `json:",inline"`
		A     string `json:"a"`
	}
	recursive struct {
		Name string               `json:"name,omitempty"`
		Next *recursive           `json:"next,omitempty"`
		All  []recursive          `json:"all,omitempty"`
		By   map[string]recursive `json:"by,omitempty"`
	}
	valueMarshaler   struct{ hidden string }
	pointerMarshaler struct{ Shown string }
	textMarshaler    struct{ hidden string }
	textKey          string
	shadow           struct {
		Inline `json:",inline"`
		A      string `json:"a"`
	}
	// Inline is embedded.
	Inline       inlined
	unexported   struct{ inlined }
	withPointer  struct{ *Inline }
	optionalOnes struct {
		S string            `json:"s,omitempty"`
		N int32             `json:"n,omitempty"`
		F float64           `json:"f,omitempty"`
		B bool              `json:"b,omitempty"`
		P *string           `json:"p,omitempty"`
		M map[string]string `json:"m,omitempty"`
		L []int64           `json:"l,omitempty"`
		O inlined           `json:"o,omitempty"`
		T metav1.Time       `json:"t,omitempty"`
		Z inlined           `json:"z,omitzero"`
		U time.Time         `json:"u,omitzero"`
		Y []byte            `json:"y,omitempty"`
	}
	requiredOnes struct {
		S string            `json:"s"`
		N int8              `json:"n"`
		F float64           `json:"f"`
		B bool              `json:"b"`
		P *string           `json:"p"`
		M map[string]string `json:"m"`
		L []int64           `json:"l"`
		O *inlined          `json:"o"`
		T *metav1.Time      `json:"t"`
		Y []byte            `json:"y"`
		D time.Duration
	}
)

func (valueMarshaler) MarshalJSON() ([]byte, error)    { return []byte(`{"told":1}`), nil }
func (*pointerMarshaler) MarshalJSON() ([]byte, error) { return []byte(`"told"`), nil }
func (loudByte) MarshalJSON() ([]byte, error)          { return []byte(`"!"`), nil }
func (textMarshaler) MarshalText() ([]byte, error)     { return []byte("told"), nil }
func (textKey) MarshalText() ([]byte, error)           { return []byte("told"), nil }

// sight is what two ways of looking at a value of a Go type see.
type sight struct {
	name  string
	plain bool // whether isPlain may say yes: no where the two differ, or where nobody can be sure
	look  func(t *testing.T, plain bool)
}

// see is the sight of a Resource with a spec of type T.
func see[T any](name string, plain bool, values ...T) sight {
	return sight{name, plain, func(t *testing.T, plain bool) {
		s := runtime.NewScheme()
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
		if err := runtime.Register[*runtime.Resource[T, struct{}]](s, gvk, runtime.KindOptions[*runtime.Resource[T, struct{}]]{}); err != nil {
			t.Fatal(err)
		}
		known, err := NewModels(s).of(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if known.plain != plain {
			t.Fatalf("isPlain says %v", known.plain)
		}
		if !plain {
			return
		}
		for _, value := range values {
			obj := &runtime.Resource[T, struct{}]{Spec: value}
			obj.SetGroupVersionKind(gvk)
			sameSights(t, known, obj)
		}
		fill := filler(1)
		for range 100 {
			obj := &runtime.Resource[T, struct{}]{}
			fill.Fill(&obj.Spec)
			fill.Fill(&obj.Labels)
			obj.SetGroupVersionKind(gvk)
			sameSights(t, known, obj)
		}
	}}
}

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 3).MaxDepth(8).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e9), resource.DecimalSI)
		},
		func(q *intstr.IntOrString, c randfill.Continue) {
			*q = intstr.FromInt32(c.Int31n(9))
			if c.Bool() {
				*q = intstr.FromString(c.String(3))
			}
		},
		func(m *metav1.MicroTime, c randfill.Continue) { *m = metav1.UnixMicro(c.Int63n(2e9), c.Int63n(1e6)) },
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(2e9), 0) },
		func(m *time.Time, c randfill.Continue) { *m = time.Unix(c.Int63n(2e9), 0).UTC() },
		func(m *apiruntime.RawExtension, c randfill.Continue) { m.Raw = []byte(`{"a":[1,1.5,null,{"b":"c"}]}`) },
		func(m *json.RawMessage, c randfill.Continue) { *m = json.RawMessage(`[1,{"a":9007199254740993}]`) },
		func(m *metav1.FieldsV1, c randfill.Continue) { *m = metav1.FieldsV1{Raw: []byte(`{"f:a":{}}`)} },
		func(s *string, c randfill.Continue) { *s = c.String(5) },
		func(f *float64, c randfill.Continue) { *f = float64(c.Int63n(1000)) / 8 },
	)
}

// sameSights compares what structured-merge-diff sees of obj by reflection and in its JSON.
func sameSights(t *testing.T, known *model, obj runtime.Object) {
	t.Helper()
	text, err := codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if _, err := codec.Unmarshal(text, &fields, codec.Ignore); err != nil {
		t.Fatal(err)
	}
	byText, err := known.parse.FromUnstructured(fields, typed.AllowDuplicates)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	byReflection, err := known.parse.FromStructured(obj, typed.AllowDuplicates)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	difference, err := byText.Compare(byReflection)
	if err != nil || !difference.IsSame() {
		t.Fatalf("%v %v: %s", err, difference, text)
	}
	a, errA := byText.ToFieldSet()
	b, errB := byReflection.ToFieldSet()
	if errA != nil || errB != nil || !a.Equals(b) {
		t.Fatalf("%v %v\n%v\n%v", errA, errB, a, b)
	}
	seen, err := json.Marshal(byReflection.AsValue().Unstructured())
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(seen, want) {
		t.Fatalf("by reflection %s\nby JSON       %s", seen, want)
	}
}

func TestIsPlain(t *testing.T) {
	s := "x"
	for _, c := range []sight{
		see[inlined]("struct", true),
		see[struct {
			A namedText `json:"a"`
			B namedInt  `json:"b"`
			C map[namedText]namedInt
			D []namedText
		}]("named types", true),
		see[optionalOnes]("optional", true, optionalOnes{}, optionalOnes{P: new(string), M: map[string]string{}, L: []int64{}, Y: []byte{}}),
		see[requiredOnes]("required", true, requiredOnes{}, requiredOnes{P: &s, M: map[string]string{}, L: []int64{math.MaxInt64, math.MinInt64}, Y: []byte{}, T: &metav1.Time{}}),
		see[struct {
			A []byte       `json:"a"`
			B namedBytes   `json:"b"`
			C [][]byte     `json:"c"`
			D *[]byte      `json:"d"`
			E []namedBytes `json:"e"`
		}]("bytes", true),
		see[recursive]("recursive", true, recursive{Next: &recursive{Next: &recursive{By: map[string]recursive{"a": {}}}}}),
		see[struct {
			Inline `json:",inline"`
			C      string `json:"c"`
		}]("inlined", true),
		see[struct {
			A string `json:"-"`
			B string `json:"-,"`
		}]("left out", true),
		see[struct {
			A resource.Quantity        `json:"a"`
			B intstr.IntOrString       `json:"b"`
			C metav1.MicroTime         `json:"c"`
			D apiruntime.RawExtension  `json:"d"`
			E *apiruntime.RawExtension `json:"e,omitempty"`
			F json.RawMessage          `json:"f"`
			G valueMarshaler           `json:"g"`
			H map[string]valueMarshaler
			I []*valueMarshaler
			J corev1.ResourceList
			K *metav1.FieldsV1
		}]("marshalers", true),

		see[struct {
			A int64 `json:"a,string"`
		}](",string", false),
		see[struct {
			A uint64 `json:"a"`
		}]("uint64", false),
		see[struct {
			A uint `json:"a"`
		}]("uint", false),
		see[struct{ A [2]int }]("array", false),
		see[struct{ A any }]("interface", false),
		see[struct{ A map[string]any }]("map of interfaces", false),
		see[struct{ A textMarshaler }]("text marshaler", false),
		see[struct{ A *textMarshaler }]("pointer to a text marshaler", false),
		see[struct{ A map[textKey]string }]("text keys", false),
		see[struct{ A map[int]string }]("integer keys", false),
		see[struct{ Inline }]("untagged embedding", false),
		see[struct {
			Inline `json:"inline"`
		}]("embedding with a name", true),
		see[struct {
			A Inline `json:",inline"`
		}]("inline without embedding", false),
		see[withPointer]("embedded pointer", false),
		see[struct {
			*Inline `json:",inline"`
		}]("inlined pointer", false),
		see[unexported]("embedded unexported struct", false),
		see[shadow]("shadowed", false),
		see[struct{ A []namedByte }]("named bytes", false),
		see[struct{ A **string }]("pointer to a pointer", false),

		see[struct{ A []loudByte }]("bytes that write themselves", false),
		see[struct{ A json.Number }]("json.Number", false),
		see("float32", false, struct{ A float32 }{0.1}),
		see[struct{ A map[string]pointerMarshaler }]("pointer receivers in a map", false),
		see[Deep1]("four levels of inlining", false),
		see("invalid name", false, struct {
			A string `json:"a\"b"`
		}{"x"}),
	} {
		t.Run(c.name, func(t *testing.T) { c.look(t, c.plain) })
	}
}

// TestIsPlainOfKubernetes fills objects of k8s.io/api at random, in which nearly everything occurs.
func TestIsPlainOfKubernetes(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme} {
		if _, err := s.Import(add); err != nil {
			t.Fatal(err)
		}
	}
	models, fill := NewModels(s), filler(2)
	plain := 0
	for _, group := range s.GroupKinds() {
		for _, kind := range s.Versions(group) {
			known, err := models.of(kind.GVK)
			if err != nil {
				t.Fatal(err)
			}
			if !known.plain {
				t.Logf("not plain: %v", kind.GVK)
				continue
			}
			plain++
			for range 3 {
				obj := kind.New()
				fill.Fill(obj)
				obj.GetObjectKind().SetGroupVersionKind(kind.GVK)
				sameSights(t, known, obj)
			}
		}
	}
	if plain < 20 {
		t.Errorf("only %d kinds are plain", plain)
	}
}

// TestPlainTypesEnd shows that a type's recursion through all sorts of types is followed once.
func TestPlainTypesEnd(t *testing.T) {
	if !isPlain(reflect.TypeFor[recursive]()) || isPlain(reflect.TypeFor[struct {
		R recursive
		A any
	}]()) {
		t.Error("recursive")
	}
}

// TestIsPlainOfNamesTwice is about a type that linters refuse: encoding/json leaves both fields out.
func TestIsPlainOfNamesTwice(t *testing.T) {
	text := reflect.TypeFor[string]()
	if isPlain(reflect.StructOf([]reflect.StructField{{Name: "A", Type: text, Tag: `json:"x"`}, {Name: "B", Type: text, Tag: `json:"x"`}})) {
		t.Error("plain")
	}
}
