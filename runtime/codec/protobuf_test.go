package codec_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Berth is a kind with protobuf tags, which has no generated methods.
type Berth = runtime.Resource[BerthSpec, struct{}]

type BerthSpec struct {
	Depth  int32             `json:"depth" protobuf:"varint,1,opt,name=depth"`
	Names  []string          `json:"names,omitempty" protobuf:"bytes,2,rep,name=names"`
	Lights map[string]string `json:"lights,omitempty" protobuf:"bytes,3,rep,name=lights"`
	Until  *metav1.Time      `json:"until,omitempty" protobuf:"bytes,4,opt,name=until"`
}

var berthKind = v1Widget.GroupVersion().WithKind("Berth")

func someBerth() *Berth {
	until := metav1.Unix(1_700_000_000, 0)
	b := &Berth{Spec: BerthSpec{Depth: 7, Names: []string{"east"}, Lights: map[string]string{"a": "red"}, Until: &until}}
	b.Name = "one"
	return b
}

// berthMessage returns the protobuf message of someBerth.
func berthMessage(t testing.TB) []byte {
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	spec := slices.Concat([]byte{8, 7}, field(2, []byte("east")), field(3, []byte("\n\x01a\x12\x03red")), field(4, []byte{8, 0x80, 0xe2, 0xcf, 0xaa, 6, 0x10, 0}))
	return slices.Concat(field(1, marshal(t, &metav1.ObjectMeta{Name: "one"})), field(2, spec), field(3, nil))
}

func TestHas(t *testing.T) {
	f := codec.Protobuf()
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[corev1.ConfigMap]():                   true,
		reflect.TypeFor[coordinationv1.Lease]():               true,
		reflect.TypeFor[metav1.Status]():                      true,
		reflect.TypeFor[metav1.DeleteOptions]():               true,
		reflect.TypeFor[Berth]():                              true,
		reflect.TypeFor[runtime.List[Berth]]():                true,
		reflect.TypeFor[runtime.Resource[BerthSpec, Berth]](): true,
		reflect.TypeFor[Widget]():                             false, // its spec has no tags
		reflect.TypeFor[WidgetV2]():                           false,
		reflect.TypeFor[extended]():                           false, // the embedded type has the methods
		reflect.TypeFor[struct{ *corev1.ConfigMap }]():        false,
		reflect.TypeFor[*corev1.ConfigMap]():                  false, // Has must be called with the struct type
		reflect.TypeFor[string]():                             false,
		nil:                                                   false,
	} {
		if got := f.Has(typ); got != want {
			t.Errorf("%v: %v", typ, got)
		}
	}
}

// The bytes are the same as those in an answer of kube-apiserver.
func TestEncodeInProtobuf(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "nope").ErrStatus
	for want, c := range map[string]struct {
		obj  runtime.Object
		kind schema.GroupVersionKind
	}{
		unhex(t, "6b3873000a0f0a0276311209436f6e6669674d6170121c0a120a016112001a016222002a0032003800420012060a016b1201761a002200"): {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Data: map[string]string{"k": "v"}}, configMapKind,
		},
		"k8s\x00\n\f\n\x02v1\x12\x06Status\x12U\n\x06\n\x00\x12\x00\x1a\x00\x12\aFailure\x1a\x1bconfigmaps \"nope\" not found\"\bNotFound*\x18\n\x04nope\x12\x00\x1a\nconfigmaps(\x002\x000\x94\x03\x1a\x00\"\x00": {
			&notFound, metav1.Unversioned.WithKind("Status"),
		},
		string(sealed(t, berthKind, berthMessage(t), nil)): {someBerth(), berthKind},
	} {
		f := codec.Protobuf()
		got, err := f.Encode(c.obj, c.kind)
		must(t, err)
		same(t, c.kind.Kind, want, string(got))
		message, err := f.Append(nil, c.obj)
		must(t, err)
		got = append(codec.EnvelopeHead(nil, c.kind, len(message)), message...)
		same(t, c.kind.Kind+" in parts", want, string(codec.EnvelopeTail(got)))
	}
	for _, obj := range []runtime.Object{&Widget{}, &extended{}, (*Berth)(nil), (*corev1.ConfigMap)(nil), nil} {
		f := codec.Protobuf()
		got, err := f.Encode(obj, v1Widget)
		if _, appendErr := f.Append(nil, obj); err == nil || appendErr == nil {
			t.Errorf("%T: %q, %v", obj, got, appendErr)
		}
	}
	_, err := codec.Protobuf().Encode(&Widget{}, v1Widget)
	const want = "does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message: "
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "field Size has no protobuf tag") {
		t.Error(err)
	}
}

func TestProtobufListIsThatOfTheTypes(t *testing.T) {
	left := int64(7)
	want := &corev1.ConfigMapList{
		ListMeta: metav1.ListMeta{ResourceVersion: "5", Continue: "c", RemainingItemCount: &left},
		Items:    []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{"k": strings.Repeat("v", 300)}}},
	}
	berths := &runtime.List[Berth]{ListMeta: want.ListMeta, Items: []Berth{*someBerth(), {}}}
	f, gvk := codec.Protobuf(), corev1.SchemeGroupVersion.WithKind("ConfigMapList")
	for range 2 {
		maps, tagged := []runtime.Object{}, []runtime.Object{}
		for i := range want.Items {
			maps, tagged = append(maps, &want.Items[i]), append(tagged, &berths.Items[i])
		}
		for list, items := range map[runtime.Object][]runtime.Object{want: maps, berths: tagged} {
			meta, err := want.ListMeta.Marshal()
			must(t, err)
			message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
			for _, item := range items {
				one, err := f.Append(nil, item)
				must(t, err)
				message = protowire.AppendBytes(protowire.AppendTag(message, 2, protowire.BytesType), one)
			}
			whole, err := f.Encode(list, gvk)
			must(t, err)
			same(t, "list", string(whole), string(codec.EnvelopeTail(append(codec.EnvelopeHead(nil, gvk, len(message)), message...))))
			same(t, "sealed", string(sealed(t, gvk, message, nil)), string(whole))
		}
		want.Items, berths.Items = nil, nil // and a list without items
	}
}

// The bytes are the same as those that kube-apiserver sends, and those of metav1.WatchEvent.
func TestAppendWatchFrame(t *testing.T) {
	envelope, err := codec.Protobuf().Encode(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Data: map[string]string{"k": "v"}}, configMapKind)
	must(t, err)
	frame := codec.AppendWatchFrame([]byte("before"), "ADDED", envelope)
	same(t, "frame", "before"+unhex(t, "000000420a05414444454412390a37")+string(envelope), string(frame))
	for _, size := range []int{0, 1, 100, 127, 128, 20_000} {
		object := slices.Repeat([]byte{'x'}, size)
		frame := codec.AppendWatchFrame(nil, "BOOKMARK", object)
		if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-4 {
			t.Errorf("%d bytes are said to be %d", len(frame)-4, n)
		}
		same(t, "event", string(marshal(t, &metav1.WatchEvent{Type: "BOOKMARK", Object: apiruntime.RawExtension{Raw: object}})), string(frame[4:]))
	}
}

func TestDecodeProtobuf(t *testing.T) {
	s, f := newScheme(t), codec.Protobuf()
	raw := marshal(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}})
	want := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
	for name, body := range map[string][]byte{
		"whole":             sealed(t, configMapKind, raw, nil),
		"silent":            sealed(t, schema.GroupVersionKind{}, raw, nil),
		"of a kind":         sealed(t, schema.GroupVersionKind{Kind: "ConfigMap"}, raw, nil),
		"of a version":      sealed(t, schema.GroupVersionKind{Version: "v1"}, raw, nil),
		"with more":         sealed(t, configMapKind, append(raw[:len(raw):len(raw)], 0xfa, 0x3f, 2, 'h', 'i'), nil),
		"with more outside": append(sealed(t, configMapKind, raw, nil), 0xfa, 0x3f, 2, 'h', 'i'),
	} {
		for _, v := range []codec.Validation{codec.Strict, codec.Warn, codec.Ignore} {
			d, err := codec.Decode(s, f, body, configMapKind, v)
			must(t, err)
			if d.GVK != configMapKind || len(d.Problems) > 0 || !reflect.DeepEqual(d.Object, want) {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// A kind with tags is decoded like a kind with methods, from requests and from stored values.
func TestDecodeProtobufOfTags(t *testing.T) {
	s := runtime.NewScheme()
	must(t, runtime.Register(s, berthKind, runtime.KindOptions[*Berth]{Default: func(b *Berth) { b.Labels = map[string]string{"seen": "yes"} }}))
	want := someBerth()
	want.Labels = map[string]string{"seen": "yes"}
	want.GetObjectKind().SetGroupVersionKind(berthKind)
	value := sealed(t, berthKind, append(berthMessage(t), 0xfa, 0x3f, 2, 'h', 'i'), nil)
	d, err := codec.Decode(s, codec.Protobuf(), value, berthKind, codec.Strict)
	must(t, err)
	if !reflect.DeepEqual(d.Object, any(want)) {
		t.Errorf("decoded: %+v", d.Object)
	}
	into := &Berth{}
	must(t, codec.DecodeInto(codec.Protobuf(), value, into))
	if into.Spec.Depth != 7 || into.Kind != "Berth" {
		t.Errorf("decoded into: %+v", into)
	}
	typed, err := codec.NewTyped(s, berthKind)
	must(t, err)
	doc, stale, err := typed.Entry(value)
	must(t, err)
	plain, err := typed.Encode(want)
	must(t, err)
	if same(t, "stored", string(plain.Bytes()), string(doc.Bytes())); !stale {
		t.Error("it is not stale, so nothing would rewrite it as JSON")
	}
	for name, message := range map[string][]byte{"cut": berthMessage(t)[:20], "of another type": {0x15, 1, 2, 3, 4}, "a map's entry": {0x12, 4, 0x1a, 2, '\n', 9}} {
		if d, err := codec.Decode(s, codec.Protobuf(), sealed(t, berthKind, message, nil), berthKind, codec.Warn); err == nil {
			t.Errorf("%s: %+v", name, d.Object)
		}
		if _, _, err := typed.Entry(sealed(t, berthKind, message, nil)); err == nil {
			t.Errorf("%s is stored", name)
		}
	}
}

func TestDecodeProtobufRefuses(t *testing.T) {
	s, f := newScheme(t), codec.Protobuf()
	_, err := s.Import(appsv1.AddToScheme)
	must(t, err)
	raw := marshal(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}})
	good := sealed(t, configMapKind, raw, nil)
	const mark = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
	promoted := v1Widget.GroupVersion().WithKind("Extended")
	must(t, runtime.Register(s, promoted, runtime.KindOptions[*extended]{}))
	revision := appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	for name, c := range map[string]struct {
		body string
		kind string // the kind that could be read
		want string
	}{
		"nothing":                 {"", "", "empty data"},
		"the mark":                {"k8s\x00", "", "empty body"},
		"a part of the mark":      {"k8s", "", mark},
		"another mark":            {"k8s\x01" + string(good[4:]), "", mark},
		"JSON":                    {`{"kind":"ConfigMap"}`, "", mark},
		"no envelope":             {string(raw), "", mark},
		"a cut envelope":          {string(good[:len(good)-5]), "", "unexpected EOF"},
		"a cut message":           {string(sealed(t, configMapKind, raw[:8], nil)), "ConfigMap", "unexpected EOF"},
		"an overflow":             {"k8s\x00" + strings.Repeat("\xff", 12), "", "proto: integer overflow"},
		"more behind":             {string(good) + "trail", "", "proto: Unknown: wiretype end group for non-group"},
		"a field of another type": {string(sealed(t, configMapKind, []byte{8, 1}, nil)), "ConfigMap", "proto: wrong wireType = 0 for field ObjectMeta"},
		"a version of no form":    {string(sealed(t, schema.GroupVersionKind{Group: "a/b", Version: "c", Kind: "ConfigMap"}, raw, nil)), "", "unexpected GroupVersion string: a/b/c"},
		"compressed":              {string(sealed(t, configMapKind, raw, func(e *apiruntime.Unknown) { e.ContentEncoding = "gzip" })), "", `its data is encoded as "gzip", which is not known`},
		"holding JSON":            {string(sealed(t, configMapKind, raw, func(e *apiruntime.Unknown) { e.ContentType = "application/json" })), "", `it holds "application/json", which is not protobuf`},
		"another kind":            {string(sealed(t, corev1.SchemeGroupVersion.WithKind("Secret"), raw, nil)), "Secret", "converting (v1.Secret) to (v1.ConfigMap): unknown conversion"},
		"a kind without protobuf": {string(sealed(t, v1Widget, raw, nil)), "Widget", "converting (v1.Widget) to (v1.ConfigMap): unknown conversion"},
		"an unknown kind":         {string(sealed(t, corev1.SchemeGroupVersion.WithKind("Nope"), raw, nil)), "Nope", `no kind "Nope" is registered for version "v1" in scheme "keelson"`},
	} {
		d, err := codec.Decode(s, f, []byte(c.body), configMapKind, codec.Strict)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || d.GVK.Kind != c.kind || d.Object != nil {
			t.Errorf("%s: %+v, %v; want %s", name, d, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		kind schema.GroupVersionKind
		raw  []byte
		want string
	}{
		"a type without protobuf": {v1Widget, raw, "has no protobuf tag"},
		"promoted methods":        {promoted, raw, "has no protobuf tag"},
		"raw that is no JSON":     {revision, marshal(t, &appsv1.ControllerRevision{Data: apiruntime.RawExtension{Raw: []byte("{")}}), "json: error calling MarshalJSON"},
	} {
		d, err := codec.Decode(s, f, sealed(t, c.kind, c.raw, nil), c.kind, codec.Strict)
		if err == nil || !strings.Contains(err.Error(), c.want) || d.Object != nil {
			t.Errorf("%s: %+v, %v; want %s", name, d, err, c.want)
		}
	}
}

// A decoded body is the object of its JSON, which is what will be stored.
func TestDecodedProtobufIsItsJSON(t *testing.T) {
	s, f := newScheme(t), codec.Protobuf()
	nanos := metav1.NewMicroTime(time.Date(2024, 1, 2, 3, 4, 5, 678901234, time.UTC))
	for _, obj := range []message{
		&corev1.ConfigMap{Data: map[string]string{"\xff": "1", "a": "\xff"}, BinaryData: map[string][]byte{"b": {0xff, 0}, "c": {}}},
		&corev1.Event{EventTime: nanos, Series: &corev1.EventSeries{LastObservedTime: nanos}, Message: "a\xffb"},
	} {
		kinds, _, err := s.ObjectKinds(obj)
		must(t, err)
		d, err := codec.Decode(s, f, sealed(t, kinds[0], marshal(t, obj), nil), kinds[0], codec.Warn)
		must(t, err)
		text, err := json.Marshal(d.Object)
		must(t, err)
		again := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
		must(t, json.Unmarshal(text, again))
		if !reflect.DeepEqual(again, any(d.Object)) {
			t.Errorf("%#v\nis in JSON\n%#v", d.Object, again)
		}
	}
}

// chain is a kind with a recursive type, as the schemas in a CustomResourceDefinition have.
type chain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Link              *link `json:"link,omitempty"`
}

type link struct {
	Link *link `json:"link,omitempty"`
}

func (c *chain) DeepCopyObject() runtime.Object { return runtime.DeepCopy(c) }

func (c *chain) Unmarshal(message []byte) error {
	c.Link = &link{}
	return c.Link.Unmarshal(message)
}

func (c *chain) Size() int                                { return 0 }
func (c *chain) MarshalToSizedBuffer([]byte) (int, error) { return 0, nil }

func (l *link) Unmarshal(message []byte) error {
	if len(message) == 0 {
		return nil
	}
	_, _, n := protowire.ConsumeTag(message)
	inner, m := protowire.ConsumeBytes(message[max(n, 0):])
	if m < 0 {
		return protowire.ParseError(m)
	}
	l.Link = &link{}
	return l.Link.Unmarshal(inner)
}

// A message that would be decoded by too deep a recursion is refused before it is decoded.
func TestDecodeProtobufThatIsDeep(t *testing.T) {
	s, kind := runtime.NewScheme(), v1Widget.GroupVersion().WithKind("Chain")
	must(t, runtime.Register(s, kind, runtime.KindOptions[*chain]{}))
	for _, c := range []struct {
		levels int
		ok     bool
	}{{100, true}, {9000, true}, {10_000, true}, {10_001, false}, {300_000, false}} {
		var heads [][]byte
		size := 0
		for range c.levels {
			head := protowire.AppendVarint(protowire.AppendTag(nil, 28, protowire.BytesType), uint64(size))
			heads = append(heads, head)
			size += len(head)
		}
		slices.Reverse(heads)
		raw := slices.Concat(heads...)
		d, err := codec.Decode(s, codec.Protobuf(), sealed(t, kind, raw, nil), kind, codec.Warn)
		if !c.ok {
			if err == nil || err.Error() != "proto: nested more than 10000 messages deep" {
				t.Errorf("%d levels: %v", c.levels, err)
			}
			continue
		}
		if c.levels == 10_000 { // read, and too deep for JSON
			if err == nil || !strings.Contains(err.Error(), "exceeded max depth") {
				t.Errorf("%d levels: %v", c.levels, err)
			}
			continue
		}
		must(t, err)
		deep := 0
		for at := d.Object.(*chain).Link; at.Link != nil; at = at.Link {
			deep++
		}
		if deep != c.levels {
			t.Errorf("%d levels of %d", deep, c.levels)
		}
	}
}

// Parts that generated methods skip must not hide nested messages: the methods decode what follows these parts.
func TestDecodeProtobufThatIsDeepBehindUnknownFields(t *testing.T) {
	s, kind := runtime.NewScheme(), v1Widget.GroupVersion().WithKind("Chain")
	must(t, runtime.Register(s, kind, runtime.KindOptions[*chain]{}))
	var heads [][]byte
	size := 0
	for range 10_001 {
		head := protowire.AppendVarint(protowire.AppendTag(nil, 28, protowire.BytesType), uint64(size))
		heads = append(heads, head)
		size += len(head)
	}
	slices.Reverse(heads)
	deep := slices.Concat(heads...)
	group := func(content []byte) []byte {
		return protowire.AppendTag(append(protowire.AppendTag(nil, 1000, protowire.StartGroupType), content...), 1000, protowire.EndGroupType)
	}
	large := func(tag uint64, value ...byte) []byte { return append(protowire.AppendVarint(nil, tag), value...) }
	overflow := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02} // does not fit into 64 bits
	for name, before := range map[string][]byte{
		"an empty group":              group(nil),
		"a group":                     group(large(1<<3|uint64(protowire.VarintType), 1)),
		"groups in groups":            group(group(nil)),
		"a number beyond int32":       large(1<<40|uint64(protowire.VarintType), 1),
		"the number 0":                large(uint64(protowire.VarintType), 1),
		"a number beyond 64 bits":     append(large(1000<<3|uint64(protowire.VarintType)), overflow...),
		"a length beyond 64 bits":     append(large(1000<<3|uint64(protowire.BytesType)), overflow...),
		"a field number beyond those": append(slices.Concat([]byte{0xc0}, overflow[1:]), 1),
	} {
		_, err := codec.Decode(s, codec.Protobuf(), sealed(t, kind, append(before, deep...), nil), kind, codec.Warn)
		if err == nil || err.Error() != "proto: nested more than 10000 messages deep" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Text that looks like nested messages is not refused.
func TestDecodeProtobufOfLongTexts(t *testing.T) {
	s, f := newScheme(t), codec.Protobuf()
	for _, unit := range []string{"a", "\n", "\x0a\x02", "\x00", "\x12\x80\x80\x01"} {
		data := []byte(strings.Repeat(unit, 500_000/len(unit)))
		raw := marshal(t, &corev1.ConfigMap{BinaryData: map[string][]byte{"a": data}})
		d, err := codec.Decode(s, f, sealed(t, configMapKind, raw, nil), configMapKind, codec.Warn)
		if err != nil || string(d.Object.(*corev1.ConfigMap).BinaryData["a"]) != string(data) {
			t.Errorf("%q: %v", unit, err)
		}
	}
}

func TestDecodeInto(t *testing.T) {
	want := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, DryRun: []string{"All"}}
	raw := marshal(t, want)
	for name, c := range map[string]struct {
		f    codec.Format
		body string
	}{
		"protobuf": {codec.Protobuf(), string(sealed(t, corev1.SchemeGroupVersion.WithKind("DeleteOptions"), raw, nil))},
		"JSON":     {codec.JSON(), `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"x":1}`},
		"YAML":     {codec.YAML(), "kind: DeleteOptions\napiVersion: v1\ndryRun: [All]\n"},
	} {
		got := &metav1.DeleteOptions{}
		must(t, codec.DecodeInto(c.f, []byte(c.body), got))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for want, c := range map[string]struct {
		f    codec.Format
		body string
	}{
		"empty body":                         {codec.Protobuf(), "k8s\x00"},
		"unexpected EOF":                     {codec.Protobuf(), string(sealed(t, corev1.SchemeGroupVersion.WithKind("DeleteOptions"), []byte("\xff\xff"), nil))},
		"couldn't get version/kind":          {codec.JSON(), "["},
		"json: cannot unmarshal":             {codec.JSON(), `{"dryRun":1}`},
		"did not find expected node content": {codec.YAML(), "a: [\n"},
	} {
		if err := codec.DecodeInto(c.f, []byte(c.body), &metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", c.body, err, want)
		}
	}
}

func FuzzDecodeProtobuf(f *testing.F) {
	s := newScheme(f)
	_, err := s.Import(appsv1.AddToScheme)
	must(f, err)
	kinds := []schema.GroupVersionKind{configMapKind, corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision")}
	f.Add(marshal(f, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}), uint8(0))
	f.Add(marshal(f, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": {}}}}}}}), uint8(1))
	f.Add(marshal(f, &appsv1.ControllerRevision{Data: apiruntime.RawExtension{Raw: []byte(`{"a":1}`)}}), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		kind := kinds[int(which)%len(kinds)]
		for _, body := range [][]byte{raw, append([]byte("k8s\x00"), raw...), sealed(t, kind, raw, nil)} {
			d, err := codec.Decode(s, codec.Protobuf(), body, kind, codec.Strict)
			if err != nil {
				continue
			}
			doc, err := codec.EncodeDocument(d.Object, kind)
			if err != nil {
				t.Fatalf("%q is accepted and cannot be stored: %v", body, err)
			}
			again, err := codec.Decode(s, codec.JSON(), doc.Bytes(), kind, codec.Strict)
			if err != nil || len(again.Problems) > 0 {
				t.Fatalf("%q is stored as %s: %v %v", body, doc.Bytes(), err, again.Problems)
			}
			if _, err := codec.Protobuf().Encode(again.Object, kind); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func unhex(t testing.TB, text string) string {
	b, err := hex.DecodeString(text)
	must(t, err)
	return string(b)
}
