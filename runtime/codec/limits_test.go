package codec_test

import (
	"encoding/json"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// allocates returns the bytes that f allocates. No other test may run at the same time.
func allocates(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A body beyond the limits is refused in any format before it is decoded. The test is not parallel, because it counts all
// allocations of the process.
func TestDecodeWithin(t *testing.T) {
	s := runtime.NewScheme()
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	free := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Free"}
	if err := errors.Join(
		runtime.Register(s, pod, runtime.KindOptions[*corev1.Pod]{}),
		runtime.Register(s, free, runtime.KindOptions[*unstructured.Unstructured]{}),
	); err != nil {
		t.Fatal(err)
	}
	const n = 500_000
	object := func(kind, spec string) string {
		gvk := map[string]string{"Pod": "v1", "Free": "example.com/v1"}[kind]
		return `{"apiVersion":"` + gvk + `","kind":"` + kind + `","metadata":{"name":"a"},"spec":` + spec + `}`
	}
	containers := object("Pod", `{"containers":[`+strings.Repeat(`{},`, n)+`{}]}`)
	items := object("Free", `{"a":[`+strings.Repeat(`{},`, n)+`{}]}`)
	finalizers := `{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":[` + strings.Repeat(`"a/b",`, 20_000) + `"c/d"]}}`
	inCBOR := func(text string) string {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	inProtobuf := func(p *corev1.Pod) string {
		f := codec.Protobuf()
		b, err := f.Encode(p, pod)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	limits := codec.BodyLimits{Bytes: 1 << 20, Items: 10_000}
	for _, row := range []struct {
		name string
		f    codec.Format
		want schema.GroupVersionKind
		body string
		of   string // the field of the LimitError
	}{
		{"JSON", codec.JSON(), pod, containers, ""},
		{"JSON of another kind", codec.JSON(), pod, items, ""},
		{"untyped JSON", codec.JSON(), free, items, ""},
		{"broken JSON", codec.JSON(), pod, containers[:len(containers)-10], ""},
		{"an unknown field first", codec.JSON(), pod, strings.Replace(containers, `"metadata"`, `"unknown":1,"metadata"`, 1), ""},
		{"YAML in flow style", codec.YAML(), pod, containers, ""},
		{"YAML in block style", codec.YAML(), pod, "metadata:\n  name: a\nspec:\n  containers:\n" + strings.Repeat("  -\n", n), ""},
		{"CBOR", codec.CBOR(), pod, inCBOR(containers), ""},
		{"CBOR, untyped", codec.CBOR(), free, inCBOR(items), ""},
		{"protobuf", codec.Protobuf(), pod, inProtobuf(&corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 20_000)}}), ""},
		{"finalizers", codec.JSON(), pod, finalizers, "metadata.finalizers"},
		{"finalizers in protobuf", codec.Protobuf(), pod, inProtobuf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, 20_000)}}), "metadata.finalizers"},
	} {
		var err error
		body := []byte(row.body)
		got := allocates(func() { _, err = codec.DecodeWithin(s, row.f, body, row.want, codec.Warn, limits) })
		var over *codec.LimitError
		if !errors.As(err, &over) || over.Field != row.of {
			t.Errorf("%s: %v, want one of %q", row.name, err, row.of)
		}
		if most := uint64(4 << 20); got > most {
			t.Errorf("%s: %d bytes allocated for a body of %d, want at most %d", row.name, got, len(body), most)
		}
	}
	obj := &metav1.DeleteOptions{}
	body := []byte(`{"dryRun":[` + strings.Repeat(`"All",`, n) + `"All"]}`)
	var over *codec.LimitError
	if err := codec.DecodeIntoWithin(codec.JSON(), body, obj, limits); !errors.As(err, &over) {
		t.Errorf("DeleteOptions: %v", err)
	}
	if err := codec.CheckObject([]byte(items), limits); !errors.As(err, &over) {
		t.Errorf("a patch: %v", err)
	}
	// Without limits, and within them, it is Decode.
	for _, l := range []codec.BodyLimits{{}, {Bytes: 1 << 30, Items: 100_000}} {
		if _, err := codec.DecodeWithin(s, codec.JSON(), []byte(items), free, codec.Warn, l); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
}

// Weighed is called with the weight of a body before it is decoded, and its error is returned.
func TestBodiesAreWeighed(t *testing.T) {
	s := runtime.NewScheme()
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	free := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Free"}
	if err := errors.Join(
		runtime.Register(s, pod, runtime.KindOptions[*corev1.Pod]{}),
		runtime.Register(s, free, runtime.KindOptions[*unstructured.Unstructured]{}),
	); err != nil {
		t.Fatal(err)
	}
	containers := `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[` + strings.Repeat(`{},`, 1000) + `{}]}}`
	items := `{"apiVersion":"example.com/v1","kind":"Free","spec":[` + strings.Repeat(`{},`, 1000) + `{}]}`
	const least, most = 16 << 10, 1 << 20
	for _, row := range []struct {
		f       codec.Format
		want    schema.GroupVersionKind
		body    string
		weighed bool
	}{
		{codec.JSON(), pod, containers, true}, {codec.YAML(), pod, containers, true}, {codec.JSON(), free, items, true}, {codec.YAML(), free, items, true},
		{codec.JSON(), pod, `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{}]}}`, false},
	} {
		got, refuse := 0, error(nil)
		limits := codec.BodyLimits{Bytes: 8 << 20, Weighed: func(bytes int) error {
			got = max(got, bytes)
			return refuse
		}}
		if _, err := codec.DecodeWithin(s, row.f, []byte(row.body), row.want, codec.Ignore, limits); err != nil || (got > 0) != row.weighed {
			t.Errorf("%s %s: %d bytes, %v", row.f.MediaType(), row.want.Kind, got, err)
		}
		if row.weighed && (got < least || got > most) {
			t.Errorf("%s %s: %d bytes", row.f.MediaType(), row.want.Kind, got)
		}
		refuse = errors.New("no room")
		if _, err := codec.DecodeWithin(s, row.f, []byte(row.body), row.want, codec.Ignore, limits); row.weighed && !errors.Is(err, refuse) {
			t.Errorf("%s %s: %v", row.f.MediaType(), row.want.Kind, err)
		}
	}
}
