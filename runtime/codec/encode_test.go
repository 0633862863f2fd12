package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Data: map[string]string{"k": "v"}}
}

// The bytes are the same as those in answers of kube-apiserver.
func TestEncodeGolden(t *testing.T) {
	text, err := codec.Encode(configMap())
	must(t, err)
	same(t, "JSON", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b"},"data":{"k":"v"}}`+"\n", string(text))
	plain, err := codec.JSON().FromJSON(text, false)
	must(t, err)
	same(t, "JSON response", string(text), string(plain))
	pretty, err := codec.JSON().FromJSON(text, true)
	must(t, err)
	want, err := json.MarshalIndent(configMap(), "", "  ")
	must(t, err)
	same(t, "pretty JSON", string(want), string(pretty))
	yaml, err := codec.YAML().FromJSON(text, true)
	must(t, err)
	same(t, "YAML", "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\n", string(yaml))
	if text, err := codec.Encode(&Widget{Spec: WidgetSpec{Color: "<&>\u2028"}}); err != nil || !strings.Contains(string(text), `"color":"\u003c\u0026\u003e\u2028"`) {
		t.Errorf("escaping: %s, %v", text, err)
	}
}

func TestFromJSONLeavesItsInputAlone(t *testing.T) {
	shared := []byte(`{"a":1}X`)
	for _, f := range []codec.Format{codec.JSON(), codec.YAML()} {
		for _, pretty := range []bool{false, true} {
			if _, err := f.FromJSON(shared[:7], pretty); err != nil || string(shared) != `{"a":1}X` {
				t.Errorf("%s: %v, %s", f.MediaType(), err, shared)
			}
		}
	}
	if _, err := codec.JSON().FromJSON([]byte("{"), true); err == nil {
		t.Error("broken JSON was indented")
	}
}

func TestListsWithoutItems(t *testing.T) {
	typed := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	for _, c := range []struct {
		list runtime.Object
		want string
	}{
		{&runtime.List[Widget]{}, `{"metadata":{},"items":[]}`},
		{&runtime.List[Widget]{Items: []Widget{}}, `{"metadata":{},"items":[]}`},
		{typed, `{"metadata":{"resourceVersion":"5"},"items":[]}`},
		{&metav1.Status{}, `{"metadata":{}}`},
	} {
		text, err := codec.Encode(c.list)
		must(t, err)
		same(t, "list", c.want+"\n", string(text))
	}
	if typed.Items != nil {
		t.Error("Encode changed the list")
	}
}

func TestEncodeDocumentOfNothing(t *testing.T) {
	for _, obj := range []runtime.Object{nil, (*Widget)(nil)} {
		if _, err := codec.EncodeDocument(obj, v1Widget); err == nil {
			t.Errorf("%T was encoded", obj)
		}
	}
}
