package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// tag is a parsed protobuf tag. Whether a field is a list depends on its type.
type tag struct {
	wire   string
	number int32
	packed bool
}

func parseTag(text string) (tag, error) {
	parts := strings.Split(text, ",")
	if len(parts) < 2 {
		return tag{}, errors.New(`a tag is like "varint,1,opt,name=size"`)
	}
	number, err := strconv.ParseInt(parts[1], 10, 32)
	switch n := protowire.Number(number); {
	case err != nil || !n.IsValid():
		return tag{}, fmt.Errorf("%q is no number of a field", parts[1])
	case n >= protowire.FirstReservedNumber && n <= protowire.LastReservedNumber:
		return tag{}, fmt.Errorf("the numbers %d to %d are reserved", protowire.FirstReservedNumber, protowire.LastReservedNumber)
	case !slices.Contains([]string{"varint", "zigzag32", "zigzag64", "fixed32", "fixed64", "bytes"}, parts[0]):
		return tag{}, fmt.Errorf("%q is none of varint, zigzag32, zigzag64, fixed32, fixed64 and bytes", parts[0])
	}
	return tag{wire: parts[0], number: int32(number), packed: slices.Contains(parts[2:], "packed")}, nil
}

// scalarKind returns the encoding of a value whose type is not a message. An encoding in a tag that the type cannot have is
// ignored, as in go-to-protobuf: k8s.io/api has such tags.
func scalarKind(t reflect.Type, wire string) (kind, error) {
	usual, others := boolKind, map[string]kind(nil)
	switch t.Kind() {
	case reflect.Bool:
	case reflect.Int8, reflect.Int16, reflect.Int32:
		usual, others = intKind, map[string]kind{"zigzag32": zigzagKind, "zigzag64": zigzagKind, "fixed32": fixed32Int, "fixed64": fixed64Int}
	case reflect.Int, reflect.Int64:
		usual, others = intKind, map[string]kind{"zigzag64": zigzagKind, "fixed64": fixed64Int}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		usual, others = uintKind, map[string]kind{"fixed32": fixed32Uint, "fixed64": fixed64Uint}
	case reflect.Uint, reflect.Uint64:
		usual, others = uintKind, map[string]kind{"fixed64": fixed64Uint}
	case reflect.Float32:
		usual = fixed32Float
	case reflect.Float64:
		usual = fixed64Float
	case reflect.String:
		usual = stringKind
	case reflect.Slice: // of bytes: other slices are lists
		usual = bytesKind
	default:
		return 0, fmt.Errorf("a value of the type %v cannot be written", t)
	}
	if k, ok := others[wire]; ok {
		return k, nil
	}
	return usual, nil
}

// proposal returns a tag that a field could have, with a number that is unused in the struct, or "" if the field cannot have one.
func proposal(t reflect.Type, sf reflect.StructField) string {
	taken := map[int32]bool{}
	for i := range t.NumField() {
		if label, err := parseTag(t.Field(i).Tag.Get("protobuf")); err == nil {
			taken[label.number] = true
		}
	}
	number := int32(1)
	for taken[number] {
		number++
	}
	label, item := "opt", sf.Type
	if isList(item) {
		label, item = "rep", item.Elem()
		if sf.Type.Kind() == reflect.Map {
			item = reflect.TypeFor[string]()
		}
	}
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	wire := "bytes"
	switch item.Kind() {
	case reflect.Interface, reflect.Array, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr, reflect.Complex64, reflect.Complex128:
		return fmt.Sprintf(", and %v could not have one", sf.Type)
	case reflect.Float32:
		wire = "fixed32"
	case reflect.Float64:
		wire = "fixed64"
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.String, reflect.Pointer:
	default:
		wire = "varint"
	}
	name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if name == "" {
		name = strings.ToLower(sf.Name[:1]) + sf.Name[1:]
	}
	return fmt.Sprintf("; write one like `protobuf:%q`, with a number that it keeps for ever", fmt.Sprintf("%s,%d,%s,name=%s", wire, number, label, name))
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// isList reports whether a type is a slice or a map without methods of its own.
func isList(t reflect.Type) bool {
	return (t.Kind() == reflect.Map || t.Kind() == reflect.Slice && !isBytes(t)) && !isMessage(t)
}

// nameOf returns a short name of a type.
func nameOf(t reflect.Type) string {
	const most = 200
	if name := t.String(); len(name) <= most {
		return name
	}
	return "a " + t.Kind().String()
}
