package codec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const stored = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"size":3,"color":"red"},"status":{}}`

func newTyped(t testing.TB, storage schema.GroupVersionKind) *codec.Typed {
	c, err := codec.NewTyped(newScheme(t), storage)
	must(t, err)
	return c
}

func TestTypedStoresInTheStorageVersion(t *testing.T) {
	w := &Widget{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}, Spec: WidgetSpec{Size: 3, Color: "red"}}
	v2 := &WidgetV2{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Width: 3}
	for _, c := range []struct {
		storage schema.GroupVersionKind
		obj     runtime.Object
		want    string
	}{
		{v1Widget, w, stored},
		{v2Widget, w, `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"width":3}`},
		{v2Widget, v2, `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"width":3}`},
		{v1Widget, v2, strings.Replace(stored, `"red"`, `"grey"`, 1)}, // the default: version 2 has no color
	} {
		typed := newTyped(t, c.storage)
		d, err := typed.Encode(c.obj)
		must(t, err)
		same(t, "stored", c.want, string(d.Bytes()))
		back, err := typed.Decode(d)
		must(t, err)
		if h := back.(*Widget); h.Spec.Size != 3 || h.Kind != "Widget" || h.APIVersion != "example.com/v1" {
			t.Errorf("decoded %+v", h)
		}
	}
	if w.ResourceVersion != "7" || w.Kind != "" {
		t.Error("Encode changed the object")
	}
	if _, err := codec.NewTyped(newScheme(t), schema.GroupVersionKind{Kind: "Gadget", Version: "v1"}); err == nil {
		t.Error("a codec for an unknown kind")
	}
	if _, err := newTyped(t, v1Widget).Encode(&runtime.Resource[int, int]{}); err == nil {
		t.Error("an unknown type was encoded")
	}
}

func TestEntryNormalises(t *testing.T) {
	for name, c := range map[string]struct {
		value, want string
		stale       bool
	}{
		"canonical":         {stored, stored, false},
		"with newline":      {stored + "\n", stored, false},
		"default missing":   {strings.Replace(stored, `"color":"red"`, `"on":true`, 1), strings.Replace(stored, `"color":"red"`, `"color":"grey","on":true`, 1), true},
		"unknown field":     {strings.Replace(stored, `"size":3`, `"old":1,"size":3`, 1), stored, true},
		"white space":       {strings.ReplaceAll(stored, ":", ": "), "", true},
		"other order":       {`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"red","size":3}}`, stored, true},
		"resourceVersion":   {strings.Replace(stored, `"name":"a"`, `"name":"a","resourceVersion":"5"`, 1), stored, true},
		"null timestamp":    {strings.Replace(stored, `"name":"a"`, `"name":"a","creationTimestamp":null`, 1), stored, true},
		"another version":   {`{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"width":3}`, `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"width":3}`, true},
		"no spec, metadata": {`{"kind":"Widget","apiVersion":"example.com/v1"}`, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{},"spec":{"color":"grey"},"status":{}}`, true},
	} {
		d, stale, err := newTyped(t, v1Widget).Entry([]byte(c.value))
		if err != nil || stale != c.stale || c.want != "" && string(d.Bytes()) != c.want {
			t.Errorf("%s: %s, %v, %v", name, d.Bytes(), stale, err)
		}
	}
}

func TestEntryRefusesGarbage(t *testing.T) {
	typed := newTyped(t, v1Widget)
	for _, value := range []string{"", "{}", "null", "[]", "k8s\x00\n\x10", `{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"Widget","apiVersion":"example.com/v9"}`,
		`{"kind":"Widget"}`, `{"kind":"Widget","apiVersion":"example.com/v1","spec":[]}`, stored[:40], strings.Replace(stored, "red", "panic", 1)} {
		if d, _, err := typed.Entry([]byte(value)); err == nil || !d.IsZero() {
			t.Errorf("%q was accepted", value)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(stored))
	f.Add([]byte(`{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a","labels":{"a":"b"}},"width":3}`))
	typed := newTyped(f, v1Widget)
	f.Fuzz(func(t *testing.T, value []byte) {
		d, _, err := typed.Entry(value)
		if err != nil {
			return
		}
		obj, err := typed.Decode(d)
		must(t, err)
		again, stale, err := typed.Entry(d.Bytes())
		must(t, err)
		if string(again.Bytes()) != string(d.Bytes()) || stale != (d.APIVersion() != "example.com/v1") {
			t.Fatalf("%q: an entry of an entry is %q", d.Bytes(), again.Bytes())
		}
		other, err := typed.Decode(again)
		must(t, err)
		if !reflect.DeepEqual(obj, other) {
			t.Fatalf("%q: decoded %+v and %+v", value, obj, other)
		}
	})
}
