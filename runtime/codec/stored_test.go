package codec_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// sealed returns a message in kube-apiserver's envelope.
func sealed(t testing.TB, gvk schema.GroupVersionKind, raw []byte, change func(*apiruntime.Unknown)) []byte {
	e := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}, Raw: raw}
	if change != nil {
		change(&e)
	}
	text, err := e.Marshal()
	must(t, err)
	return append([]byte("k8s\x00"), text...)
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	text, err := m.Marshal()
	must(t, err)
	return text
}

func TestEntryReadsProtobuf(t *testing.T) {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", ResourceVersion: "7", Labels: map[string]string{"on": "yes"}},
		Data:       map[string]string{"<k>": "v"}, BinaryData: map[string][]byte{"b": {0, 1}}, Immutable: new(bool),
	}
	typed := newTyped(t, configMapKind)
	plain, err := typed.Encode(c)
	must(t, err)
	for name, change := range map[string]func(*apiruntime.Unknown){
		"as kube-apiserver writes it": nil,
		"with its media type":         func(e *apiruntime.Unknown) { e.ContentType = apiruntime.ContentTypeProtobuf },
	} {
		d, stale, err := typed.Entry(sealed(t, configMapKind, marshal(t, c), change))
		must(t, err)
		same(t, name, string(plain.Bytes()), string(d.Bytes()))
		if !stale {
			t.Errorf("%s: it is not stale, so nothing would rewrite it as JSON", name)
		}
	}
	if d, stale, err := typed.Entry(plain.Bytes()); err != nil || stale || string(d.Bytes()) != string(plain.Bytes()) {
		t.Errorf("the rewritten value: %s, %v, %v", d.Bytes(), stale, err)
	}
}

// Strings that are not UTF-8 are converted once to strings that JSON can contain: two keys may become equal.
func TestEntryOfBrokenStringsIsCanonical(t *testing.T) {
	typed := newTyped(t, configMapKind)
	c := &corev1.ConfigMap{Data: map[string]string{"\xff": "1", "\xfe": "2", "a": "\xff"}}
	d, _, err := typed.Entry(sealed(t, configMapKind, marshal(t, c), nil))
	must(t, err)
	again, stale, err := typed.Entry(d.Bytes())
	must(t, err)
	if stale || string(again.Bytes()) != string(d.Bytes()) {
		t.Errorf("an entry of %s is %s", d.Bytes(), again.Bytes())
	}
}

// extended has the Unmarshal method of the type that it embeds, which would not decode its other fields.
type extended struct {
	corev1.ConfigMap `json:",inline"`
	Extra            string `json:"extra"`
}

func (e *extended) DeepCopyObject() runtime.Object { return runtime.DeepCopy(e) }

func TestEntryRefusesWhatItCannotUnseal(t *testing.T) {
	scheme := newScheme(t)
	typed, err := codec.NewTyped(scheme, v1Widget)
	must(t, err)
	extendedKind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Extended"}
	must(t, runtime.Register(scheme, extendedKind, runtime.KindOptions[*extended]{}))
	promoted, err := codec.NewTyped(scheme, extendedKind)
	must(t, err)
	maps := newTyped(t, configMapKind)
	raw := marshal(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	for name, c := range map[string]struct {
		typed *codec.Typed
		value []byte
		want  string
	}{
		"a type without protobuf": {typed, sealed(t, v1Widget, raw, nil), "field Size has no protobuf tag"},
		"a promoted Unmarshal":    {promoted, sealed(t, extendedKind, raw, nil), "field ConfigMap has no protobuf tag"},
		"another kind":            {maps, sealed(t, v1Widget, raw, nil), "stored object is a Widget.example.com"},
		"another encoding":        {maps, sealed(t, configMapKind, raw, func(e *apiruntime.Unknown) { e.ContentEncoding = "gzip" }), `"gzip"`},
		"another content":         {maps, sealed(t, configMapKind, raw, func(e *apiruntime.Unknown) { e.ContentType = "application/json" }), `"application/json"`},
		"a bad version":           {maps, sealed(t, schema.GroupVersionKind{Group: "a/b", Version: "v1", Kind: "ConfigMap"}, raw, nil), "envelope"},
		"a cut message":           {maps, sealed(t, configMapKind, raw[:3], nil), "EOF"},
		"a cut envelope":          {maps, sealed(t, configMapKind, raw, nil)[:20], "envelope is broken"},
		"nothing":                 {maps, []byte("k8s\x00"), "stored object is a"},
		"aescbc":                  {maps, []byte("k8s:enc:aescbc:v1:key1:\x00\xff"), `by the provider "aescbc" ("v1") with the key "key1"`},
		"KMS":                     {maps, []byte("k8s:enc:kms:v2:vault:\x00:"), `by the provider "kms" ("v2") with the KMS plug-in "vault"`},
		"half a mark":             {maps, []byte("k8s:enc:aes"), "encrypted"},
		"CBOR":                    {maps, []byte("\xd9\xd9\xf7\xa2\x41a"), "CBOR that cannot be read"},
		"a huge length":           {maps, []byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "envelope is broken"},
		"a huge length within":    {maps, sealed(t, configMapKind, []byte("\x0a\xff\xff\xff\xff\x0f"), nil), "EOF"},
	} {
		d, _, err := c.typed.Entry(c.value)
		if err == nil || !d.IsZero() || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v; want an error with %q", name, d.Bytes(), err, c.want)
		}
	}
}

// message is implemented by the kinds of k8s.io/api.
type message interface {
	apiruntime.Object
	Marshal() ([]byte, error)
	Unmarshal(text []byte) error
}

// The document of a protobuf value is the JSON that kube-apiserver makes of the value.
func TestEntryOfProtobufIsItsJSON(t *testing.T) {
	at := metav1.NewTime(time.Date(2024, 1, 2, 3, 4, 5, 678, time.FixedZone("x", 3600)))
	for kind, obj := range map[string]message{
		"Pod": &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", CreationTimestamp: at, DeletionTimestamp: &at, Annotations: map[string]string{"<": "\u2028"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}},
				Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("0.5Gi")}},
			}}},
		},
		"ConfigMap": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"b": "", "a": "&"}, BinaryData: map[string][]byte{"c": {0, 255}}},
		"Secret":    &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"a": {0, 255}, "empty": {}, "nil": nil}},
		"Service":   &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{TargetPort: intstr.FromInt32(80)}}}},
		"Event":     &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, EventTime: metav1.NewMicroTime(at.Time)},
	} {
		raw := marshal(t, obj)
		obj = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(message) // as kube-apiserver would decode it
		must(t, obj.Unmarshal(raw))
		gvk := corev1.SchemeGroupVersion.WithKind(kind)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		want, err := json.Marshal(obj)
		must(t, err)
		d, stale, err := newTyped(t, gvk).Entry(sealed(t, gvk, raw, nil))
		must(t, err)
		same(t, kind, string(want), string(d.Bytes()))
		if !stale {
			t.Errorf("%s: it is not stale", kind)
		}
	}
}

// fragile panics for some values of its color.
type fragile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Color             fragileColor `json:"color"`
}

type fragileColor string

func (c fragileColor) MarshalJSON() ([]byte, error) {
	if c == "encode" {
		panic("no such color")
	}
	return json.Marshal(string(c))
}

func (f *fragile) Unmarshal([]byte) error                   { panic("no such message") }
func (f *fragile) Size() int                                { return 0 }
func (f *fragile) MarshalToSizedBuffer([]byte) (int, error) { panic("no such message") }
func (f *fragile) DeepCopyObject() runtime.Object           { return runtime.DeepCopy(f) }

// Entry returns an error for stored bytes that make a type panic.
func TestEntryOfWhatPanics(t *testing.T) {
	scheme, gvk := newScheme(t), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fragile"}
	must(t, runtime.Register(scheme, gvk, runtime.KindOptions[*fragile]{}))
	typed, err := codec.NewTyped(scheme, gvk)
	must(t, err)
	for want, value := range map[string][]byte{
		"no such message": sealed(t, gvk, nil, nil),
		"no such color":   []byte(`{"kind":"Fragile","apiVersion":"example.com/v1","metadata":{"name":"a"},"color":"encode"}`),
	} {
		d, _, err := typed.Entry(value)
		if err == nil || !d.IsZero() || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v; want an error with %q", d.Bytes(), err, want)
		}
	}
}

func FuzzProtobufEntry(f *testing.F) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
	f.Add(sealed(f, configMapKind, marshal(f, c), nil))
	f.Add(sealed(f, v1Widget, nil, nil))
	f.Add([]byte("k8s:enc:kms:v2:vault:\x00"))
	f.Add([]byte("k8s:enc:"))
	typed := newTyped(f, configMapKind)
	f.Fuzz(func(t *testing.T, value []byte) {
		d, _, err := typed.Entry(value)
		if err != nil {
			return
		}
		again, stale, err := typed.Entry(d.Bytes())
		must(t, err)
		if stale || string(again.Bytes()) != string(d.Bytes()) {
			t.Fatalf("%q: an entry of %q is %q, stale %v", value, d.Bytes(), again.Bytes(), stale)
		}
		_, err = typed.Decode(d)
		must(t, err)
	})
}
