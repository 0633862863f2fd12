package protobuf_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type level int32

// numbers has every kind of number.
type numbers struct {
	Far      int32           `protobuf:"varint,536870911,opt,name=far"`
	Middle   bool            `protobuf:"varint,256,opt,name=middle"`
	Bool     bool            `protobuf:"varint,1,opt,name=bool"`
	Int      int             `protobuf:"varint,2,opt,name=int"`
	Int8     int8            `protobuf:"varint,3,opt,name=int8"`
	Level    level           `protobuf:"varint,4,opt,name=level,casttype=level"`
	Uint16   uint16          `protobuf:"varint,5,opt,name=uint16"`
	Uint64   uint64          `protobuf:"varint,6,opt,name=uint64"`
	Zigzag32 int32           `protobuf:"zigzag32,7,opt,name=zigzag32"`
	Zigzag64 int64           `protobuf:"zigzag64,8,opt,name=zigzag64"`
	Fixed32  int32           `protobuf:"fixed32,9,opt,name=fixed32"`
	UFixed32 uint32          `protobuf:"fixed32,10,opt,name=ufixed32"`
	Fixed64  int64           `protobuf:"fixed64,11,opt,name=fixed64"`
	UFixed64 uint64          `protobuf:"fixed64,12,opt,name=ufixed64"`
	Float32  float32         `protobuf:"fixed32,13,opt,name=float32"`
	Float64  float64         `protobuf:"fixed64,14,opt,name=float64"`
	Odd      int64           `protobuf:"bytes,15,opt,name=odd"` // the encoding bytes is not possible for this type
	Packed   []int32         `protobuf:"varint,16,rep,packed,name=packed"`
	Plain    []uint32        `protobuf:"varint,17,rep,name=plain"`
	Floats   []float64       `protobuf:"fixed64,18,rep,packed,name=floats"`
	Waits    []time.Duration `protobuf:"varint,19,rep,name=waits"`
	Maybe    *uint8          `protobuf:"varint,20,opt,name=maybe"`
	Never    func()          `protobuf:"-"`
	Unshown  func()          `json:"-"`
	unshown  func()
}

// texts has fields of all other types.
type texts struct {
	metav1.TypeMeta `json:",inline"`
	String          string              `protobuf:"bytes,1,opt,name=string"`
	Bytes           []byte              `protobuf:"bytes,2,opt,name=bytes"`
	Maybe           *string             `protobuf:"bytes,3"`
	Strings         []string            `protobuf:"bytes,4,rep,name=strings"`
	Lists           [][]string          `protobuf:"bytes,5,rep,name=lists"`
	Inner           *texts              `protobuf:"bytes,6,opt,name=inner"`
	Items           []*texts            `protobuf:"bytes,7,rep,name=items"`
	Named           map[string]*texts   `protobuf:"bytes,8,rep,name=named"`
	Extra           map[string][]string `protobuf:"bytes,9,rep,name=extra"`
	Counts          map[level]uint16    `protobuf:"bytes,10,rep,name=counts"`
	Flags           map[bool]float32    `protobuf:"bytes,11,rep,name=flags"`
	Data            map[uint8][]byte    `protobuf:"bytes,12,rep,name=data"`
	Times           map[int]metav1.Time `protobuf:"bytes,13,rep,name=times"`
	Maps            []map[string]int    `protobuf:"bytes,14,rep,name=maps"`
	Nothing         struct{}            `protobuf:"bytes,15,opt,name=nothing"`
	Blobs           [][]byte            `protobuf:"bytes,16,rep,name=blobs"`
}

func messageOf[T any](t testing.TB) *protobuf.Message {
	t.Helper()
	m, err := new(protobuf.Compiler).Of(reflect.TypeFor[T]())
	must(t, err)
	return m
}

// tagged returns an encoded field: its tag, and the given bytes of its value.
func tagged(number protowire.Number, wire protowire.Type, value []byte) []byte {
	return append(protowire.AppendTag(nil, number, wire), value...)
}

func number(n protowire.Number, v uint64) []byte {
	return tagged(n, protowire.VarintType, protowire.AppendVarint(nil, v))
}

func counted(n protowire.Number, content ...[]byte) []byte {
	return tagged(n, protowire.BytesType, protowire.AppendBytes(nil, joined(content...)))
}

func text(n protowire.Number, s string) []byte { return counted(n, []byte(s)) }

func joined(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// written checks that a value is encoded as want, and decoded from it again.
func written[T any](t *testing.T, name string, obj *T, want []byte) {
	t.Helper()
	m := messageOf[T](t)
	got, err := m.Append(nil, obj)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("%s is\n%x, want\n%x", name, got, want)
	}
	if size, err := m.Size(obj); err != nil || size != len(want) {
		t.Errorf("the size of %s is %d of %d, %v", name, size, len(want), err)
	}
	again := new(T)
	must(t, m.Unmarshal(want, again))
	if !reflect.DeepEqual(again, obj) {
		t.Errorf("%s is read as\n%+v, want\n%+v", name, again, obj)
	}
}

func TestNumbers(t *testing.T) {
	_ = numbers{}.unshown
	maybe := uint8(255)
	n := &numbers{Far: 1, Middle: true, Bool: true, Int: -1, Int8: -128, Level: 7, Uint16: 65535, Uint64: math.MaxUint64, Zigzag32: math.MinInt32,
		Zigzag64: -2, Fixed32: -1, UFixed32: 1, Fixed64: -1, UFixed64: 1, Float32: 1.5, Float64: -0.25, Odd: 300, Packed: []int32{1, -1, 300},
		Plain: []uint32{0, 1}, Floats: []float64{1, 2}, Waits: []time.Duration{5}, Maybe: &maybe}
	fixed32 := func(v uint32) []byte { return protowire.AppendFixed32(nil, v) }
	fixed64 := func(v uint64) []byte { return protowire.AppendFixed64(nil, v) }
	const four, eight = protowire.Fixed32Type, protowire.Fixed64Type
	written(t, "all", n, joined(
		number(1, 1), number(2, math.MaxUint64), number(3, math.MaxUint64-127), number(4, 7), number(5, 65535), number(6, math.MaxUint64),
		number(7, math.MaxUint32), number(8, 3), tagged(9, four, fixed32(math.MaxUint32)), tagged(10, four, fixed32(1)),
		tagged(11, eight, fixed64(math.MaxUint64)), tagged(12, eight, fixed64(1)), tagged(13, four, fixed32(0x3fc00000)), tagged(14, eight, fixed64(0xbfd0000000000000)),
		number(15, 300), counted(16, protowire.AppendVarint(protowire.AppendVarint([]byte{1}, math.MaxUint64), 300)), number(17, 0), number(17, 1),
		counted(18, fixed64(math.Float64bits(1)), fixed64(math.Float64bits(2))), number(19, 5), number(20, 255), number(256, 1), number(536870911, 1)))

	m, got := messageOf[numbers](t), &numbers{}
	must(t, m.Unmarshal(joined(number(16, 1), counted(16, []byte{2, 3}), counted(17, []byte{4}), number(17, 5), number(3, 300), number(5, 65537), number(1, 2)), got))
	want := &numbers{Packed: []int32{1, 2, 3}, Plain: []uint32{4, 5}, Int8: 44, Uint16: 1, Bool: true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lists packed or not, and numbers too large, are read as %+v", got)
	}
}

func TestTexts(t *testing.T) {
	nothing := func(s string) []byte { return joined(text(1, s), text(15, "")) }
	written(t, "nothing", &texts{}, nothing(""))
	maybe := ""
	written(t, "all", &texts{String: "a", Bytes: []byte{}, Maybe: &maybe, Strings: []string{"", "b"}, Lists: [][]string{{}, {"c", ""}},
		Inner: &texts{String: "d"}, Items: []*texts{{}, {String: "e"}}, Named: map[string]*texts{"y": nil, "x": {}}, Extra: map[string][]string{"": {}, "k": {"v"}},
		Counts: map[level]uint16{-1: 1, 0: 2, 3: 0}, Flags: map[bool]float32{true: 0, false: 0}, Data: map[uint8][]byte{200: {1}, 3: {}},
		Times: map[int]metav1.Time{5: metav1.Unix(1, 0)}, Maps: []map[string]int{{}, {"z": 1}}, Blobs: [][]byte{{}, {9}}},
		joined(text(1, "a"), text(2, ""), text(3, ""), text(4, ""), text(4, "b"), counted(5), counted(5, text(1, "c"), text(1, "")),
			counted(6, nothing("d")), counted(7, nothing("")), counted(7, nothing("e")),
			counted(8, text(1, "x"), counted(2, nothing(""))), counted(8, text(1, "y")),
			counted(9, text(1, ""), counted(2)), counted(9, text(1, "k"), counted(2, text(1, "v"))),
			counted(10, number(1, math.MaxUint64), number(2, 1)), counted(10, number(1, 0), number(2, 2)), counted(10, number(1, 3), number(2, 0)),
			counted(11, number(1, 0), tagged(2, protowire.Fixed32Type, make([]byte, 4))), counted(11, number(1, 1), tagged(2, protowire.Fixed32Type, make([]byte, 4))),
			counted(12, number(1, 3), text(2, "")), counted(12, number(1, 200), text(2, "\x01")),
			counted(13, number(1, 5), counted(2, number(1, 1), number(2, 0))),
			counted(14), counted(14, counted(1, text(1, "z"), number(2, 1))), text(15, ""), text(16, ""), text(16, "\x09")))

	m := messageOf[texts](t)
	got, err := m.Append(nil, &texts{Items: []*texts{nil}, Strings: []string{}, Extra: map[string][]string{"n": nil}, Data: map[uint8][]byte{1: nil}})
	must(t, err)
	if want := joined(text(1, ""), counted(7, nothing("")), counted(9, text(1, "n"), counted(2)), counted(12, number(1, 1)), text(15, "")); string(got) != string(want) {
		t.Errorf("what is nil in a list or a map is\n%x, want\n%x", got, want)
	}
}

// A field that occurs again is set again, but its message is merged. Fields that a message does not have are as in a new object.
func TestFieldsThatComeAgain(t *testing.T) {
	m, got := messageOf[texts](t), &texts{}
	must(t, m.Unmarshal(joined(text(1, "a"), text(1, "b"), text(2, "a"), text(2, "b"), counted(6, text(1, "a"), text(4, "a")), text(3, "a"), counted(6, text(4, "b"), text(2, "")),
		counted(8, counted(2, text(1, "a")), counted(2, text(2, "b"))), counted(9, text(1, "k"), counted(2, text(1, "v"))), counted(9, text(1, "k")), counted(10)), got))
	a := "a"
	want := &texts{String: "b", Bytes: []byte("b"), Maybe: &a, Inner: &texts{String: "a", Strings: []string{"a", "b"}, Bytes: []byte{}},
		Named: map[string]*texts{"": {Bytes: []byte("b")}}, Extra: map[string][]string{"k": {}}, Counts: map[level]uint16{0: 0}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Decoded values share no memory with the message, and encoded messages share none with the values.
func TestMemoryIsNotShared(t *testing.T) {
	m := messageOf[texts](t)
	message := joined(text(1, "a"), text(2, "b"), counted(12, number(1, 1), text(2, "c")), text(16, "d"))
	got := &texts{}
	must(t, m.Unmarshal(message, got))
	clear(message)
	if got.String != "a" || string(got.Bytes) != "b" || string(got.Data[1]) != "c" || string(got.Blobs[0]) != "d" {
		t.Errorf("%+v", got)
	}
	one, err := m.Append(nil, got)
	must(t, err)
	before := string(one)
	_, err = m.Append(nil, &texts{String: "other"})
	must(t, err)
	if string(one) != before {
		t.Errorf("%q became %q", before, one)
	}
}

func TestWrongObjects(t *testing.T) {
	tables, methods := messageOf[texts](t), messageOf[metav1.Status](t)
	for name, c := range map[string]struct {
		m   *protobuf.Message
		obj any
	}{
		"a struct":                {tables, texts{}},
		"nil":                     {tables, nil},
		"a nil pointer":           {tables, (*texts)(nil)},
		"another type":            {tables, &numbers{}},
		"a type with methods":     {tables, &metav1.Status{}},
		"another with methods":    {methods, &metav1.ObjectMeta{}},
		"one without":             {methods, &texts{}},
		"a nil one with methods":  {methods, (*metav1.Status)(nil)},
		"a struct with methods":   {methods, metav1.Status{}},
		"a pointer to the object": {tables, new(*texts)},
	} {
		dst, err := c.m.Append([]byte("x"), c.obj)
		_, sizeErr := c.m.Size(c.obj)
		if err == nil || string(dst) != "x" || sizeErr == nil || c.m.Unmarshal(nil, c.obj) == nil {
			t.Errorf("%s: %q, %v, %v", name, dst, err, sizeErr)
		}
	}
}
