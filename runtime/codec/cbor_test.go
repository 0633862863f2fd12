package codec_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kcbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjsonutil "k8s.io/apimachinery/pkg/util/json"
)

// encodedByKube returns the encoding of an object by kube-apiserver's own serializer in its deterministic mode.
func encodedByKube(t testing.TB, obj apiruntime.Object) []byte {
	var out bytes.Buffer
	must(t, kcbor.NewSerializer(nil, nil).Encode(obj, &out))
	return out.Bytes()
}

func cborOf(t testing.TB, text string) []byte {
	out, err := codec.CBOR().FromJSON([]byte(text), false)
	must(t, err)
	return out
}

func TestCBORBytes(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"X","n":1}` + "\n": "d9d9f7a3416e01446b696e6441584a61706956657273696f6e427631",
		`null`:                             "d9d9f7f6",
		`{}`:                               "d9d9f7a0",
		`[true,false,[]]`:                  "d9d9f783f5f480",
		`[0,-1,23,24,-500,1e3,65536]`:      "d9d9f7870020171818" + "3901f3" + "f963d0" + "1a00010000",
		`[1.0,1.5,0.1,-0.0]`:               "d9d9f784f93c00f93e00fb3fb999999999999af98000",
		`[9223372036854775807]`:            "d9d9f7811b7fffffffffffffff",
		`[-9223372036854775808]`:           "d9d9f7813b7fffffffffffffff",
		`[9223372036854775808]`:            "d9d9f781fa5f000000",
		`{"bb":1,"a":2,"c":3,"é":4}`:       "d9d9f7a44161024163034262620142c3a904",
		`"\u0000\ud83d\ude00\ud83d\u003c"`: "d9d9f74900f09f9880efbfbd3c",
	} {
		before := text
		got := cborOf(t, text)
		if hex.EncodeToString(got) != want || text != before {
			t.Errorf("%s: %x, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "{", "1e400", "1 2", `{"a":1}}`, "nul"} {
		if got, err := codec.CBOR().FromJSON([]byte(text), false); err == nil {
			t.Errorf("%s became %x", text, got)
		}
	}
	if f := codec.CBOR(); f.MediaType() != "application/cbor" || !f.Streams() || !codec.IsCBOR(f) || codec.IsCBOR(codec.JSON()) {
		t.Error("what CBOR is")
	}
}

// A client requests a watch with the media type of an object. The error lists the media type of the answer, as kube-apiserver
// does.
func TestCBORNegotiation(t *testing.T) {
	all := append(formats(), codec.CBOR())
	same(t, "of objects", "only the following media types are accepted: application/json, application/yaml, application/cbor", codec.NotAcceptable(all, false).Error())
	same(t, "of watches", "only the following media types are accepted: application/json;stream=watch, application/cbor-seq", codec.NotAcceptable(all, true).Error())
	for _, accept := range []string{"application/cbor", "application/json;q=0.9,application/cbor;q=1", "application/cbor;stream=watch"} {
		if a, ok := codec.NegotiateResponse(accept, all, codec.Limits{Stream: true}); !ok || !codec.IsCBOR(a.Format) {
			t.Errorf("%s: %v, %v", accept, a, ok)
		}
	}
	if a, ok := codec.NegotiateResponse(codec.CBORSequence, all, codec.Limits{Stream: true}); ok {
		t.Errorf("%s: %v", codec.CBORSequence, a)
	}
	if f, ok := codec.NegotiateBody("application/cbor; x=1", all); !ok || !codec.IsCBOR(f) {
		t.Errorf("a body: %v, %v", f, ok)
	}
}

// AppendCBOR does not change the bytes before it, nor its argument.
func TestAppendCBOR(t *testing.T) {
	text := []byte(` {"b":[1,"x"],"a":null} `)
	before := string(text)
	got, err := codec.AppendCBOR([]byte("head"), text)
	must(t, err)
	same(t, "item", "head\xa2\x41a\xf6\x41b\x82\x01\x41x", string(got))
	same(t, "text", before, string(text))
}

// Every head is the same as that of the serializer.
func TestCBORHeads(t *testing.T) {
	for _, n := range []int{0, 1, 23, 24, 255, 256, 65535, 65536, 70000} {
		list, err := direct.Marshal(make([]bool, n))
		must(t, err)
		pairs := map[string]bool{}
		for i := range n {
			pairs[fmt.Sprint(i)] = true
		}
		members, err := direct.Marshal(pairs)
		must(t, err)
		text, err := direct.Marshal(strings.Repeat("x", n))
		must(t, err)
		for what, heads := range map[string][2][]byte{
			"array":  {list, codec.AppendCBORArray([]byte("before"), n)},
			"map":    {members, codec.AppendCBORMap([]byte("before"), n)},
			"string": {text, codec.AppendCBORString([]byte("before"), strings.Repeat("x", n))},
		} {
			if want := append([]byte("before"), heads[0]...); !bytes.HasPrefix(want, heads[1]) {
				t.Errorf("%s of %d: %x begins %x", what, n, heads[1][:min(20, len(heads[1]))], want[:20])
			}
		}
		if n > 1 {
			same(t, "whole string", "before"+string(text), string(codec.AppendCBORString([]byte("before"), strings.Repeat("x", n))))
		}
	}
	same(t, "array of 2^32", "9b0000000100000000", hex.EncodeToString(codec.AppendCBORArray(nil, 1<<32)))
	same(t, "array of 2^32-1", "9affffffff", hex.EncodeToString(codec.AppendCBORArray(nil, 1<<32-1)))
}

// A list and an event that are written in parts have the same bytes as those that the serializer writes at once, and clients can
// decode them.
func TestCBORPartsAreTheWhole(t *testing.T) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": map[string]any{"resourceVersion": "7"}}}
	out := codec.AppendCBORMap(codec.AppendCBORTag(nil), 4)
	out = codec.AppendCBORString(codec.AppendCBORString(out, "kind"), "WidgetList")
	out = codec.AppendCBORArray(codec.AppendCBORString(out, "items"), 2)
	var events, wantEvents []byte
	for i := range 2 {
		w := unstructured.Unstructured{Object: map[string]any{"kind": "Widget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": fmt.Sprint(i)}, "spec": map[string]any{"size": int64(i)}}}
		list.Items = append(list.Items, w)
		item, err := codec.AppendCBOR(nil, marshalJSON(t, w.Object))
		must(t, err)
		out = append(out, item...)
		events = codec.AppendCBORMap(codec.AppendCBORTag(events), 2)
		events = codec.AppendCBORString(codec.AppendCBORString(events, "type"), "ADDED")
		events = append(codec.AppendCBORTag(codec.AppendCBORString(events, "object")), item...)
		wantEvents = append(wantEvents, encodedByKube(t, &metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: encodedByKube(t, &w)}})...)
	}
	out, err := codec.AppendCBOR(codec.AppendCBORString(out, "metadata"), []byte(`{"resourceVersion":"7"}`))
	must(t, err)
	out = codec.AppendCBORString(codec.AppendCBORString(out, "apiVersion"), "example.com/v1")
	same(t, "list", hex.EncodeToString(encodedByKube(t, list)), hex.EncodeToString(out))
	same(t, "events", hex.EncodeToString(wantEvents), hex.EncodeToString(events))

	frames := kcbor.NewFramer().NewFrameReader(io.NopCloser(bytes.NewReader(events)))
	for i := range 2 {
		buffer := make([]byte, 4096)
		n, err := frames.Read(buffer)
		must(t, err)
		var e metav1.WatchEvent
		must(t, direct.Unmarshal(buffer[:n], &e))
		var w unstructured.Unstructured
		if _, _, err := kcbor.NewSerializer(nil, nil).Decode(e.Object.Raw, nil, &w); err != nil || e.Type != "ADDED" || w.GetName() != fmt.Sprint(i) {
			t.Errorf("event %d: %v %v, %v", i, e, w, err)
		}
	}
	if _, err := frames.Read(make([]byte, 10)); err != io.EOF {
		t.Errorf("after the events: %v", err)
	}
}

// Objects of Go types are written with the same bytes as in kube-apiserver, and kube-apiserver can read them.
func TestCBOROfTypedObjects(t *testing.T) {
	scheme := apiruntime.NewScheme()
	kinds := map[schema.GroupVersionKind]apiruntime.Object{
		corev1.SchemeGroupVersion.WithKind("Pod"):         &corev1.Pod{},
		corev1.SchemeGroupVersion.WithKind("Node"):        &corev1.Node{},
		corev1.SchemeGroupVersion.WithKind("Event"):       &corev1.Event{},
		appsv1.SchemeGroupVersion.WithKind("Deployment"):  &appsv1.Deployment{},
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"): &appsv1.StatefulSet{},
		batchv1.SchemeGroupVersion.WithKind("CronJob"):    &batchv1.CronJob{},
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"): &rbacv1.ClusterRole{},
	}
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme} {
		must(t, add(scheme))
	}
	reader := kcbor.NewSerializer(scheme, scheme, kcbor.Strict(true))
	for gvk, example := range kinds {
		fill := filler(8)
		for range 20 {
			obj := reflect.New(reflect.TypeOf(example).Elem()).Interface().(runtime.Object)
			fill.Fill(obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			text, err := codec.Encode(obj)
			must(t, err)
			got := cborOf(t, string(text))
			if want := encodedByKube(t, obj); !bytes.Equal(got, want) {
				same(t, gvk.String(), diagnosed(t, want), diagnosed(t, got))
			}
			into := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(apiruntime.Object)
			back, _, err := reader.Decode(got, nil, into)
			must(t, err)
			again, err := codec.Encode(back)
			must(t, err)
			same(t, "read by kube-apiserver", string(text), string(again))
		}
	}
}

func diagnosed(t testing.TB, item []byte) string {
	text, err := direct.Diagnose(item)
	must(t, err)
	return text
}

// Byte slices are written as base64, as in JSON. kube-apiserver writes and reads them with tag 22, and also reads ours.
func TestCBORBytesOfSecrets(t *testing.T) {
	s := newScheme(t)
	secretKind := corev1.SchemeGroupVersion.WithKind("Secret")
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: map[string][]byte{"a": {0, 0xff}, "b": {}, "c": []byte("text")}}
	d, err := codec.Decode(s, codec.CBOR(), encodedByKube(t, secret), secretKind, codec.Strict)
	must(t, err)
	if got := d.Object.(*corev1.Secret); len(d.Problems) > 0 || !reflect.DeepEqual(got.Data, secret.Data) {
		t.Errorf("%v, problems %v", got.Data, d.Problems)
	}
	text, err := codec.Encode(secret)
	must(t, err)
	var back corev1.Secret
	must(t, direct.Unmarshal(cborOf(t, string(text)), &back))
	if !reflect.DeepEqual(back.Data, secret.Data) {
		t.Errorf("a client reads %v", back.Data)
	}
}

// Objects without a Go type are written and read as kube-apiserver does.
func TestCBOROfUntypedObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		object := randomObject(r, 5)
		object["apiVersion"], object["kind"] = "example.com/v1", "Gadget"
		var normal map[string]any // with numbers as in JSON
		must(t, kjsonutil.Unmarshal(marshalJSON(t, object), &normal))
		u := &unstructured.Unstructured{Object: normal}
		want := encodedByKube(t, u)
		got := cborOf(t, string(marshalJSON(t, normal)))
		if !bytes.Equal(want, got) {
			same(t, "object", diagnosed(t, want), diagnosed(t, got))
		}
		var back unstructured.Unstructured
		_, _, err := kcbor.NewSerializer(nil, nil).Decode(got, nil, &back)
		must(t, err)
		if diff := cmp.Diff(normal, back.Object); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestCBORToJSON(t *testing.T) {
	for _, c := range []struct{ name, item, want string }{
		{"no tag", "a1416101", `{"a":1}`},
		{"tags", "d9d9f7d9d9f7d91234a1416101", `{"a":1}`},
		{"text strings", "a1616162c3a9", `{"a":"é"}`},
		{"bytes and text in pieces", "5f41614162ff", `"ab"`},
		{"indefinite lengths", "bf41619f01ffff", `{"a":[1]}`},
		{"floats", "87f93c00fb3ff8000000000000fa4b800000fb7fefffffffffffff" + "f98000" + "fb444b1ae4d6e2ef50" + "fb3e7ad7f29abcaf48", `[1.0,1.5,16777216.0,1.7976931348623157e+308,-0.0,1e+21,1e-7]`},
		{"integers", "831b7fffffffffffffff3b7fffffffffffffff1800", `[9223372036854775807,-9223372036854775808,0]`},
		{"base64", "d6420001", `"AAE="`},
		{"base64url", "d542fffe", `"__4"`},
		{"hexadecimal", "d742fffe", `"fffe"`},
		{"base64 of all within", "d68241014102", `["AQ==","Ag=="]`},
		{"a time", "c01a00000000", ""},
		{"a time in RFC 3339", "c074323031332d30332d32315432303a30343a30305a", `"2013-03-21T20:04:00Z"`},
		{"a time in seconds", "c100", `"1970-01-01T00:00:00Z"`},
		{"bytes that are no UTF-8", "42ff61", `"\ufffda"`},
		{"null, true, false", "83f6f5f4", `[null,true,false]`},
	} {
		got, problems, err := codec.CBOR().ToJSON([]byte(unhex(t, c.item)), codec.Strict)
		if (err == nil) != (c.want != "") || string(got) != c.want || len(problems) > 0 {
			t.Errorf("%s: %s, %v, %v; want %s", c.name, got, problems, err, c.want)
		}
	}
}

// Bodies that kube-apiserver refuses are refused with the same errors.
func TestCBORRefused(t *testing.T) {
	s := newScheme(t)
	const kind = "446b696e6446576964676574" // kind: Widget
	const unread = "unable to determine group/version/kind: "
	for _, c := range []struct{ name, item, want, kind string }{
		{"nothing", "", unread + "EOF", ""},
		{"JSON", hex.EncodeToString([]byte(`{"kind":"Widget"}`)), unread + "unexpected EOF", ""},
		{"something after it", "d9d9f7a000", unread + "cbor: 1 bytes of extraneous data starting at index 4", ""},
		{"cut", "d9d9f7a1" + kind[:20], unread + "unexpected EOF", ""},
		{"a text", "d9d9f74178", "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value", ""},
		{"a key twice", "a2" + kind + kind, unread + `cbor: found duplicate map key "kind" at map element index 1`, ""},
		{"a key twice, as text and bytes", "a2" + kind + "64" + kind[2:], unread + `cbor: found duplicate map key "kind" at map element index 1`, ""},
		{"a key twice within", "a2" + kind + "4161a24161014161f6", `cbor: found duplicate map key "a" at map element index 1`, "Widget"},
		{"text that is no UTF-8", "a2" + kind + "416162ff61", "cbor: invalid UTF-8 string", "Widget"},
		{"NaN", "a2" + kind + "4161f97e00", unread + "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN", ""},
		{"infinity", "a2" + kind + "4161f97c00", unread + "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity", ""},
		{"undefined", "a2" + kind + "4161f7", "simple value 23 is not recognized", "Widget"},
		{"a simple value", "a2" + kind + "4161f820", "simple value 32 is not recognized", "Widget"},
		{"a bignum", "a2" + kind + "4161c24101", "is not accepted by protocol: bignum", ""},
		{"more than 63 bits", "a2" + kind + "41611b8000000000000000", "overflows Go's int64", "Widget"},
		{"a key that is a number", "a2" + kind + "0102", "cannot unmarshal positive integer", "Widget"},
		{"depth", "a1" + "4161" + strings.Repeat("81", 10000) + "00", unread + "cbor: exceeded max nested level 10000", ""},
		{"no kind, and wrong within", "a14161a24161014161f6", `cbor: found duplicate map key "a" at map element index 1`, "Widget"},
	} {
		body := []byte(unhex(t, c.item))
		for _, v := range []codec.Validation{codec.Warn, codec.Strict, codec.Ignore} {
			d, err := codec.Decode(s, codec.CBOR(), body, v1Widget, v)
			if err == nil || !strings.Contains(err.Error(), c.want) || d.GVK.Kind != c.kind || d.Object != nil {
				t.Errorf("%s (%d): %q %v, want %q %q", c.name, v, d.GVK.Kind, err, c.kind, c.want)
			}
		}
	}
}

// Unknown fields are reported with their paths, and numbers keep their type.
func TestDecodeCBOR(t *testing.T) {
	s := newScheme(t)
	for body, want := range map[string]string{
		`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"size":3,"any":{"f":1.0,"n":1}}}`: "",
		`{"metadata":{"y":1},"spec":{"foo":1,"size":3},"x":1}`:                                                            `unknown field "metadata.y", unknown field "spec.foo", unknown field "x"`,
	} {
		for v, want := range map[codec.Validation]string{codec.Warn: want, codec.Strict: want, codec.Ignore: ""} {
			d, err := codec.Decode(s, codec.CBOR(), cborOf(t, body), v1Widget, v)
			must(t, err)
			w := d.Object.(*Widget)
			if got := texts(d.Problems); got != want || w.Spec.Size != 3 || w.Spec.Color != "grey" {
				t.Errorf("%s (%d): %+v, problems %q, want %q", body, v, w, got, want)
			}
			if f, ok := w.Spec.Any["f"].(float64); w.Spec.Any != nil && (!ok || f != 1 || w.Spec.Any["n"] != int64(1)) {
				t.Errorf("%s: %#v", body, w.Spec.Any)
			}
		}
	}
	if d, err := codec.Decode(s, codec.CBOR(), cborOf(t, `{"spec":{"size":1.0}}`), v1Widget, codec.Ignore); err == nil {
		t.Errorf("a float became %d", d.Object.(*Widget).Spec.Size)
	}
	opts := &metav1.DeleteOptions{}
	must(t, codec.DecodeInto(codec.CBOR(), cborOf(t, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Orphan","gracePeriodSeconds":5}`), opts))
	if *opts.PropagationPolicy != "Orphan" || *opts.GracePeriodSeconds != 5 || opts.Kind != "DeleteOptions" {
		t.Errorf("%+v", opts)
	}
}

// Values that kube-apiserver stores in CBOR are read, and are rewritten as JSON.
func TestEntryReadsCBOR(t *testing.T) {
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}, Spec: WidgetSpec{Size: 3, Any: map[string]any{"f": 1.5}}}
	widget.SetGroupVersionKind(v1Widget)
	untyped := untypedScheme(t)
	gadgets, err := codec.NewTyped(untyped, gadgetV1)
	must(t, err)
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(2)}, "spec": map[string]any{"n": int64(1), "f": 2.0, "b": "é"}}}
	object.SetGroupVersionKind(gadgetV1)
	for name, c := range map[string]struct {
		typed *codec.Typed
		obj   runtime.Object
	}{"typed": {newTyped(t, v1Widget), widget}, "untyped": {gadgets, object}} {
		plain, err := c.typed.Encode(c.obj)
		must(t, err)
		d, stale, err := c.typed.Entry(encodedByKube(t, c.obj))
		must(t, err)
		same(t, name, string(plain.Bytes()), string(d.Bytes()))
		if !stale {
			t.Errorf("%s: it is not stale, so nothing would rewrite it as JSON", name)
		}
		back, err := c.typed.Decode(d)
		must(t, err)
		again, err := c.typed.Encode(back)
		must(t, err)
		same(t, name+" again", string(plain.Bytes()), string(again.Bytes()))
		for what, value := range map[string]string{"nothing": "", "a key twice": "\xa2\x41a\x01\x41a\x01", "a number": "\x01", "another kind": "\xa1\x44kind\x41X", "more": "\xa0\xa0"} {
			if d, _, err := c.typed.Entry([]byte("\xd9\xd9\xf7" + value)); err == nil || !d.IsZero() {
				t.Errorf("%s, %s: %s, %v", name, what, d.Bytes(), err)
			}
		}
	}
}

// checkCBOR compares the decoding of a body with apimachinery's own decoder.
func checkCBOR(t *testing.T, body []byte) {
	text, problems, err := codec.CBOR().ToJSON(body, codec.Strict)
	var want any
	switch wantErr := direct.Unmarshal(body, &want); {
	case wantErr != nil && err == nil:
		t.Fatalf("%x became %s, kube-apiserver says %v", body, text, wantErr)
	case wantErr == nil && err != nil:
		t.Fatalf("%x: %v, which kube-apiserver takes for %v", body, err, want)
	case err != nil:
		return
	}
	if len(problems) > 0 || !json.Valid(text) {
		t.Fatalf("%x: %s, %v", body, text, problems)
	}
	whole, err := codec.CBOR().FromJSON(text, false)
	must(t, err)
	again, _, err := codec.CBOR().ToJSON(whole, codec.Strict)
	must(t, err)
	var got, expected any
	must(t, kjsonutil.Unmarshal(again, &got))
	must(t, kjsonutil.Unmarshal(marshalJSON(t, want), &expected))
	if !apiequality.Semantic.DeepEqual(jsonNumbers(got), jsonNumbers(expected)) {
		t.Fatalf("%x is %s, want %v", body, again, expected)
	}
}

// jsonNumbers converts all numbers to floats, because apimachinery's JSON of 1.0 is 1.
func jsonNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = jsonNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = jsonNumbers(v[i])
		}
	case int64:
		return float64(v)
	}
	return v
}

func FuzzCBORToJSON(f *testing.F) {
	for _, item := range []string{"a1416101", "d9d9f7a1616162c3a9", "5f41614162ff", "bf41619f01ffff", "87f93c00fb3ff8000000000000fa4b800000", "d6420001", "d542fffe", "c100", "c24101", "a2416101616101", "a241ff0141fe02"} {
		f.Add([]byte(unhex(f, item)))
	}
	f.Fuzz(checkCBOR)
}

// FuzzCBOROfJSON: every JSON value can be written, and a client of kube-apiserver reads the same value.
func FuzzCBOROfJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,-1.5,"x",null,true],"":{}}`, `1e21`, `123456789012345678901234567890`, `"\ud800"`, `[-0,-0.0]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		if kjsonutil.Unmarshal([]byte(text), &want) != nil {
			return
		}
		item, err := codec.CBOR().FromJSON([]byte(text), false)
		must(t, err)
		var got any
		must(t, direct.Unmarshal(item, &got))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is read as %#v, want %#v", text, got, want)
		}
		body, _, err := codec.CBOR().ToJSON(item, codec.Warn)
		must(t, err)
		var back any
		must(t, kjsonutil.Unmarshal(body, &back))
		if !reflect.DeepEqual(back, want) {
			t.Fatalf("%s comes back as %s", text, body)
		}
	})
}
