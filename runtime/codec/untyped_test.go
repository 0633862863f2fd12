package codec_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	gadgetV1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	gadgetV2 = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gadget"}
)

func untypedScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, gvk := range []schema.GroupVersionKind{gadgetV1, gadgetV2} {
		must(t, runtime.Register(s, gvk, runtime.KindOptions[*unstructured.Unstructured]{}))
	}
	return s
}

const gadgetHead = `{"apiVersion":"example.com/v1","kind":"Gadget"`

func TestDecodeUntyped(t *testing.T) {
	s := untypedScheme(t)
	for _, c := range []struct{ name, body, want string }{
		{"every field", gadgetHead + `,"z":[null,{}],"A":true,"metadata":{"name":"a"}}`, `{"A":true,"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"z":[null,{}]}`},
		{"no metadata", gadgetHead + `}`, gadgetHead + `}`},
		{"empty metadata", gadgetHead + `,"metadata":null}`, gadgetHead + `,"metadata":{}}`},
		{"metadata without its empty fields", gadgetHead + `,"metadata":{"labels":{},"finalizers":null,"creationTimestamp":null,"generation":0}}`, gadgetHead + `,"metadata":{}}`},
		{"members that only look like a kind", `{"KIND":"x",` + gadgetHead[1:] + `,"Kind":"w","apiversion":"z"}`, `{"KIND":"x","Kind":"w","apiVersion":"example.com/v1","apiversion":"z","kind":"Gadget"}`},
		{"another kind, for its receiver to refuse", `{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"v1","kind":"Pod"}`},
	} {
		d, err := codec.Decode(s, codec.JSON(), []byte(c.body), gadgetV1, codec.Strict)
		if err != nil || len(d.Problems) > 0 {
			t.Errorf("%s: %v, %v", c.name, err, d.Problems)
			continue
		}
		text, err := codec.Encode(d.Object)
		must(t, err)
		if got := strings.TrimSpace(string(text)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, c := range []struct{ name, body, want string }{
		{"null", "null", "Object 'Kind' is missing in 'null'"},
		{"no kind", `{"apiVersion":"example.com/v1"}`, "Object 'Kind' is missing"},
		{"a kind, and then none", gadgetHead + `,"kind":null}`, "Object 'Kind' is missing"},
		{"a list", "[]", "cannot unmarshal array"},
		{"metadata of another type", gadgetHead + `,"metadata":5}`, "cannot unmarshal number into Go value of type v1.ObjectMeta"},
		{"labels of another type", gadgetHead + `,"metadata":{"labels":{"a":[]}}}`, "cannot unmarshal array into Go struct field ObjectMeta.labels of type string"},
	} {
		if _, err := codec.Decode(s, codec.JSON(), []byte(c.body), gadgetV1, codec.Ignore); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestDecodeUntypedProblems(t *testing.T) {
	const body = gadgetHead + `,"metadata":{"x":1,"ownerReferences":[{"uid":"u","y":1}],"labels":{"a":"b","a":"c"}},"spec":{"a":1,"a":2},"any":{}}`
	for v, want := range map[codec.Validation][]string{
		codec.Strict: {`duplicate field "metadata.labels.a"`, `duplicate field "spec.a"`, `unknown field "metadata.ownerReferences[0].y"`, `unknown field "metadata.x"`},
		codec.Ignore: nil,
	} {
		d, err := codec.Decode(untypedScheme(t), codec.JSON(), []byte(body), gadgetV1, v)
		must(t, err)
		var got []string
		for _, p := range d.Problems {
			got = append(got, p.Error())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
		u := d.Object.(*unstructured.Unstructured)
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "a"); n != 2 || u.GetLabels()["a"] != "c" || u.Object["metadata"].(map[string]any)["x"] != nil {
			t.Errorf("%v: %v", v, u.Object)
		}
	}
}

// A number has the form that it will have after it was written and read again.
func TestUntypedNumbers(t *testing.T) {
	for text, want := range map[string]any{
		"1": int64(1), "-7": int64(-7), "1.0": int64(1), "1e3": int64(1000), "-0.0": int64(0), "1.5": 1.5, "1e-7": 1e-7, "1e21": 1e21,
		"9223372036854775807": int64(9223372036854775807), "-9223372036854775808": int64(-9223372036854775808),
		"9223372036854775808": 9223372036854775808.0, "12345678901234567890": 12345678901234567890.0,
		"1234567890123456768.0": int64(1234567890123456800), "9007199254740993.0": int64(9007199254740992), "-9223372036854775808.0": -9223372036854775808.0,
	} {
		d, err := codec.Decode(untypedScheme(t), codec.JSON(), []byte(gadgetHead+`,"n":[`+text+`],"m":{"n":`+text+`}}`), gadgetV1, codec.Ignore)
		must(t, err)
		u := d.Object.(*unstructured.Unstructured)
		got := u.Object["n"].([]any)[0]
		if got != want || u.Object["m"].(map[string]any)["n"] != want {
			t.Errorf("%s is %T %v, want %T %v", text, got, got, want, want)
		}
		once, err := codec.Encode(u)
		must(t, err)
		again, err := codec.Decode(untypedScheme(t), codec.JSON(), once, gadgetV1, codec.Ignore)
		must(t, err)
		if !reflect.DeepEqual(again.Object, d.Object) {
			t.Errorf("%s is read as %v, and once written as %v", text, d.Object, again.Object)
		}
	}
}

func TestTypedOfUntypedKind(t *testing.T) {
	s := untypedScheme(t)
	c, err := codec.NewTyped(s, gadgetV2)
	must(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{
		"AAA": "first", "spec": map[string]any{"b": "<", "a": 1.0},
		"metadata": map[string]any{"name": "a", "labels": map[string]any{}, "unknown": "x", "resourceVersion": "7"},
	}}
	u.SetGroupVersionKind(gadgetV1)
	before := u.DeepCopy()
	d, err := c.Encode(u)
	must(t, err)
	if !reflect.DeepEqual(u, before) {
		t.Error("the object was changed")
	}
	const want = `{"AAA":"first","apiVersion":"example.com/v2","kind":"Gadget","metadata":{"name":"a"},"spec":{"a":1,"b":"\u003c"}}`
	if string(d.Bytes()) != want {
		t.Errorf("%s, want %s", d.Bytes(), want)
	}
	if entry, stale, err := c.Entry(d.Bytes()); err != nil || stale || string(entry.Bytes()) != want {
		t.Errorf("Entry of what was written: %s, %v, %v", entry.Bytes(), stale, err)
	}
	if got := string(d.AppendItem(nil, 5)); got != strings.Replace(want, `"name":"a"`, `"name":"a","resourceVersion":"5"`, 1) {
		t.Errorf("an item is %s", got)
	}
	obj, err := c.Decode(d)
	must(t, err)
	if obj.GetObjectKind().GroupVersionKind() != gadgetV1 {
		t.Errorf("decoded to %s", obj.GetObjectKind().GroupVersionKind())
	}
	if _, err := c.Encode(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": "x"}}); err == nil {
		t.Error("metadata that is none was stored")
	}
}

// Values that kube-apiserver or an older program has stored are decoded as far as possible.
func TestEntryOfUntypedKind(t *testing.T) {
	c, err := codec.NewTyped(untypedScheme(t), gadgetV1)
	must(t, err)
	for _, tt := range []struct{ name, value, want string }{
		{"members in another order", `{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"b":1,"a":2}}`, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"a":2,"b":1}}`},
		{"malformed metadata", gadgetHead + `,"metadata":{"annotations":{"a":1},"labels":{"a":"b"},"name":"a","foo":1}}`, gadgetHead + `,"metadata":{"labels":{"a":"b"},"name":"a"}}`},
		{"metadata that is none", gadgetHead + `,"metadata":[]}`, gadgetHead + `,"metadata":{}}`},
		{"a number", gadgetHead + `,"metadata":{},"n":1.0}`, gadgetHead + `,"metadata":{},"n":1}`},
	} {
		d, stale, err := c.Entry([]byte(tt.value))
		if err != nil || !stale || string(d.Bytes()) != tt.want {
			t.Errorf("%s: %s, stale %v, %v", tt.name, d.Bytes(), stale, err)
			continue
		}
		if _, stale, err := c.Entry(d.Bytes()); err != nil || stale {
			t.Errorf("%s, written anew: stale %v, %v", tt.name, stale, err)
		}
	}
	for _, value := range []string{"", "null", "[]", `{"kind":"Gadget"}`, `{"kind":"Other","apiVersion":"example.com/v1"}`, "k8s\x00\x00"} {
		if _, _, err := c.Entry([]byte(value)); err == nil {
			t.Errorf("%q was read", value)
		}
	}
}

func TestParseDocumentOfUntypedObjects(t *testing.T) {
	const good = `{"A":1,"apiVersion":"v1","b":2,"kind":"X","l":3,"metadata":{},"z":4}`
	if d, err := codec.ParseDocument([]byte(good)); err != nil || d.Kind() != "X" || d.APIVersion() != "v1" || d.Field("z") != "4" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{
		`{"apiVersion":"v1","metadata":{},"kind":"X"}`, `{"b":1,"apiVersion":"v1","kind":"X","metadata":{}}`, `{"apiVersion":"v1","kind":"X","kind":"X","metadata":{}}`,
		`{"A":1,"A":2,"apiVersion":"v1","kind":"X","metadata":{}}`, `{"a":1,"kind":"X","metadata":{}}`,
	} {
		if _, err := codec.ParseDocument([]byte(bad)); err == nil {
			t.Errorf("%s is taken for canonical", bad)
		}
	}
}

// FuzzUntyped looks for bodies whose stored form is decoded to another object.
func FuzzUntyped(f *testing.F) {
	for _, seed := range []string{gadgetHead + `}`, gadgetHead + `,"metadata":{"name":"a","labels":{"x":"y"}},"n":[1.0,-0.0,1e400,{"\u2028":"\ud800"}]}`, `null`} {
		f.Add([]byte(seed))
	}
	s := untypedScheme(f)
	c, err := codec.NewTyped(s, gadgetV1)
	must(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := codec.Decode(s, codec.JSON(), body, gadgetV1, codec.Warn)
		if err != nil || d.GVK != gadgetV1 {
			return
		}
		doc, err := c.Encode(d.Object)
		if err != nil {
			t.Fatalf("%q was decoded and cannot be encoded: %v", body, err)
		}
		if !json.Valid(doc.Bytes()) {
			t.Fatalf("%q was stored as %q", body, doc.Bytes())
		}
		entry, stale, err := c.Entry(doc.Bytes())
		if err != nil || stale {
			t.Fatalf("%q was stored as %q, which is read as %q: stale %v, %v", body, doc.Bytes(), entry.Bytes(), stale, err)
		}
	})
}
