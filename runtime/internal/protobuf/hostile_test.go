package protobuf_test

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nested returns content inside the given number of messages, each in the field with number n of the next one.
func nested(n protowire.Number, levels int, content []byte) []byte {
	heads, size := [][]byte{content}, len(content)
	for range levels {
		head := protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.BytesType), uint64(size))
		heads = append(heads, head)
		size += len(head)
	}
	slices.Reverse(heads)
	return slices.Concat(heads...)
}

// Nested messages are decoded by recursive functions. There is a limit for tables, for generated methods, and for both together.
func TestDepth(t *testing.T) {
	type holder struct {
		Inner *holder                `protobuf:"bytes,1,opt"`
		Held  *metav1.ObjectMeta     `protobuf:"bytes,2,opt"`
		Deep  map[string]*holder     `protobuf:"bytes,3,rep"`
		Lists []map[string][]*holder `protobuf:"bytes,4,rep"`
	}
	m := messageOf[holder](t)
	unknown := func(levels int) []byte { return nested(28, levels, bytes.Repeat([]byte{0}, 20)) }
	for name, c := range map[string]struct {
		message []byte
		ok      bool
	}{
		"tables":                         {nested(1, 10_000, nil), true},
		"more tables":                    {nested(1, 10_001, nil), false},
		"many tables":                    {nested(1, 300_000, nil), false},
		"methods in a table":             {nested(2, 1, unknown(9998)), true}, // its skipped fields could be messages
		"more methods in a table":        {nested(2, 1, unknown(10_000)), false},
		"methods in many tables":         {nested(1, 9990, nested(2, 1, unknown(9))), true},
		"more methods in many tables":    {nested(1, 9990, nested(2, 1, unknown(10))), false},
		"unknown fields are passed over": {unknown(300_000), true},
		"entries of maps":                {nested(3, 1, nested(2, 1, nested(1, 9999, nil))), true},
		"more in entries of maps":        {nested(3, 1, nested(2, 1, nested(1, 10_000, nil))), false},
		"lists of maps of lists":         {nested(4, 1, nested(1, 1, nested(2, 1, nested(1, 1, nested(1, 9990, nil))))), true},
		"more lists of maps of lists":    {nested(4, 1, nested(1, 1, nested(2, 1, nested(1, 1, nested(1, 10_000, nil))))), false},
	} {
		got := &holder{}
		err := m.Unmarshal(c.message, got)
		if (err == nil) != c.ok || !c.ok && err.Error() != "proto: nested more than 10000 messages deep" {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if message, err := m.Append(nil, got); err != nil || name == "tables" && string(message) != string(c.message) {
			t.Errorf("%s cannot be written: %v", name, err)
		}
	}
	deep := &holder{}
	for range 10_001 {
		deep = &holder{Inner: deep}
	}
	if _, err := m.Append(nil, deep); err == nil {
		t.Error("what is too deep to be read is written")
	}
	deep.Inner = deep // an object that contains itself
	if _, err := m.Size(deep); err == nil {
		t.Error("what has no end has a size")
	}
	wide := &holder{Lists: []map[string][]*holder{{"a": make([]*holder, 30_000)}}} // an object that is large but not deep
	if _, err := m.Append(nil, wide); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// The lengths in a message do not cause allocations.
func TestHugeLengths(t *testing.T) {
	m, n := messageOf[texts](t), messageOf[numbers](t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, size := range []uint64{1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		for number := protowire.Number(1); number < 30; number++ {
			message := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), size)
			if m.Unmarshal(message, &texts{}) == nil || n.Unmarshal(message, &numbers{}) == nil {
				t.Errorf("field %d of %d bytes is read", number, size)
			}
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 10<<20 {
		t.Errorf("that took %d bytes", after.TotalAlloc-before.TotalAlloc)
	}
}

// A map entry with a wrong length would be decoded, and kept, once for each such entry. Tables refuse it; the behaviour of the
// generated methods is not compared.
func TestMapEntries(t *testing.T) {
	type own struct {
		Labels map[string]string   `protobuf:"bytes,11,rep"`
		Data   map[string][]byte   `protobuf:"bytes,12,rep"`
		Other  map[level]promoted  `protobuf:"bytes,13,rep"`
		Counts map[uint8]uint8     `protobuf:"bytes,14,rep"`
		Items  []metav1.ObjectMeta `protobuf:"bytes,15,rep"`
	}
	methods, err := new(protobuf.Compiler).Of(reflect.TypeFor[corev1.Pod]())
	must(t, err)
	table := messageOf[own](t)
	rest := bytes.Repeat([]byte{0}, 100)
	labels := func(entry ...byte) []byte { return counted(11, entry) }
	for name, c := range map[string]struct {
		message []byte
		refused bool
	}{
		"a label":                  {labels('\n', 1, 'a', 0x12, 1, 'b'), false},
		"a label without value":    {labels('\n', 1, 'a'), false},
		"an empty entry":           {labels(), false},
		"a further field":          {labels('\n', 1, 'a', 0x18, 1), false},
		"a value beyond the entry": {append(labels('\n', 1, 'a', 0x12, 50), rest...), true},
		"a key beyond the entry":   {append(labels('\n', 50), rest...), true},
		"a tag beyond the entry":   {append(labels(0x8a), rest...), true},
		"a value that is a number": {labels('\n', 1, 'a', 0x10, 1, 'b'), true},
		"a value of no kind":       {labels('\n', 1, 'a', 0x17, 1, 'b'), true},
		"a key of no kind":         {labels(0x0f, 1, 'a'), true},
		"a key that is a number":   {labels(8, 1, '\n', 1, 'a'), true},
	} {
		for sort, err := range map[string]error{
			"table":             table.Unmarshal(c.message, &own{}),
			"methods":           methods.Unmarshal(counted(1, c.message), &corev1.Pod{}),
			"methods in a list": table.Unmarshal(joined(counted(15), counted(15, c.message)), &own{}),
			"methods in a map":  table.Unmarshal(counted(13, counted(2, counted(1, c.message))), &own{}),
			"a map of bytes":    table.Unmarshal(append([]byte{12<<3 | 2}, c.message[1:]...), &own{}),
		} {
			if refused := err != nil && strings.Contains(err.Error(), "a map's entry"); refused != c.refused || !refused && err != nil {
				t.Errorf("%s in %s: %v", name, sort, err)
			}
		}
	}
	for name, entry := range map[string][]byte{
		"a number that has a length": {0x0a, 1, 1}, "a number with the tag of a text": {0x0a, 0}, "a value with the tag of a text": {8, 1, 0x12, 0}, "a number beyond the entry": {8, 0x81}, "a value beyond": {8, 1, 0x10, 0x81},
		"a value with a length": {8, 1, 0x12, 1, 1}, "a group": {8, 1, 0x13}, "the end of a group": {8, 1, 0x1c},
	} {
		if err := table.Unmarshal(append(counted(14, entry), 8, 1, 8, 1), &own{}); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	// Messages of this kind take hundreds of gigabytes if each entry is decoded up to the end of the message.
	entry := labels('\n', 0xff, 0xff, 0x3f)
	if err := methods.Unmarshal(counted(1, bytes.Repeat(entry, 300_000)), &corev1.Pod{}); err == nil {
		t.Error("entries that each have the rest of the message in them are read")
	}
}

// panics has a method that panics, as no generated method does.
type panics struct{}

func (*panics) Unmarshal([]byte) error                   { panic("no such field") }
func (*panics) Size() int                                { return 0 }
func (*panics) MarshalToSizedBuffer([]byte) (int, error) { return 0, nil }

func TestAMethodThatPanics(t *testing.T) {
	type holder struct {
		P panics `protobuf:"bytes,1,opt"`
	}
	if err := messageOf[holder](t).Unmarshal([]byte{'\n', 0}, &holder{}); err == nil || !strings.Contains(err.Error(), "no such field") {
		t.Error(err)
	}
}
