package weight

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// of returns the weight of a text.
func of(t testing.TB, weigh func(Limit) error) int {
	t.Helper()
	low, high := 0, 1<<30
	for low < high { // searches the smallest limit that the text is within
		if middle := (low + high) / 2; weigh(Limit{Bytes: max(middle, 1)}) == nil {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// orList decodes itself, as some types of apiextensions.k8s.io do.
type orList struct {
	One  *tree
	More []tree
}

func (o *orList) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, &o.More)
	}
	return json.Unmarshal(text, &o.One)
}

type tree struct {
	Name  string           `json:"name"`
	Next  *tree            `json:"next"`
	Other orList           `json:"other"`
	Many  []tree           `json:"many"`
	Named map[string]tree  `json:"named"`
	Free  any              `json:"free"`
	Count map[string]int32 `json:"count"`
	Size  [100]int64       `json:"-"`
}

// The weight of values is the memory that Go needs for them.
func TestJSONWeighs(t *testing.T) {
	t.Parallel()
	var types Types
	size := int(reflect.TypeFor[tree]().Size())
	for _, row := range []struct {
		text string
		want int
	}{
		{`{}`, 0},
		{`null`, 0},
		{`{"name":"a long enough string"}`, 0},
		{`{"next":{}}`, size},
		{`{"next":{"next":{"next":null}}}`, 2 * size},
		{`{"ne\u0078t":{}}`, size},
		{`{"many":[{},{},{"next":{}}]}`, 4 * size},
		{` { "many" : [ { } , { "many" : [ ] } ] } `, 2 * size},
		{`{"unknown":[{},{},{}],"Next":{}}`, 0},
		{`{"many":{"next":{}},"next":[{}]}`, size},
		{`{"named":{"a":{},"b":{}}}`, 2*size + 8*(16+8+1)},
		{`{"count":{"a":1}}`, 8 * (16 + 4 + 1)},
		{`{"free":[1,"a",null,true,{}]}`, sliceHead + 5*slot + number + stringHead + mapHead},
		{`{"free":{"a":1}}`, mapHead + 8*(16+16+1) + number},
		{`{"other":{"next":{}}}`, 2*size + len(`{"next":{}}`)/2},
		{`{"other":[{},{}]}`, 2*size + len(`[{},{}]`)/2},
		{`{"other":"text"}`, len(`"text"`) / 2},
		{`{"many":[{},{}`, 2 * size},
		{`{"many":[{},{} {}`, 2 * size},
		{`{"many":[{},}`, 2 * size},
		{`{"name":"<>&<"}`, 6 * 4},
	} {
		got := of(t, func(l Limit) error { return types.JSON([]byte(row.text), reflect.TypeFor[tree](), l) })
		if max(got, 1) != max(row.want, 1) {
			t.Errorf("%s weighs %d, want %d", row.text, got, row.want)
		}
	}
}

// Each value that decodes itself reads its text once more, so deeply nested values of this kind take long.
func TestJSONOfTypesThatReadThemselves(t *testing.T) {
	t.Parallel()
	var types Types
	const depth, length = 100, 1 << 20
	text := strings.Repeat(`{"other":`, depth) + `{"name":"` + strings.Repeat("x", length) + `"}` + strings.Repeat("}", depth)
	if got := of(t, func(l Limit) error { return types.JSON([]byte(text), reflect.TypeFor[tree](), l) }); got < depth*length/2 {
		t.Errorf("weighs %d", got)
	}
}

func TestItemsOfMetadata(t *testing.T) {
	t.Parallel()
	var types Types
	l := Limit{Items: 3}
	object := func(text string) error { return types.Object([]byte(text), l) }
	typed := func(text string) error { return types.JSON([]byte(text), reflect.TypeFor[corev1.ConfigMap](), l) }
	for _, row := range []struct {
		text, want string
	}{
		{`{"metadata":{"finalizers":["a","b","c"],"labels":{"a":"b","c":"d","e":"f"}},"data":{"a":"","b":"","c":"","d":""}}`, ""},
		{`{"metadata":{"finalizers":["a","b","c","d"]}}`, "finalizers"},
		{`{"metadata":{"ownerReferences":[{},{},{},{}]}}`, "ownerReferences"},
		{`{"metadata":{"managedFields":[{},{},{},{}]}}`, "managedFields"},
		{`{"metadata":{"labels":{"a":"","b":"","c":"","d":""}}}`, "labels"},
		{`{"metadata":{"annotations":{"a":"","a":"","a":"","a":""}}}`, "annotations"},
	} {
		for _, weigh := range []func(string) error{object, typed} {
			var over *LimitError
			if errors.As(weigh(row.text), &over); over == nil && row.want != "" || over != nil && over.Field != row.want {
				t.Errorf("%s: %v, want %q", row.text, over, row.want)
			}
		}
	}
	obj := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a", "b", "c", "d"}}}
	message, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var over *LimitError
	if err := types.Protobuf(message, reflect.TypeFor[corev1.ConfigMap](), l); !errors.As(err, &over) || over.Field != "finalizers" {
		t.Errorf("protobuf: %v", err)
	}
}

// The weight of a message is that of its values.
func TestProtobufWeighs(t *testing.T) {
	t.Parallel()
	var types Types
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			Containers: make([]corev1.Container, 5), RestartPolicy: "Always",
			Volumes:          []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}},
			NodeSelector:     map[string]string{"a": "b"},
			ImagePullSecrets: make([]corev1.LocalObjectReference, 2),
		},
	}
	message, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, func(l Limit) error { return types.Protobuf(message, reflect.TypeFor[corev1.Pod](), l) })
	want := of(t, func(l Limit) error { return types.JSON(text, reflect.TypeFor[corev1.Pod](), l) })
	for _, c := range message { // each counts as a character that JSON escapes
		if c < ' ' {
			got -= escapeSize
		}
	}
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("weighs %d in protobuf, %d in JSON", got, want)
	}
}

func TestCBORWeighs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		item string
		want int
	}{
		{"\x18\x20", slot + number + 6},
		{"\x83\x20\x20\x20", slot + sliceHead + 3*(slot+number)},
		{"\x9f\x20\xff", slot + sliceHead + 2*(slot+number)},
		{"\x43abc", slot + stringHead},
		{"\xa0", slot + mapHead},
		{"\xa1\x41a\x20", 3*slot + mapHead + 8*33 + stringHead + number},
		{"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", slot + sliceHead},
		{"\xd9\xd9\xf7\xa0", 2*slot + number + mapHead},
		{"\x5b\xff\xff\xff\xff\xff\xff\xff\xff\x20\x20", 0},
	} {
		for _, c := range row.item { // heads of more than seven bits are invalid UTF-8
			if c == utf8.RuneError {
				row.want += escapeSize
			}
		}
		if got := of(t, func(l Limit) error { return CBOR([]byte(row.item), l) }); max(got, 1) != max(row.want, 1) {
			t.Errorf("%x weighs %d, want %d", row.item, got, row.want)
		}
	}
}
