package codec_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// filler fills objects with random values that survive an encoding; strings may be any Unicode.
func filler(seed int64) *randfill.Filler {
	return randfill.New().NilChance(0.4).NumElements(0, 3).MaxDepth(10).RandSource(rand.NewSource(seed)).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<32), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), 0))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes([]byte(`{"f:spec":{}}`)) },
		func(e *apiruntime.RawExtension, c randfill.Continue) { e.Raw = []byte(`{"a":[{"b":"]}"}]}`) },
		func(m *metav1.TypeMeta, c randfill.Continue) {},
		func(m *map[string]any, c randfill.Continue) {
			*m = map[string]any{c.String(3): c.Int63(), "b": []any{nil, c.String(3)}}
		},
		func(s *string, c randfill.Continue) {
			*s = c.String(6) + []string{"", `"}`, `\`, "<&>", "]"}[c.Intn(5)]
		},
	)
}

func encode(t *testing.T, obj any) string {
	t.Helper()
	text, err := json.Marshal(obj)
	must(t, err)
	if _, ok := obj.(*runtime.Resource[appsv1.DeploymentSpec, struct{}]); ok { // it has no status
		return strings.TrimSuffix(string(text), `,"status":{}}`) + "}"
	}
	return string(text)
}

// checkDocument compares the texts that a document of obj appends with encodings of obj.
func checkDocument(t *testing.T, obj runtime.Object, gvk schema.GroupVersionKind, itemHasKind bool) {
	t.Helper()
	meta := obj.(metav1.Object)
	meta.SetResourceVersion("before")
	before := obj.DeepCopyObject()
	d, err := codec.EncodeDocument(obj, gvk)
	must(t, err)
	if !reflect.DeepEqual(obj, before) {
		t.Fatal("EncodeDocument changed the object")
	}
	if d.APIVersion() != gvk.GroupVersion().String() || d.Kind() != gvk.Kind {
		t.Fatalf("document is a %s of %s", d.Kind(), d.APIVersion())
	}
	for _, revision := range []int64{0, 1, 1 << 62} {
		meta.SetResourceVersion("")
		if revision > 0 {
			meta.SetResourceVersion(strconv.FormatInt(revision, 10))
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		same(t, "object", "x"+encode(t, obj), string(d.AppendObject([]byte("x"), revision)))
		if got := len(d.AppendObject(nil, revision)); got > d.Len() {
			t.Errorf("Len is %d, the object has %d bytes", d.Len(), got)
		}
		if !itemHasKind {
			same(t, "metadata", encode(t, obj.(metav1.ObjectMetaAccessor).GetObjectMeta()), string(d.AppendMetadata(nil, revision)))
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			same(t, "item", encode(t, obj), string(d.AppendItem(nil, revision)))
		} else {
			same(t, "item", encode(t, obj), string(d.AppendItem(nil, revision)))
			same(t, "metadata", encode(t, obj.(*unstructured.Unstructured).Object["metadata"]), string(d.AppendMetadata(nil, revision)))
		}
	}
	if got := d.Labels(); len(got) != len(meta.GetLabels()) {
		t.Errorf("labels are %v, not %v", got, meta.GetLabels())
	}
	for k, v := range meta.GetLabels() {
		if d.Labels()[k] != v {
			t.Errorf("label %q is %q, not %q", k, d.Labels()[k], v)
		}
	}
	if d.Field("metadata.name") != meta.GetName() || d.Field("metadata.namespace") != meta.GetNamespace() {
		t.Errorf("name and namespace are %q and %q, not %q and %q", d.Field("metadata.name"), d.Field("metadata.namespace"), meta.GetName(), meta.GetNamespace())
	}
	again, err := codec.ParseDocument(append(d.Bytes()[:len(d.Bytes()):len(d.Bytes())], '\n'))
	must(t, err)
	same(t, "parsed again", string(d.Bytes()), string(again.Bytes()))
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("%s differs:\nwant %s\ngot  %s", what, want, got)
	}
}

func TestDocumentOfTypedObjects(t *testing.T) {
	for seed := range int64(60) {
		for _, obj := range []runtime.Object{
			&corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.Event{}, &appsv1.Deployment{}, &batchv1.Job{}, &rbacv1.ClusterRole{},
			&Widget{}, &WidgetV2{}, &runtime.Resource[appsv1.DeploymentSpec, struct{}]{},
		} {
			f := filler(seed)
			if seed%3 == 0 {
				f = f.NilChance(0.9) // metadata with few fields
			}
			f.Fill(obj)
			if seed%5 == 0 {
				*obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = metav1.ObjectMeta{}
			}
			checkDocument(t, obj, v1Widget, false)
		}
	}
}

func TestDocumentOfUnstructuredObjects(t *testing.T) {
	for seed := range int64(100) {
		var typed metav1.ObjectMeta
		filler(seed).NilChance(0.7).Fill(&typed)
		typed.ManagedFields = nil
		meta, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		must(t, err)
		meta["zeta"], meta["resourceVersionX"] = "after", "after"
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": meta, "spec": map[string]any{"a": seed, "<": nil}}}
		if seed%4 == 0 {
			u.Object["metadata"] = map[string]any{}
		}
		if seed%2 == 0 {
			u.Object["data"] = "before metadata"
		}
		checkDocument(t, u, v1Widget, true)
	}
}

func TestDocumentField(t *testing.T) {
	d, err := codec.EncodeDocument(&Widget{Spec: WidgetSpec{Size: 3, Color: `a"<b`, On: true, Data: map[string]string{"spec": "x", "\"": "q"},
		Any: map[string]any{"null": nil, "f": 1.5, "l": []any{1}}}}, v1Widget)
	must(t, err)
	for path, want := range map[string]string{
		"spec.size": "3", "spec.color": `a"<b`, "spec.on": "true", "spec.data.spec": "x", `spec.data."`: "q", "kind": "Widget", "spec.any.f": "1.5",
		"spec.any.null": "", "spec.any.l": "", "spec.any": "", "spec.none": "", "spec.size.more": "", "spec.color.more": "", "": "", "spec.": "", ".": "", "status.ready": "",
	} {
		if got := d.Field(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if (codec.Document{}).Field("spec") != "" || !(codec.Document{}).IsZero() || d.IsZero() {
		t.Error("zero document")
	}
}

func TestParseDocumentRefuses(t *testing.T) {
	for _, value := range []string{
		"", "\n", "{", "{}", "[]", "null", `"x"`, `{"kind":"A"}`, `{"kind":"A","apiVersion":"v1"}`, `{"kind":"A","apiVersion":"v1","spec":{}}`,
		`{"metadata":{},"kind":"A","apiVersion":"v1"}`, `{"kind":"A","metadata":{},"apiVersion":"v1"}`, `{"kind":"A","kind":"B","metadata":{}}`,
		`{"kind":"A","apiVersion":1,"metadata":{}}`, `{"kind":null,"apiVersion":"v1","metadata":{}}`, `{"kind":"A","apiVersion":"v\u0031","metadata":{}}`,
		`{"kind":"A","apiVersion":"v1","metadata":{},"metadata":{}}`, `{"kind":"A","apiVersion":"v1","metadata":{},"kind":"B"}`,
		`{"kind":"A","apiVersion":"v1","metadata":{"resourceVersion":"1"}}`, `{"kind":"A","apiVersion":"v1","metadata":{"resource\u0056ersion":"1"}}`,
		`{"kind":"A","apiVersion":"v1","metadata":[]}`, `{"kind":"A","apiVersion":"v1","metadata":null}`, `{"kind":"A","apiVersion":"v1","metadata":{}`,
		`{"kind":"A","apiVersion":"v1","metadata":{}} `, `{"kind":"A","apiVersion":"v1","metadata":{}}{}`, `{"kind": "A","apiVersion":"v1","metadata":{}}`,
		`{"kind":"A","apiVersion":"v1","metadata":{"name":}}`, `{"kind":"A","apiVersion":"v1","metadata":{"name":"a"`, "k8s\x00\n\x0f",
	} {
		if _, err := codec.ParseDocument([]byte(value)); err == nil || !strings.HasPrefix(err.Error(), "not in canonical form") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, value := range []string{
		`{"kind":"A","apiVersion":"v1","metadata":{"name":"a","uid":"u","labels":{"a":"b"}},"spec":{"a":[1,{"b":"}"}]}}`,
		`{"apiVersion":"v1","data":1,"kind":"A","metadata":{}}`, `{"apiVersion":"v1","kind":"A","metadata":{"name":"x","zeta":1}}`, `{"kind":"A","apiVersion":"v1","metadata":{"a\"":"\\"}}`,
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		d, err := codec.ParseDocument(value)
		if err != nil {
			return
		}
		d.Labels()
		d.Field("metadata.name")
		d.Field("spec.a.b")
		object, item, meta := d.AppendObject(nil, 7), d.AppendItem(nil, 7), d.AppendMetadata(nil, 7)
		if !json.Valid(value) {
			return // invalid text inside a value that is only skipped
		}
		if !json.Valid(object) || !json.Valid(item) || !json.Valid(meta) {
			t.Fatalf("%q gives %q, %q, %q", value, object, item, meta)
		}
		var got struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
		if _, err := codec.Unmarshal(object, &got, codec.Ignore); err == nil && got.Metadata.ResourceVersion != "7" {
			t.Fatalf("%q gives %q", value, object)
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	pod := &corev1.Pod{}
	filler(3).NilChance(0.2).Fill(pod)
	d, err := codec.EncodeDocument(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	must(b, err)
	b.SetBytes(int64(len(d.Bytes())))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := codec.EncodeDocument(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
			must(b, err)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := codec.ParseDocument(d.Bytes())
			must(b, err)
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, d.Len())
		for b.Loop() {
			buf = d.AppendItem(buf[:0], 12345)
		}
	})
}
