package codec_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

type WidgetSpec struct {
	Size  int32             `json:"size,omitempty"`
	Color string            `json:"color,omitempty"`
	On    bool              `json:"on,omitempty"`
	Data  map[string]string `json:"data,omitempty"`
	Any   map[string]any    `json:"any,omitempty"`
}

type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Width             int32 `json:"width"`
}

func (w *WidgetV2) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }

var (
	v1Widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	v2Widget = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newScheme(t testing.TB) *runtime.Scheme {
	s := runtime.NewScheme()
	must(t, runtime.Register(s, v1Widget, runtime.KindOptions[*Widget]{Default: func(w *Widget) {
		if w.Spec.Color == "" {
			w.Spec.Color = "grey"
		}
		if w.Spec.Color == "panic" {
			panic("no such color")
		}
	}}))
	must(t, runtime.Register(s, v2Widget, runtime.KindOptions[*WidgetV2]{}))
	must(t, runtime.AddConversion(s,
		func(in *WidgetV2, out *Widget) error { out.Spec.Size = in.Width; return nil },
		func(in *Widget, out *WidgetV2) error { out.Width = in.Spec.Size; return nil }))
	_, err := s.Import(corev1.AddToScheme)
	must(t, err)
	return s
}

func texts(errs []error) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, ", ")
}

func TestDecodeCompletesAndDefaults(t *testing.T) {
	s := newScheme(t)
	for _, c := range []struct {
		format codec.Format
		body   string
		gvk    schema.GroupVersionKind
	}{
		{codec.JSON(), `{"metadata":{"name":"a"},"spec":{"size":3}}`, v1Widget},
		{codec.JSON(), ` {"kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}} ` + "\n", v1Widget},
		{codec.JSON(), `{"apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"size":3}}`, v1Widget},
		{codec.JSON(), `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"width":3}`, v2Widget},
		{codec.YAML(), "metadata:\n  name: a\nspec:\n  size: 3\n", v1Widget},
		{codec.YAML(), "---\n# a widget\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 3}\n---\n", v1Widget},
		{codec.YAML(), `{"metadata":{"name":"a"},"spec":{"size":3}}`, v1Widget},
	} {
		d, err := codec.Decode(s, c.format, []byte(c.body), v1Widget, codec.Warn)
		if err != nil || d.GVK != c.gvk || len(d.Problems) != 0 {
			t.Errorf("%s: %+v, %v", c.body, d, err)
			continue
		}
		if d.Object.GetObjectKind().GroupVersionKind() != c.gvk || d.Object.(metav1.Object).GetName() != "a" {
			t.Errorf("%s: object is %+v", c.body, d.Object)
		}
		if w, ok := d.Object.(*Widget); ok && (w.Spec.Size != 3 || w.Spec.Color != "grey") {
			t.Errorf("%s: object is %+v", c.body, w)
		}
	}
}

func TestDecodeReportsProblems(t *testing.T) {
	s := newScheme(t)
	const doubled = "yaml: unmarshal errors:\n  line 4: key \"color\" already set in map"
	for _, c := range []struct {
		format     codec.Format
		body, want string
	}{
		{codec.JSON(), `{"spec":{"foo":1}}`, `unknown field "spec.foo"`},
		{codec.JSON(), `{"spec":{"size":1,"size":2}}`, `duplicate field "spec.size"`},
		{codec.JSON(), `{"x":1,"metadata":{"y":1},"spec":{"foo":1,"color":"a","color":"b"}}`,
			`unknown field "x", unknown field "metadata.y", unknown field "spec.foo", duplicate field "spec.color"`},
		{codec.JSON(), `{"spec":{"Size":1}}`, `unknown field "spec.Size"`},
		{codec.JSON(), `{"spec":{"any":{"a":1,"a":2}}}`, `duplicate field "spec.any.a"`},
		{codec.YAML(), "spec:\n  foo: 1\n", `unknown field "spec.foo"`},
		{codec.YAML(), "spec:\n  color: a\n  size: 1\n  color: b\n", doubled},
		{codec.YAML(), "spec:\n  color: a\n  foo: 1\n  color: b\n", doubled + `, unknown field "spec.foo"`},
	} {
		for v, want := range map[codec.Validation]string{codec.Warn: c.want, codec.Strict: c.want, codec.Ignore: ""} {
			d, err := codec.Decode(s, c.format, []byte(c.body), v1Widget, v)
			if err != nil || texts(d.Problems) != want || d.Object == nil {
				t.Errorf("%s (%d): problems %q, %v; want %q", c.body, v, texts(d.Problems), err, want)
			}
		}
	}
	err := codec.StrictError([]error{fmt.Errorf("a"), fmt.Errorf("b")})
	if err.Error() != "strict decoding error: a, b" {
		t.Error(err)
	}
}

func TestManyDuplicatesAreCut(t *testing.T) {
	body := "kind: Widget\n" + strings.Repeat("spec: {}\n", 10_000)
	_, problems, err := codec.YAML().ToJSON([]byte(body), codec.Warn)
	must(t, err)
	if lines := strings.Split(texts(problems), "\n"); len(lines) != 102 || lines[101] != "  ..." || lines[1] != `  line 3: key "spec" already set in map` {
		t.Errorf("%d lines: %.200s", len(lines), texts(problems))
	}
}

func TestDecodeErrors(t *testing.T) {
	s := newScheme(t)
	deep := strings.Repeat(`{"spec":`, 20000)
	for name, c := range map[string]struct {
		format codec.Format
		body   string
		gvk    schema.GroupVersionKind
		want   string
	}{
		"another known kind":   {codec.JSON(), `{"kind":"Pod","apiVersion":"v1"}`, corev1.SchemeGroupVersion.WithKind("Pod"), "converting (v1.Pod) to (v1.Widget): unknown conversion"},
		"an unknown kind":      {codec.JSON(), `{"kind":"Gadget"}`, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, `no kind "Gadget" is registered for version "example.com/v1" in scheme "keelson"`},
		"an unknown version":   {codec.JSON(), `{"apiVersion":"example.com/v9"}`, schema.GroupVersionKind{Group: "example.com", Version: "v9", Kind: "Widget"}, `no kind "Widget" is registered for version "example.com/v9"`},
		"its list":             {codec.JSON(), `{"kind":"WidgetList"}`, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"}, "converting (v1.WidgetList) to (v1.Widget)"},
		"a bad apiVersion":     {codec.JSON(), `{"apiVersion":"a/b/c"}`, schema.GroupVersionKind{}, "unexpected GroupVersion string: a/b/c"},
		"a wrong type":         {codec.JSON(), `{"spec":{"size":"x"}}`, v1Widget, "json: cannot unmarshal string into Go struct field WidgetSpec.spec.size of type int32"},
		"a number too large":   {codec.JSON(), `{"spec":{"size":3000000000}}`, v1Widget, "cannot unmarshal number 3000000000"},
		"no object":            {codec.JSON(), `[]`, schema.GroupVersionKind{}, `couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`},
		"no JSON":              {codec.JSON(), `{"a":`, schema.GroupVersionKind{}, "couldn't get version/kind; json parse error: unexpected end of JSON input"},
		"nothing":              {codec.JSON(), ``, schema.GroupVersionKind{}, "unexpected end of JSON input"},
		"two values":           {codec.JSON(), `{}{}`, schema.GroupVersionKind{}, "invalid character '{' after top-level value"},
		"deep JSON":            {codec.JSON(), deep, schema.GroupVersionKind{}, "exceeded max depth"},
		"deep YAML":            {codec.YAML(), deep, schema.GroupVersionKind{}, "exceeded max depth"},
		"deep YAML lists":      {codec.YAML(), strings.Repeat("- ", 20000), schema.GroupVersionKind{}, "exceeded max depth"},
		"no YAML":              {codec.YAML(), "a: b: c", schema.GroupVersionKind{}, "yaml: mapping values are not allowed in this context"},
		"no YAML object":       {codec.YAML(), "just text", schema.GroupVersionKind{}, "couldn't get version/kind; json parse error: json: cannot unmarshal string"},
		"not a number":         {codec.YAML(), "spec: {size: .nan}", schema.GroupVersionKind{}, "json: unsupported value: NaN"},
		"two YAML documents":   {codec.YAML(), "kind: Widget\n---\nkind: Widget\n", schema.GroupVersionKind{}, "the body has more than one document"},
		"an inline second one": {codec.YAML(), "kind: Widget\n--- {kind: Widget}\n", schema.GroupVersionKind{}, "the body has more than one document"},
		"one after an end":     {codec.YAML(), "kind: Widget\r\n...\r\nkind: Widget\r\n", schema.GroupVersionKind{}, "the body has more than one document"},
		"one after none":       {codec.YAML(), "---\n---\nkind: Widget\n", schema.GroupVersionKind{}, "the body has more than one document"},
	} {
		d, err := codec.Decode(s, c.format, []byte(c.body), v1Widget, codec.Strict)
		if err == nil || !strings.Contains(err.Error(), c.want) || d.Object != nil || d.GVK != c.gvk {
			t.Errorf("%s: %v, %v; want %v, %q", name, d.GVK, err, c.gvk, c.want)
		}
	}
}

func TestYAMLWithoutASecondDocument(t *testing.T) {
	for _, body := range []string{
		"", "\n# nothing\n", "---\n", "%YAML 1.1\n---\nkind: Widget\n...\n", "# c\n---\nkind: Widget\n---\n# end\n",
		"spec:\n  color: |\n    ---\n    a\n", "spec: {color: \"a ---\"}\n", "---kind: x\n", "spec:\n  color: ---\n",
	} {
		if _, _, err := codec.YAML().ToJSON([]byte(body), codec.Warn); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestYAMLAliasesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, body := range map[string]string{
		"a long string, often": "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n",
		"binary, often":        "a: &a !!binary " + strings.Repeat("QUFB", 25_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n",
		"a long key, often":    "a: &a " + long + "\nb: [" + strings.Repeat("{*a : 1},", 10_000) + "]\n",
		"aliases of aliases":   "a: &a [x,x,x,x,x,x,x,x,x]\n" + nest("bcdefghij"),
		"itself":               "a: &a [*a]\n",
	} {
		if _, _, err := codec.YAML().ToJSON([]byte(body), codec.Ignore); err == nil || !strings.HasPrefix(err.Error(), "yaml: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, _, err := codec.YAML().ToJSON([]byte("a: &a {b: c}\nd: [*a, *a]\ne: {<<: *a, f: g}\n"), codec.Strict)
	if err != nil || string(text) != `{"a":{"b":"c"},"d":[{"b":"c"},{"b":"c"}],"e":{"b":"c","f":"g"}}` {
		t.Errorf("honest aliases: %s, %v", text, err)
	}
}

// nest returns YAML in which each letter is a list of nine aliases of the letter before.
func nest(letters string) string {
	var out strings.Builder
	before := 'a'
	for _, l := range letters {
		fmt.Fprintf(&out, "%c: &%c [%s]\n", l, l, strings.Repeat(fmt.Sprintf("*%c,", before), 9))
		before = l
	}
	return out.String()
}

func TestUnmarshalKeepsIntegersAndCase(t *testing.T) {
	var v map[string]any
	problems, err := codec.Unmarshal([]byte(`{"a":9007199254740993,"A":1.5,"b":1,"b":2}`), &v, codec.Strict)
	if err != nil || texts(problems) != `duplicate field "b"` || v["a"] != int64(9007199254740993) || v["A"] != 1.5 {
		t.Errorf("%v, %v, %v", v, problems, err)
	}
}

func TestOptionsAreDecodedInAnyVersionThatHasKinds(t *testing.T) {
	s := newScheme(t)
	want := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	for _, body := range []string{`{"propagationPolicy":"Orphan"}`, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Orphan"}`,
		`{"kind":"DeleteOptions","apiVersion":"example.com/v1","propagationPolicy":"Orphan"}`} {
		d, err := codec.Decode(s, codec.JSON(), []byte(body), want, codec.Warn)
		if err != nil || *d.Object.(*metav1.DeleteOptions).PropagationPolicy != "Orphan" {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := codec.Decode(s, codec.JSON(), []byte(`{"kind":"CreateOptions","apiVersion":"v1"}`), want, codec.Warn); err == nil {
		t.Error("CreateOptions were taken for DeleteOptions")
	}
}

// oracle returns apimachinery's own strict decoder for a format.
func oracle(f codec.Format, s *runtime.Scheme) apiruntime.Decoder {
	return kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, s, s, kjson.SerializerOptions{Yaml: f.MediaType() == "application/yaml", Strict: true})
}

// checkDecode compares Decode with the oracle. The body may be anything.
func checkDecode(t *testing.T, f codec.Format, s *runtime.Scheme, body []byte) {
	t.Helper()
	got, err := codec.Decode(s, f, body, v1Widget, codec.Strict)
	if err != nil && strings.ContainsRune(string(body), '&') && strings.ContainsRune(string(body), '*') {
		return // aliases are checked before the oracle's parser is called
	}
	if err != nil && strings.Contains(err.Error(), "more than one document") {
		return // the oracle reads only the first document
	}
	want, gvk, wantErr := oracle(f, s).Decode(body, &v1Widget, nil)
	problems, strict := apiruntime.AsStrictDecodingError(wantErr)
	switch {
	case err != nil && (wantErr == nil || strict):
		if got.GVK.GroupKind() != v1Widget.GroupKind() {
			return // refused by Decode but not by the oracle
		}
		t.Fatalf("%q: error %v where there should be none", body, err)
	case err != nil && gvk != nil && *gvk != got.GVK:
		t.Fatalf("%q: kind of the refused body is %v, want %v", body, got.GVK, gvk)
	case err != nil && wantErr.Error() != err.Error():
		if got.GVK == (schema.GroupVersionKind{}) || got.GVK.GroupKind() == v1Widget.GroupKind() {
			t.Fatalf("%q: error %q, want %q", body, err, wantErr)
		}
	case err != nil:
	case wantErr != nil && !strict:
		t.Fatalf("%q: no error, want %v", body, wantErr)
	case strict && texts(got.Problems) != texts(problems.Errors()), !strict && len(got.Problems) > 0:
		t.Fatalf("%q: problems %q, want %v", body, texts(got.Problems), wantErr)
	default:
		s.Default(want)
		want.GetObjectKind().SetGroupVersionKind(*gvk)
		if got.GVK != *gvk || !reflect.DeepEqual(got.Object, want) {
			t.Fatalf("%q: decoded %+v, want %+v", body, got.Object, want)
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, body := range []string{`{}`, `null`, `{"kind":"Widget","apiVersion":"example.com/v2","width":1,"width":2}`, `{"spec":{"any":{"a":[1,2.5,"x",null]},"data":{"a":"b"}}}`,
		`{"kind":"Pod","apiVersion":"v1"}`, `{"Kind":"Widget","apiversion":"x"}`, `{"metadata":{"creationTimestamp":"x"}}`, "{\"spec\":{\"color\":\"\xff\"}}"} {
		f.Add([]byte(body))
	}
	s := newScheme(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if strings.Contains(string(body), "panic") {
			return // the color that panics
		}
		checkDecode(t, codec.JSON(), s, body)
	})
}

func FuzzDecodeYAML(f *testing.F) {
	for _, body := range []string{"kind: Widget\nspec:\n  size: 3\n  size: 4\n", "a: &a [*a]\n", "a: &a {b: c}\nd: *a\n", "---\n---\n", "? [a]\n: b\n", "1: 2\ntrue: x\n", "!!binary YQ==: 1", "\xfe\xffa"} {
		f.Add([]byte(body))
	}
	s := newScheme(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if strings.Contains(string(body), "panic") {
			return // the color that panics
		}
		checkDecode(t, codec.YAML(), s, body)
	})
}
