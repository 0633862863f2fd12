package runtime_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/schema"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Scale has the kind, the schema, the JSON and the protobuf message of the type in k8s.io/api. The other formats are made
// from the JSON.
func TestScaleIsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	kind := runtime.ScaleKind()
	if want := autoscalingv1.SchemeGroupVersion.WithKind("Scale"); kind != want {
		t.Errorf("the kind is %v, want %v", kind, want)
	}
	define := func(typ reflect.Type) string {
		b := schema.NewBuilder(schema.Options{GroupVersion: kind.GroupVersion()})
		b.AddKind(schema.Kind{GVK: kind, Type: typ})
		text, err := json.MarshalIndent(b.Definitions(), "", " ")
		must(t, err)
		return string(text)
	}
	if got, want := define(reflect.TypeFor[runtime.Scale]()), define(reflect.TypeFor[autoscalingv1.Scale]()); got != want {
		t.Errorf("the schema is\n%s\nwant\n%s", got, want)
	}

	m := metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{"x": "y"}}
	for _, pair := range []struct {
		ours   runtime.Scale
		theirs autoscalingv1.Scale
	}{
		{},
		{runtime.Scale{Spec: runtime.ScaleSpec{Replicas: -1}}, autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: -1}}},
		{
			runtime.Scale{ObjectMeta: m, Spec: runtime.ScaleSpec{Replicas: 3}, Status: runtime.ScaleStatus{Replicas: 2, Selector: "a=b"}},
			autoscalingv1.Scale{ObjectMeta: m, Spec: autoscalingv1.ScaleSpec{Replicas: 3}, Status: autoscalingv1.ScaleStatus{Replicas: 2, Selector: "a=b"}},
		},
	} {
		pair.ours.SetGroupVersionKind(kind)
		pair.theirs.SetGroupVersionKind(kind)
		ours, err := codec.Encode(&pair.ours)
		must(t, err)
		theirs, err := codec.Encode(&pair.theirs)
		must(t, err)
		if string(ours) != string(theirs) {
			t.Errorf("the JSON is %s, want %s", ours, theirs)
		}
		f := codec.Protobuf()
		ours, err = f.Encode(&pair.ours, kind)
		must(t, err)
		theirs, err = f.Encode(&pair.theirs, kind)
		must(t, err)
		if string(ours) != string(theirs) {
			t.Errorf("the message is %x, want %x", ours, theirs)
		}
		var read runtime.Scale
		must(t, codec.DecodeInto(f, theirs, &read))
		if !reflect.DeepEqual(read, pair.ours) {
			t.Errorf("read %+v, want %+v", read, pair.ours)
		}
	}
}
