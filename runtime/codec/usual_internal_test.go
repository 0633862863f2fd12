package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type (
	usualSpec struct {
		Size   int32             `json:"size,omitempty"`
		Color  string            `json:"color,omitempty" default:"blue"`
		Float  float64           `json:"float,omitempty"`
		Any    any               `json:"any,omitempty"`
		Object map[string]any    `json:"object,omitempty"`
		Data   []byte            `json:"data,omitempty"`
		Quoted int64             `json:"quoted,string,omitempty"`
		Fixed  [2]int            `json:"fixed,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		Next   *usualSpec        `json:"next,omitempty"`
	}
	usualWidget = runtime.Resource[usualSpec, struct{}]
	folded      struct {
		runtime.Resource[struct{}, struct{}] `json:",inline"`
		Other                                string `json:"KIND,omitempty"`
	}
)

func (f *folded) DeepCopyObject() runtime.Object { return runtime.DeepCopy(f) }

var usualKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// usualKinds are the kinds that the tests below decode, in a scheme that has more versions of the first.
func usualKinds(t testing.TB) (*runtime.Scheme, []schema.GroupVersionKind) {
	s := runtime.NewScheme()
	type otherSpec usualSpec
	other := schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}
	pod, deployment := corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("Deployment")
	for _, err := range []error{
		runtime.Register(s, usualKind, runtime.KindOptions[*usualWidget]{}),
		runtime.Register(s, other, runtime.KindOptions[*runtime.Resource[otherSpec, struct{}]]{}),
		runtime.Register(s, pod, runtime.KindOptions[*corev1.Pod]{}),
		runtime.Register(s, deployment, runtime.KindOptions[*appsv1.Deployment]{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, []schema.GroupVersionKind{usualKind, other, pod, deployment}
}

var usualBodies = []struct {
	text  string
	usual bool // decodeUsual decodes it to the first kind
}{
	{`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"size":1}}`, true},
	{`{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"size":1,"any":{"a":1.0,"b":1e3}}}`, true},
	{`{"apiVersion":"example.com/v1","metadata":{}}`, true},
	{`{"kind":"Widget","spec":{"next":{"color":"red","data":"AAEC"}}}`, true},
	{"\n{\"apiVersion\" : \"example.com/v1\"}\n", true},
	{`null`, true}, {`{"kind":null,"apiVersion":null}`, true}, {`{"kind":"","apiVersion":""}`, true},
	{`{"kind":"Widget","apiVersion":"/v1"}`, false},
	{`{"kind":"Widget","apiVersion":"example.com/v2","spec":{"size":1}}`, false},
	{`{"kind":"Widget","apiVersion":"v1"}`, false},
	{`{"kind":"Widget","apiVersion":"a/b/c"}`, false},
	{`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"cpu":"1"}}}]}}`, false},
	{`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"a","nam":"b"}]}}`, false},
	{`{"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":1,"replicas":2}}`, false},
	{`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[]}`, false},
	{`{"kind":"Status","apiVersion":"v1"}`, false}, {`{"kind":"DeleteOptions","apiVersion":"v1"}`, false},
	{`{"Kind":"Pod","apiVersion":"v1"}`, false}, {`{"kind":"Widget","KIND":"Pod"}`, false}, {`{"kind":"Widget","kind":"Pod"}`, false},
	{`{"kind":1}`, false}, {`{"apiVersion":{}}`, false}, {`{"kind":"Widget","spec":{"unknown":1,"sizE":1}}`, false},
	{`{"kind":"Widget","spec":{"size":1.0}}`, false}, {`{"spec":{"quoted":"1"}}`, false}, {`{"spec":{"fixed":[1,2]}}`, false},
	{`{"kind":"Widget"} {}`, false}, {`{"kind":"Widget"`, false}, {"\ufeff{}", false}, {``, false}, {`[]`, false}, {`"x"`, false},
	{"{\"spec\":{\"color\":\"\xff\"}}", false}, {`{"spec":{"object":{"a":1,"a":2}}}`, false},
	{`{"spec":{"any":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}}`, false},
	{`{"metadata":{"name":1}}`, false}, {`{"metadata":{"creationTimestamp":"x"}}`, false},
}

// differs describes the difference between the results of Decode and decodeAny, and of Typed.read and Typed.readAny; "" means
// none.
func differs(s *runtime.Scheme, types *Typed, body []byte, want schema.GroupVersionKind) string {
	for _, f := range []Format{JSON(), YAML()} {
		if f == YAML() && len(body) > 1<<12 {
			continue // it takes long, and decodeUsual never decodes it
		}
		for _, v := range []Validation{Warn, Strict, Ignore} {
			got, err := Decode(s, f, bytes.Clone(body), want, v)
			all, wantErr := decodeAny(s, f, bytes.Clone(body), want, v, BodyLimits{})
			switch {
			case fmt.Sprint(err) != fmt.Sprint(wantErr) || reflect.TypeOf(err) != reflect.TypeOf(wantErr):
				return fmt.Sprintf("%v: error %v, not %v", v, err, wantErr)
			case fmt.Sprint(got.Problems) != fmt.Sprint(all.Problems):
				return fmt.Sprintf("%v: problems %v, not %v", v, got.Problems, all.Problems)
			case got.GVK != all.GVK || !reflect.DeepEqual(got.Object, all.Object):
				return fmt.Sprintf("%v: %v %#v, not %v %#v", v, got.GVK, got.Object, all.GVK, all.Object)
			}
		}
	}
	obj, from, err := types.read(bytes.Clone(body))
	all, wantFrom, wantErr := types.readAny(bytes.Clone(body))
	switch {
	case fmt.Sprint(err) != fmt.Sprint(wantErr):
		return fmt.Sprintf("stored: error %v, not %v", err, wantErr)
	case err == nil && (from.gvk != wantFrom.gvk || from.protobuf != wantFrom.protobuf || !reflect.DeepEqual(obj, all)):
		return fmt.Sprintf("stored: %v %#v, not %v %#v", from.gvk, obj, wantFrom.gvk, all)
	}
	return ""
}

// TestDecodeUsual compares the fast way of decoding with the general one.
func TestDecodeUsual(t *testing.T) {
	s, kinds := usualKinds(t)
	types, err := NewTyped(s, usualKind)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range usualBodies {
		if _, usual := decodeUsual(s, JSON(), []byte(b.text), usualKind); usual != b.usual {
			t.Errorf("%.200s: decoded in the usual way: %v", b.text, usual)
		}
		for _, want := range kinds {
			if d := differs(s, types, []byte(b.text), want); d != "" {
				t.Errorf("%s: %.200s: %s", want, b.text, d)
			}
		}
	}
	if _, usual := types.readUsual([]byte(usualBodies[0].text)); !usual {
		t.Error("what is stored is not read in the usual way")
	}
	if _, usual := types.readUsual([]byte(`{"metadata":{}}`)); usual {
		t.Error("stored text that does not say what it is is read in the usual way")
	}
}

// TestDecodeFolded: a member that encoding/json would match with kind, ignoring case, is left to the general way.
func TestDecodeFolded(t *testing.T) {
	s := runtime.NewScheme()
	if err := runtime.Register(s, usualKind, runtime.KindOptions[*folded]{}); err != nil {
		t.Skip(err)
	}
	types, err := NewTyped(s, usualKind)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"KIND":"Pod"}`, `{"kind":"Widget","KIND":"Pod"}`, `{"kind":"Widget","apiVersion":"example.com/v1"}`} {
		if d := differs(s, types, []byte(text), usualKind); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// FuzzDecodeUsual compares the fast way of decoding with the general one.
func FuzzDecodeUsual(f *testing.F) {
	s, kinds := usualKinds(f)
	types, err := NewTyped(s, usualKind)
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range usualBodies {
		for i := range kinds {
			f.Add(i, []byte(b.text))
		}
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		if i < 0 || i >= len(kinds) || len(body) > 1<<16 {
			return
		}
		if d := differs(s, types, body, kinds[i]); d != "" {
			t.Errorf("%s: %q: %s", kinds[i], body, d)
		}
	})
}
