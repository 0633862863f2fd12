package protobuf_test

import (
	"bytes"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

// kubernetesMessage is implemented by the types of k8s.io/api.
type kubernetesMessage interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// eachKind calls f with the message of the mirror of every type of every kind of k8s.io/api.
func eachKind(t *testing.T, f func(t *testing.T, real reflect.Type, m *protobuf.Message, mirror reflect.Type)) {
	all, c := mirrors{}, &protobuf.Compiler{}
	done := map[reflect.Type]bool{}
	for gvk, typ := range kubernetes(t).AllKnownTypes() {
		if _, ok := reflect.New(typ).Interface().(kubernetesMessage); !ok || done[typ] {
			continue
		}
		done[typ] = true
		mirror := all.of(typ)
		if _, ok := reflect.New(mirror).Interface().(kubernetesMessage); ok {
			t.Fatalf("the mirror of %v has methods", typ)
		}
		m, err := c.Of(mirror)
		if err != nil {
			t.Errorf("%v: %v", gvk, err)
			continue
		}
		f(t, typ, m, mirror)
	}
	if len(done) < 300 {
		t.Errorf("%d kinds", len(done))
	}
}

// For every kind of k8s.io/api, tables encode and decode like the generated methods.
func TestTablesDoWhatGeneratedMethodsDo(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	eachKind(t, func(t *testing.T, typ reflect.Type, m *protobuf.Message, mirror reflect.Type) {
		for seed := range int64(rounds) {
			obj := reflect.New(typ)
			if seed > 0 { // the zero value has an encoding, too
				filler(seed).Fill(obj.Interface())
			}
			want, err := obj.Interface().(kubernetesMessage).Marshal()
			must(t, err)
			like := reflect.New(mirror)
			reflection(like.Elem(), obj.Elem())
			got, err := m.Append([]byte("before"), like.Interface())
			must(t, err)
			if string(got) != "before"+string(want) {
				t.Errorf("%v, seed %d is written\n%x, want\n%x", typ, seed, got[len("before"):], want)
				return
			}
			if size, err := m.Size(like.Interface()); err != nil || size != len(want) {
				t.Errorf("%v, seed %d: the size is %d of %d, %v", typ, seed, size, len(want), err)
			}
			sameReading(t, typ, m, mirror, want)
		}
	})
}

// sameReading decodes a message by the methods and by the table, compares the results, and reports whether the message is valid.
func sameReading(t *testing.T, typ reflect.Type, m *protobuf.Message, mirror reflect.Type, message []byte) bool {
	t.Helper()
	want, got, like := reflect.New(typ), reflect.New(typ), reflect.New(mirror)
	err := m.Unmarshal(message, like.Interface())
	if err != nil && strings.Contains(err.Error(), "longer than the") {
		return false // the generated methods do not check this, and would take very long
	}
	wantErr := want.Interface().(kubernetesMessage).Unmarshal(message)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%v of %x: %v, want %v", typ, message, err, wantErr)
	}
	if err != nil || wantErr != nil {
		return false
	}
	reflection(got.Elem(), like.Elem())
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Errorf("%v of %x is read\n%+v, want\n%+v", typ, message, got, want)
	}
	return true
}

// Damaged messages are decoded or refused as by generated methods.
func TestTablesReadWhatGeneratedMethodsRead(t *testing.T) {
	rounds, read, refused := int64(20), 0, 0
	if testing.Short() {
		rounds = 2
	}
	eachKind(t, func(t *testing.T, typ reflect.Type, m *protobuf.Message, mirror reflect.Type) {
		obj := reflect.New(typ)
		filler(1).Fill(obj.Interface())
		good, err := obj.Interface().(kubernetesMessage).Marshal()
		must(t, err)
		r := rand.New(rand.NewSource(int64(len(good))))
		for range rounds {
			message := bytes.Clone(good)
			for range 1 + r.Intn(2) {
				message = damaged(message, r)
			}
			if sameReading(t, typ, m, mirror, message) {
				read++
			} else {
				refused++
			}
		}
	})
	if read < 20 || refused < 20 {
		t.Errorf("%d were read, and %d refused", read, refused)
	}
}

// Unknown fields are ignored or refused as by generated methods.
func TestUnknownFields(t *testing.T) {
	typ := reflect.TypeFor[corev1.ConfigMap]()
	mirror := mirrors{}.of(typ)
	m, err := new(protobuf.Compiler).Of(mirror)
	must(t, err)
	start, end := protowire.AppendTag(nil, 1000, protowire.StartGroupType), protowire.AppendTag(nil, 1000, protowire.EndGroupType)
	other := protowire.AppendTag(nil, 7, protowire.EndGroupType)
	overflow := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2}
	after := counted(3, text(1, "k"), text(2, "v"))
	for name, c := range map[string]struct {
		message []byte
		ok      bool
	}{
		"numbers":                       {joined(number(1000, 1<<63), number(1<<29-1, 0)), true},
		"a text":                        {text(1000, "a"), true},
		"fixed ones":                    {joined(tagged(1000, protowire.Fixed32Type, make([]byte, 4)), tagged(1000, protowire.Fixed64Type, make([]byte, 8))), true},
		"a group":                       {joined(start, number(1, 1), text(3, "a"), end), true},
		"groups in a group":             {joined(start, start, number(1, 1), end, start, end, number(1, 1), end), true},
		"a group that another ends":     {joined(start, other), true},
		"a number beyond 64 bits":       {joined(protowire.AppendTag(nil, 1000, protowire.VarintType), overflow), true},
		"a field number beyond 64 bits": {joined([]byte{0xc0}, overflow[1:], []byte{1}), true}, // truncated, it is 8
		"a group without end":           {joined(start, number(1, 1)), false},
		"a group in one without end":    {joined(start, start, end), false},
		"the end of none":               {end, false},
		"an end after the end":          {joined(start, end, end), false},
		"the number 0":                  {[]byte{0, 1}, false},
		"a negative number":             {protowire.AppendVarint(nil, 1<<34), false},
		"a wire type there is not":      {[]byte{0xc6, 0x3e, 1}, false},
		"one in a group":                {joined(start, []byte{0xc6, 0x3e, 1}, end), false},
	} {
		message := joined(c.message, after)
		if ok := sameReading(t, typ, m, mirror, message); ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
		if c.ok {
			got := reflect.New(mirror)
			must(t, m.Unmarshal(message, got.Interface()))
			if !reflect.DeepEqual(got.Elem().FieldByName("BinaryData").Interface(), map[string][]byte{"k": []byte("v")}) {
				t.Errorf("%s: what follows is %+v", name, got)
			}
		}
		inEntry := counted(3, text(1, "k"), text(2, "v"), c.message)
		if ok := sameReading(t, typ, m, mirror, inEntry); ok != (c.ok || name == "the number 0") {
			t.Errorf("%s in an entry: %v", name, ok)
		}
	}
}

// damaged changes a message somewhere.
func damaged(message []byte, r *rand.Rand) []byte {
	at := r.Intn(len(message) + 1)
	odd := [][]byte{
		{0}, {0xff}, {7}, {0x0b, 0x0c}, {0x0c}, {0x0b, 0x0b, 0x10, 1, 0x0c, 0x0c},
		protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.BytesType), 1<<63),
		protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.VarintType), 1<<63),
		protowire.AppendFixed32(protowire.AppendTag(nil, 300, protowire.Fixed32Type), 5),
		protowire.AppendFixed64(protowire.AppendTag(nil, 300, protowire.Fixed64Type), 5),
		protowire.AppendVarint(nil, 1<<36), bytes.Repeat([]byte{0x80}, 11), {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2},
	}
	switch r.Intn(6) {
	case 0:
		return message[:at]
	case 1: // twice
		return append(message, message[at:]...)
	case 2:
		if at < len(message) {
			message[at] ^= 1 << r.Intn(8)
		}
		return message
	case 3:
		return append(message, odd[r.Intn(len(odd))]...)
	default:
		return bytes.Join([][]byte{message[:at], message[at:]}, odd[r.Intn(len(odd))])
	}
}
