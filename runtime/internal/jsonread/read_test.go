package jsonread_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/jsonread"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"
)

type (
	name   string
	names  []string
	number int16
	bytes8 []uint8
	byte8  uint8

	inner struct {
		Hidden string
	}
	Outer struct {
		Outside string `json:"outside"`
	}
	Clash struct {
		Both string
	}
	Clash2 struct {
		Both string
	}
	// itself decodes itself, and panics for some texts.
	itself struct{ text string }

	odd struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`

		inner
		*Outer
		Clash
		Clash2
		Named Outer `json:"named"`

		Name     name                    `json:"name"`
		Names    names                   `json:"names"`
		Number   number                  `json:"number"`
		Tiny     int8                    `json:"tiny"`
		Unsigned uint32                  `json:"unsigned"`
		Byte     byte                    `json:"byte"`
		Float    float64                 `json:"float"`
		Float32  float32                 `json:"float32"`
		Any      any                     `json:"any"`
		Anys     []any                   `json:"anys"`
		Object   map[string]any          `json:"object"`
		Error    error                   `json:"error"`
		Map      map[name]string         `json:"map"`
		ByInt    map[int]string          `json:"byInt"`
		ByAddr   map[netip.Addr]int      `json:"byAddr"`
		Labels   map[string]string       `json:"labels"`
		Structs  map[string]Outer        `json:"structs"`
		Pointers map[string]*Outer       `json:"pointers"`
		Bytes    []byte                  `json:"bytes"`
		Bytes8   bytes8                  `json:"bytes8"`
		Bytes9   []byte8                 `json:"bytes9"`
		Array    [2]int                  `json:"array"`
		AsString int                     `json:"asString,string"`
		Numeral  json.Number             `json:"numeral"`
		Raw      json.RawMessage         `json:"raw"`
		RawPtr   *json.RawMessage        `json:"rawPtr"`
		Time     time.Time               `json:"time"`
		Duration time.Duration           `json:"duration"`
		Addr     netip.Addr              `json:"addr"`
		Port     intstr.IntOrString      `json:"port"`
		Quantity *resource.Quantity      `json:"quantity"`
		Micro    metav1.MicroTime        `json:"micro"`
		Span     metav1.Duration         `json:"span"`
		Ext      apiruntime.RawExtension `json:"ext"`
		Itself   itself                  `json:"itself"`
		Unnamed  struct{ metav1.Time }   `json:"unnamed"`
		Twice    **string                `json:"twice"`
		Lists    [][]string              `json:"lists"`
		Self     *odd                    `json:"self"`
		Selves   []odd                   `json:"selves"`
		Skipped  string                  `json:"-"`
		Dash     string                  `json:"-,"` //nolint:staticcheck // a field of that name
		Untagged string
	}

	folds struct {
		A string `json:"kind"`
		B string `json:"Kind"`
	}
	weird struct {
		A string `json:"a\"b"` //nolint:staticcheck // a name that encoding/json does not take
	}
)

func (i *itself) UnmarshalJSON(text []byte) error {
	if strings.Contains(string(text), "panic") {
		panic("it cannot stand this")
	}
	i.text = string(text)
	return nil
}

// types returns values of the types that the texts of these tests are decoded into.
func types() []any {
	return []any{
		&widget{}, &odd{}, &corev1.Pod{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Node{}, &corev1.Service{}, &corev1.Event{},
		&corev1.PersistentVolume{}, &appsv1.Deployment{}, &appsv1.ControllerRevision{}, &batchv1.CronJob{}, &coordinationv1.Lease{},
		&networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}, &rbacv1.ClusterRole{},
		&eventsv1.Event{}, &storagev1.CSINode{}, &resourcev1.ResourceSlice{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
		&metav1.Status{}, &metav1.PartialObjectMetadata{}, &metav1.List{}, &metav1.DeleteOptions{}, &folds{}, &weird{},
	}
}

func fresh(of any) any { return reflect.New(reflect.TypeOf(of).Elem()).Interface() }

// strict is the ordinary decoder.
func strict(text []byte, into any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	problems, err := kjson.UnmarshalStrict(text, into)
	return err == nil && len(problems) == 0
}

// same fails if jsonread decodes a text to another value than the ordinary decoder. It reports whether jsonread decoded the text.
func same(t *testing.T, c *jsonread.Compiler, of any, text []byte) bool {
	t.Helper()
	got, want, before := fresh(of), fresh(of), string(text)
	if !c.Read(text, got) {
		return false
	}
	if !strict(text, want) {
		t.Fatalf("%T was read, and must not be:\n%q", of, text)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%T is read from\n%q\nas\n%#v\nand not as\n%#v", of, text, got, want)
	}
	if string(text) != before {
		t.Fatalf("the text of a %T was changed", of)
	}
	return true
}

// TestReadObjects decodes the JSON of random objects, all of which jsonread must decode.
func TestReadObjects(t *testing.T) {
	var c jsonread.Compiler
	fill := randfill.NewWithSeed(1).NilChance(0.5).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, f randfill.Continue) {
			*q = *resource.NewQuantity(f.Int63n(1e9), resource.DecimalSI)
		},
		func(s *intstr.IntOrString, f randfill.Continue) { *s = intstr.FromInt32(f.Int31()) },
		func(at *metav1.Time, f randfill.Continue) { at.Time = time.Unix(f.Int63n(1e9), 0) },
		func(at *metav1.MicroTime, f randfill.Continue) { at.Time = time.Unix(f.Int63n(1e9), 5000) },
		func(e *apiruntime.RawExtension, f randfill.Continue) { e.Raw = []byte(`{"a":[1,null,{}]}`) },
		func(v *metav1.FieldsV1, f randfill.Continue) { v.SetRawBytes([]byte(`{"f:a":{}}`)) },
	)
	for _, of := range types() {
		switch of.(type) {
		case *odd, *folds, *weird:
			continue
		}
		for range 15 {
			obj := fresh(of)
			fill.Fill(obj)
			text, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			if !same(t, &c, of, text) && !strings.Contains(string(text), `\ufffd`) {
				t.Fatalf("%T is not read from\n%s", of, text)
			}
			indented, err := json.MarshalIndent(obj, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			same(t, &c, of, append(indented, '\n'))
		}
	}
}

// usual are texts that jsonread decodes, by the index of their type.
var usual = []struct {
	of   int
	text string
}{
	{0, widgetText}, {0, storedText}, {2, podText}, {0, "null"}, {0, " {\r\n\t} \n"}, {0, `{"spec":null,"metadata":null,"kind":null}`},
	{0, `{"spec":{"size":-0,"color":"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\té😀\u2028"}}`},
	{0, `{"spec":{"size":2147483647,"replicas":-2147483648},"status":{"ready":false}}`},
	{1, `{"name":"a","names":[],"number":-32768,"tiny":127,"unsigned":4294967295,"byte":255,"float":1e3,"float32":1.5}`},
	{1, `{"any":{"a":[1,1.0,-0,1e3,9223372036854775807,9223372036854775808,-1.5E-3,"x",null,true,false,{},[]]},"anys":null,"object":{}}`},
	{1, `{"map":{"b":"x","a":null},"labels":{"b":"","a":null,"\u0061\u0062":"c"},"structs":{"a":{"outside":"x"},"b":null},"pointers":{"a":{},"b":null}}`},
	{1, `{"bytes":"aGVsbG8=","raw":{"a":[1, 2]},"rawPtr":null,"time":"2026-01-01T00:00:00Z","duration":5}`},
	{1, `{"port":"http","quantity":"1500m","micro":"2026-01-01T00:00:00.000001Z","span":"1m","ext":{"kind":"a"}}`},
	{1, `{"itself":null,"lists":[null,[],["a"]],"self":{"self":{"name":"x"}},"selves":[{},null,{"name":"y"}]}`},
	{1, `{"twice":"x","-":"dash","Untagged":"u","named":{"outside":"x"},"metadata":{"name":"n","creationTimestamp":null}}`},
	{1, `{"itself":{"anything":"goes"},"bytes":"","metadata":{"creationTimestamp":"2026-01-01T00:00:00.5+02:00"}}`},
	{1, `{"any":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`},
	{3, `{"data":{"a":"AAEC","b":null}}`}, {4, `{"binaryData":{"a":""},"immutable":true}`},
}

// unusual are texts that jsonread does not decode.
var unusual = []struct {
	of   int
	text string
}{
	{0, ``}, {0, ` `}, {0, `{`}, {0, `{}}`}, {0, `{} x`}, {0, `nul`}, {0, `[]`}, {0, `"x"`}, {0, `1`}, {0, "\ufeff{}"}, {0, `{,}`}, {0, `{"spec":{},}`},
	{0, `{"spec":{} "status":{}}`}, {0, `{"spec" {}}`}, {0, `{"spec":}`}, {0, `{spec:{}}`}, {0, `{'spec':{}}`}, {0, "{\"spec\":{}\v}"},
	{0, `{"spec":{},"spec":{}}`}, {0, `{"Spec":{}}`}, {0, `{"spec":{"Size":1}}`}, {0, `{"sp\u0065c":{}}`}, {0, `{"unknown":1}`}, {0, `{"":1}`},
	{0, `{"\u017fpec":{}}`}, {0, "{\"\u017fpec\":{}}"}, {0, `{"metadata":{"labels":{"a":"b","a":"c"}}}`}, {0, `{"metadata":{"labels":{"a":"b","\u0061":"c"}}}`},
	{0, `{"metadata":{"labels":{"a":1}}}`}, {0, `{"metadata":{"labels":[]}}`}, {0, `{"metadata":{"labels":{"a":"b",}}}`}, {0, `{"metadata":{"finalizers":["a",]}}`},
	{0, `{"metadata":{"finalizers":["a" "b"]}}`}, {0, `{"metadata":{"finalizers":[,]}}`}, {0, `{"metadata":{"finalizers":{}}}`}, {0, `{"metadata":{"finalizers":"a"}}`},
	{0, `{"spec":{"size":1.0}}`}, {0, `{"spec":{"size":1e3}}`}, {0, `{"spec":{"size":01}}`}, {0, `{"spec":{"size":+1}}`}, {0, `{"spec":{"size":-}}`}, {0, `{"spec":{"size":.5}}`},
	{0, `{"spec":{"size":1.}}`}, {0, `{"spec":{"size":1e}}`}, {0, `{"spec":{"size":2147483648}}`}, {0, `{"spec":{"size":99999999999999999999}}`}, {0, `{"spec":{"size":"1"}}`},
	{0, `{"spec":{"size":true}}`}, {0, `{"spec":{"color":1}}`}, {0, `{"spec":[]}`}, {0, `{"status":{"ready":"true"}}`}, {0, `{"status":{"ready":1}}`}, {0, `{"status":{"ready":tru}}`},
	{0, "{\"spec\":{\"color\":\"a\nb\"}}"}, {0, "{\"spec\":{\"color\":\"a\xffb\"}}"}, {0, "{\"spec\":{\"color\":\"a\xed\xa0\x80b\"}}"}, {0, `{"spec":{"color":"\ud800"}}`},
	{0, `{"spec":{"color":"\ud800\u0041"}}`}, {0, `{"spec":{"color":"\udc00\ud800"}}`}, {0, `{"spec":{"color":"\u12g4"}}`}, {0, `{"spec":{"color":"\u12"}}`}, {0, `{"spec":{"color":"\x"}}`},
	{0, `{"spec":{"color":"\'"}}`}, {0, `{"spec":{"color":"abc\`}, {0, `{"spec":{"color":"abc\"`}, {0, `{"spec":{"color":"abcdefghijklmnop`},
	{0, `{"metadata":{"creationTimestamp":"yesterday"}}`}, {0, `{"metadata":{"creationTimestamp":5}}`}, {0, `{"metadata":{"creationTimestamp":{}}}`},
	{1, `{"byte":256}`}, {1, `{"unsigned":-1}`}, {1, `{"unsigned":-0}`}, {1, `{"float":1e999}`}, {1, `{"float32":1e39}`}, {1, `{"any":1e999}`}, {1, `{"any":{"a":1,"a":2}}`},
	{1, `{"any":nan}`}, {1, `{"any":0x1}`}, {1, `{"any":1_0}`}, {1, `{"any":"` + "\x7f\x1f" + `"}`}, {1, `{"error":null}`}, {1, `{"byInt":{"1":"a"}}`}, {1, `{"byAddr":{}}`},
	{1, `{"bytes":"aGVsbG8"}`}, {1, `{"bytes":[1]}`}, {1, `{"bytes8":"aGVsbG8="}`}, {1, `{"bytes9":"aGVsbG8="}`}, {1, `{"array":[1,2]}`}, {1, `{"asString":"1"}`}, {1, `{"numeral":1}`},
	{1, `{"raw":{"a":1,}}`}, {1, `{"raw":[1 2]}`}, {1, `{"raw":tru}`}, {1, `{"time":"x"}`}, {1, `{"addr":"1.2.3.4"}`}, {1, `{"quantity":"x"}`}, {1, `{"itself":"panic"}`}, {1, `{"unnamed":null}`},
	{1, `{"Hidden":"x"}`}, {1, `{"outside":"x"}`}, {1, `{"Both":"x"}`}, {1, `{"Skipped":"x"}`}, {1, `{"private":"x"}`}, {1, `{"any":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`},
	{25, `{}`}, {26, `{}`},
}

// TestReadTexts checks for single texts whether jsonread decodes them.
func TestReadTexts(t *testing.T) {
	var c jsonread.Compiler
	of := types()
	for _, u := range usual {
		if !same(t, &c, of[u.of], []byte(u.text)) {
			t.Errorf("%T is not read from %s", of[u.of], u.text)
		}
	}
	for _, u := range unusual {
		if same(t, &c, of[u.of], []byte(u.text)) {
			t.Errorf("%T is read from %s", of[u.of], u.text)
		}
	}
	for _, into := range []any{nil, odd{}, (*odd)(nil), new(string), new(map[string]any), new(itself), new(metav1.Time)} {
		if c.Read([]byte("{}"), into) || c.Read([]byte("null"), into) {
			t.Errorf("a %T was read", into)
		}
	}
}

// TestReadChanged decodes texts with random changes.
func TestReadChanged(t *testing.T) {
	var c jsonread.Compiler
	random := rand.New(rand.NewPCG(1, 2))
	of := types()
	read := 0
	for range 300 {
		for _, u := range usual[:len(usual)-1] {
			text := []byte(u.text)
			for range 1 + random.IntN(3) {
				text = changed(random, text)
			}
			if same(t, &c, of[u.of], text) {
				read++
			}
		}
	}
	if read < 200 {
		t.Errorf("only %d of the changed texts were read", read)
	}
}

// changed returns a text in which a token was replaced, inserted or removed.
func changed(random *rand.Rand, text []byte) []byte {
	pieces := []string{
		"null", "true", "1.0", "1e3", "-1", "0", "99999999999999999999", `"x"`, "{}", "[]", "{", "}", "[", "]", ",", ":", `"`, `\`, " ", "\n", "\xff", "\u00e9", `\u0041`, `\ud800`,
		`"kind":"K",`, `"Kind":"K",`, `"spec":null,`, `{"a":1}`, `[1]`, "\ufeff", "\x00", "A", "a",
	}
	var tokens []int
	for i, b := range text {
		if strings.IndexByte(`{}[]:,"`, b) >= 0 {
			tokens = append(tokens, i)
		}
	}
	at := random.IntN(len(text) + 1)
	if len(tokens) > 0 && random.IntN(4) > 0 {
		at = tokens[random.IntN(len(tokens))] + random.IntN(2)
	}
	end := at
	switch random.IntN(4) {
	case 0: // up to the next token
		for end < len(text) && strings.IndexByte(`{}[]:,`, text[end]) < 0 {
			end++
		}
	case 1:
		end = min(at+1, len(text))
	}
	piece := pieces[random.IntN(len(pieces))]
	if random.IntN(6) == 0 {
		piece = ""
	}
	out := append([]byte(nil), text[:at]...)
	return append(append(out, piece...), text[end:]...)
}

// TestReadConcurrently makes the tables of the same types in many goroutines.
func TestReadConcurrently(t *testing.T) {
	var c jsonread.Compiler
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, of := range types() {
				c.Read([]byte(`{"metadata":{"name":"a"},"self":{"self":null},"spec":{}}`), fresh(of))
			}
		})
	}
	all.Wait()
}

// FuzzRead compares jsonread with the ordinary decoder.
func FuzzRead(f *testing.F) {
	for _, u := range usual {
		f.Add(u.of, []byte(u.text))
	}
	for _, u := range unusual {
		f.Add(u.of, []byte(u.text))
	}
	var c jsonread.Compiler
	of := types()
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		if i >= 0 && i < len(of) {
			same(t, &c, of[i], text)
		}
	})
}
