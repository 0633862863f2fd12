package codec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// Casket has a field of each form that strict decoding treats in its own way.
type Casket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Size   int32                   `json:"size,omitempty"`
	Parts  []CasketPart            `json:"parts,omitempty"`
	Named  map[string]CasketPart   `json:"named,omitempty"`
	Any    any                     `json:"any,omitempty"`
	Raw    apiruntime.RawExtension `json:"raw,omitempty"`
	Inside *Widget                 `json:"inside,omitempty"`
}

type CasketPart struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"URL,omitempty"`
}

func (c *Casket) DeepCopyObject() runtime.Object { return runtime.DeepCopy(c) }

// strictRows has the members of an object after its kind and apiVersion, and whether a body with them is refused under Strict.
var strictRows = []struct {
	members        string
	typed, untyped bool // refused for a kind with a Go type, and for one without, which has every field outside of metadata
}{
	{`"size":1`, false, false},
	{`"x":1`, true, false},
	{`"Size":1`, true, false},
	{`"size":1,"size":2`, true, true},
	{`"size":1,"size":1`, true, true},
	{`"size":1,"Size":2`, true, false},
	{`"size":1,"\u0073ize":2`, true, true},
	{`"metadata":{"x":1}`, true, true},
	{`"metadata":{"Name":"a"}`, true, true},
	{`"metadata":{"name":"a","Name":"a"}`, true, true},
	{`"metadata":{"name":"a","name":"b"}`, true, true},
	{`"metadata":{},"metadata":{}`, true, true},
	{`"metadata":null,"metadata":{}`, true, true},
	{`"Metadata":{}`, true, false},
	{`"metadata":{"ownerReferences":[{"x":1}]}`, true, true},
	{`"metadata":{"labels":{"a":"1","a":"2"}}`, true, true},
	{`"metadata":{"labels":{"a":"1","A":"2"}}`, false, false},
	{`"metadata":{"managedFields":[{"x":{}}]}`, true, true},
	{`"kind":"KIND"`, true, true},
	{`"Kind":"KIND"`, true, false},
	{`"apiversion":"example.com/v1"`, true, false},
	{`"parts":[{},{"x":1}]`, true, false},
	{`"parts":[{"url":"a"}]`, true, false},
	{`"parts":[{"name":"a","name":"b"}]`, true, true},
	{`"named":{"a":{"x":1}}`, true, false},
	{`"named":{"a":{},"a":{}}`, true, true},
	{`"any":{"a":1,"A":2}`, false, false},
	{`"any":{"a":1,"a":2}`, true, true},
	{`"any":[{"a":[{"b":1,"b":2}]}]`, true, true},
	{`"inside":{"spec":{"x":1}}`, true, false},
	{`"inside":{"metadata":{"x":1}}`, true, false},
	{`"inside":{"spec":{"size":1,"size":1}}`, true, true},
	{`"x":{"a":1,"a":2}`, true, true},
	// kube-apiserver does not read an embedded object of any kind.
	{`"raw":{"kind":"Widget","apiVersion":"example.com/v1","x":1}`, false, false},
}

// rawTwice has a duplicate field in a RawExtension, whose JSON is not read. YAML and CBOR are read as a whole.
const rawTwice = `"raw":{"a":1,"a":2}`

// Strict refuses unknown and duplicate fields in every format and by every function that decodes a body.
func TestStrict(t *testing.T) {
	s := newScheme(t)
	gv := v1Widget.GroupVersion()
	must(t, runtime.Register(s, gv.WithKind("Casket"), runtime.KindOptions[*Casket]{}))
	must(t, runtime.Register(s, gadgetV1, runtime.KindOptions[*unstructured.Unstructured]{}))
	limits := codec.BodyLimits{Bytes: 1 << 20, Items: 100, Weighed: func(int) error { return nil }}
	refused := func(problems []error, err error) bool { return err != nil || len(problems) > 0 }
	for _, row := range strictRows {
		for kind, want := range map[string]bool{"Casket": row.typed, "Gadget": row.untyped} {
			members := strings.ReplaceAll(row.members, "KIND", kind)
			body := `{"kind":"` + kind + `","apiVersion":"example.com/v1",` + members + `}`
			list := `{"kind":"` + kind + `List","apiVersion":"example.com/v1","items":[` + body + `]}`
			padded := strings.Replace(body, "{", "{"+strings.Repeat(" ", 20000), 1) // large enough to be measured
			for _, f := range []codec.Format{codec.JSON(), codec.YAML(), codec.CBOR()} {
				for source, gvk := range map[string]string{body: kind, padded: kind, list: kind + "List"} {
					in := []byte(source)
					if f == codec.CBOR() {
						in = cborWithDuplicates(t, source)
					}
					d, err := codec.Decode(s, f, in, gv.WithKind(gvk), codec.Strict)
					if refused(d.Problems, err) != want {
						t.Errorf("%s %.200q, Decode: refused %v: %v, %v", f.MediaType(), source, !want, d.Problems, err)
					}
					d, err = codec.DecodeWithin(s, f, in, gv.WithKind(gvk), codec.Strict, limits)
					if refused(d.Problems, err) != want {
						t.Errorf("%s %.200q, DecodeWithin: refused %v: %v, %v", f.MediaType(), source, !want, d.Problems, err)
					}
					if kind != "Casket" {
						continue
					}
					text, problems, err := codec.ToJSONWithin(f, in, codec.Strict, limits)
					if err == nil {
						var obj any = &Casket{}
						if gvk != kind {
							obj = &runtime.List[Casket]{}
						}
						more, fails := codec.Unmarshal(text, obj, codec.Strict)
						problems, err = append(problems, more...), fails
					}
					if refused(problems, err) != want {
						t.Errorf("%s %.200q, ToJSONWithin and Unmarshal: refused %v: %v, %v", f.MediaType(), source, !want, problems, err)
					}
				}
			}
			// Without the metadata of a kind only duplicates are problems.
			twice := row.typed && row.untyped && !strings.Contains(members, `"x":1`) && !strings.Contains(members, `"Name"`) && !strings.Contains(members, `"x":{}`)
			for name, into := range map[string]any{"a map": &map[string]any{}, "any": new(any), "an Unstructured": &unstructured.Unstructured{}} {
				if problems, err := codec.UnmarshalWithin([]byte(body), into, codec.Strict, limits); refused(problems, err) != twice {
					t.Errorf("%q, UnmarshalWithin into %s: refused %v: %v, %v", body, name, !twice, problems, err)
				}
			}
			if problems, err := codec.Unmarshal([]byte(list), &unstructured.UnstructuredList{}, codec.Strict); refused(problems, err) != twice {
				t.Errorf("%q, Unmarshal into a list: refused %v: %v, %v", list, !twice, problems, err)
			}
		}
	}
	for f, want := range map[codec.Format]bool{codec.JSON(): false, codec.YAML(): true, codec.CBOR(): true} {
		body := []byte(`{"kind":"Casket","apiVersion":"example.com/v1",` + rawTwice + `}`)
		if f == codec.CBOR() {
			body = cborWithDuplicates(t, string(body))
		}
		if d, err := codec.Decode(s, f, body, gv.WithKind("Casket"), codec.Strict); refused(d.Problems, err) != want {
			t.Errorf("%s, a duplicate in a RawExtension: refused %v", f.MediaType(), !want)
		}
	}
}

// Data after the object is an error in every format, under every Validation. The YAML library, which kube-apiserver uses, too, does
// not look behind an object in braces.
func TestDataAfterTheObject(t *testing.T) {
	s := newScheme(t)
	must(t, runtime.Register(s, gadgetV1, runtime.KindOptions[*unstructured.Unstructured]{}))
	for _, kind := range []string{"Widget", "Gadget"} {
		object := `{"kind":"` + kind + `","apiVersion":"example.com/v1"}`
		lines := "kind: " + kind + "\napiVersion: example.com/v1\n"
		item := string(cborWithDuplicates(t, object))
		for _, c := range []struct {
			format codec.Format
			body   string
			ok     bool
		}{
			{codec.JSON(), object + " \n\t", true},
			{codec.JSON(), object + object, false},
			{codec.JSON(), object + "\n" + object, false},
			{codec.JSON(), object + "x", false},
			{codec.JSON(), object + "]", false},
			{codec.JSON(), object + ",", false},
			{codec.JSON(), object + "\x00", false},
			{codec.JSON(), object + "# a comment of YAML", false},
			{codec.YAML(), object + "\n# a comment\n", true},
			{codec.YAML(), "# a comment\n--- " + object + "\n...\n", true},
			{codec.YAML(), "{kind: " + kind + ", apiVersion: example.com/v1}", true},
			{codec.YAML(), "# {\n" + object + "\n---\n" + object, false},
			{codec.YAML(), lines + "---\n", true},
			{codec.YAML(), lines + "---\nx: 1\n", false},
			{codec.YAML(), lines + "...\nx: 1\n", false},
			{codec.YAML(), lines + "--- x: 1\n", false},
			{codec.YAML(), "---\n" + lines + "---\n" + lines, false},
			{codec.CBOR(), item, true},
			{codec.CBOR(), item + item, false},
			{codec.CBOR(), item + "\x00", false},
		} {
			for _, v := range []codec.Validation{codec.Warn, codec.Strict, codec.Ignore} {
				d, err := codec.Decode(s, c.format, []byte(c.body), v1Widget.GroupVersion().WithKind(kind), v)
				if (err == nil) != c.ok || len(d.Problems) > 0 {
					t.Errorf("%s %q: %v, %v", c.format.MediaType(), c.body, d.Problems, err)
				}
			}
		}
	}
}

// The problems of a list of a kind without a Go type have the paths of the items.
func TestStrictListsWithoutGoType(t *testing.T) {
	s := newScheme(t)
	must(t, runtime.Register(s, gadgetV1, runtime.KindOptions[*unstructured.Unstructured]{}))
	body := `{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{"continue":"c","y":1},"items":[{},` + gadgetHead + `,"metadata":{"x":1,"name":"a"},"n":1.0,"m":{"a":1,"a":2}}]}`
	for v, want := range map[codec.Validation]string{
		codec.Strict: `duplicate field "items[1].m.a", unknown field "metadata.y", unknown field "items[1].metadata.x"`,
		codec.Warn:   `duplicate field "items[1].m.a", unknown field "metadata.y", unknown field "items[1].metadata.x"`,
		codec.Ignore: "",
	} {
		d, err := codec.Decode(s, codec.JSON(), []byte(body), gadgetV1.GroupVersion().WithKind("GadgetList"), v)
		must(t, err)
		if got := texts(d.Problems); got != want {
			t.Errorf("problems %s, want %s", got, want)
		}
		list := d.Object.(*unstructured.UnstructuredList)
		item := list.Items[1]
		if list.GetContinue() != "c" || item.GetName() != "a" || item.Object["n"] != int64(1) || item.Object["metadata"].(map[string]any)["x"] != nil {
			t.Errorf("list %v", list)
		}
	}
	wrong := strings.Replace(body, `"name":"a"`, `"name":5`, 1)
	if _, err := codec.Decode(s, codec.JSON(), []byte(wrong), gadgetV1.GroupVersion().WithKind("GadgetList"), codec.Strict); err == nil {
		t.Error("metadata of a wrong type is no error")
	}
}

// cborWithDuplicates returns the CBOR of JSON text, with its duplicate members.
func cborWithDuplicates(t *testing.T, text string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return cborItem(t, d)
}

func cborItem(t *testing.T, d *json.Decoder) []byte {
	t.Helper()
	token, err := d.Token()
	must(t, err)
	const array, object, small, null = 0x80, 0xa0, 24, 0xf6
	switch token := token.(type) {
	case json.Delim:
		var inside []byte
		n := 0
		for ; d.More(); n++ {
			inside = append(inside, cborItem(t, d)...)
		}
		_, err := d.Token()
		must(t, err)
		head := byte(array)
		if token == '{' {
			head, n = object, n/2
		}
		if n >= small {
			t.Fatal("the test has no objects of that size")
		}
		return append([]byte{head + byte(n)}, inside...)
	case string:
		return append([]byte{0x78, byte(len(token))}, token...)
	case json.Number:
		n, err := token.Int64()
		if err != nil || n < 0 || n >= small {
			t.Fatal(fmt.Errorf("the test has no number %s", token))
		}
		return []byte{byte(n)}
	}
	return []byte{null}
}
