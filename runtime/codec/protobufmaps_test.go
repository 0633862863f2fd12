package codec_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A map entry with a wrong length would be decoded, and kept, once for each such entry.
func TestDecodeProtobufMapEntries(t *testing.T) {
	s, kind := runtime.NewScheme(), corev1.SchemeGroupVersion.WithKind("Pod")
	must(t, runtime.Register(s, kind, runtime.KindOptions[*corev1.Pod]{}))
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	labels := func(entry ...byte) []byte { return field(1, field(11, entry)) }
	rest := bytes.Repeat([]byte{0}, 100)
	for name, c := range map[string]struct {
		message []byte
		refused bool
	}{
		"a label":                     {labels('\n', 1, 'a', 0x12, 1, 'b'), false},
		"a label without value":       {labels('\n', 1, 'a'), false},
		"an empty entry":              {labels(), false},
		"a further field":             {labels('\n', 1, 'a', 0x18, 1), false},
		"a value beyond the entry":    {append(labels('\n', 1, 'a', 0x12, 50), rest...), true},
		"a key beyond the entry":      {append(labels('\n', 50), rest...), true},
		"a value that is a number":    {labels('\n', 1, 'a', 0x10, 1, 'b'), true},
		"a value of no kind":          {labels('\n', 1, 'a', 0x17, 1, 'b'), true},
		"a key of no kind":            {labels(0x0f, 1, 'a'), true},
		"in a list, beyond the pod's": {field(2, field(2, field(8, field(1, []byte{'\n', 1, 'a', 0x12, 90})))), true},
	} {
		_, err := codec.Decode(s, codec.Protobuf(), sealed(t, kind, c.message, nil), kind, codec.Warn)
		if refused := err != nil && strings.Contains(err.Error(), "a map's entry"); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b", "c": ""}, Annotations: map[string]string{"": "x"}},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"k": "v"}, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
	}
	body, err := codec.Protobuf().Encode(pod, kind)
	must(t, err)
	d, err := codec.Decode(s, codec.Protobuf(), body, kind, codec.Warn)
	must(t, err)
	got := d.Object.(*corev1.Pod)
	if len(got.Labels) != 2 || got.Spec.NodeSelector["k"] != "v" || got.Spec.Containers[0].Resources.Limits.Cpu().Value() != 1 {
		t.Errorf("%+v", got)
	}
}
