package weight

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types makes and caches the tables by which values of Go types are measured. It keeps one table for each type. The zero Types is
// ready to use. All methods may be called concurrently. It must not be copied.
type Types struct {
	known sync.Map // reflect.Type → *node
	mu    sync.Mutex
	made  map[reflect.Type]*node // guarded by mu: the nodes of all types met; those in known are complete
}

// sort is the kind of a type.
type sort uint8

const (
	plain    sort = iota // a number, a string, bytes, or any value that takes only its slot
	anything             // an interface
	pointer
	structure
	list
	mapping
	itself // it decodes itself, with an unknown result
)

// node describes a Go type.
type node struct {
	sort    sort
	size    int              // the size of its slot
	key     int              // the size of a map's key
	elem    *node            // of a pointer, list or mapping: the element
	fields  map[string]field // of a structure, by JSON name
	numbers map[int32]field  // of a structure, by protobuf number
	object  *node            // if sort is itself: a struct that it points to and may decode a JSON object into; nil: none
	items   *node            // if sort is itself: a slice that it may decode an array into; nil: none
	value   *node            // of a mapping: the protobuf message of an entry
}

type field struct {
	*node
	counted string // the name of a list or map in the metadata with a limit of items; "": none
}

func (t *Types) of(typ reflect.Type) *node {
	if n, ok := t.known.Load(typ); ok {
		return n.(*node)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made == nil {
		t.made = map[reflect.Type]*node{}
	}
	n := t.node(typ)
	t.known.Store(typ, n)
	return n
}

func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

// message is implemented by types with generated protobuf methods.
type message interface{ Unmarshal(text []byte) error }

// node returns the node of a type, and makes it if necessary. The caller holds mu.
func (t *Types) node(typ reflect.Type) *node {
	if n, ok := t.made[typ]; ok {
		return n
	}
	n := &node{size: int(typ.Size())}
	t.made[typ] = n // stored first, because types may contain themselves
	switch kind := typ.Kind(); {
	case kind == reflect.Pointer:
		n.sort, n.elem = pointer, t.node(typ.Elem())
	case kind == reflect.Interface:
		n.sort = anything
	case kind == reflect.Struct:
		n.sort = structure
		t.numbers(n, typ)
		if implements[json.Unmarshaler](typ) || implements[encoding.TextUnmarshaler](typ) {
			n.sort = itself
			t.inside(n, typ)
			break
		}
		t.names(n, typ)
	case implements[json.Unmarshaler](typ) || implements[encoding.TextUnmarshaler](typ):
		n.sort = itself
	case kind == reflect.Slice && typ.Elem().Kind() != reflect.Uint8, kind == reflect.Array:
		n.sort, n.elem = list, t.node(typ.Elem())
	case kind == reflect.Map:
		n.sort, n.key, n.elem = mapping, int(typ.Key().Size()), t.node(typ.Elem())
		n.value = &node{numbers: map[int32]field{2: {node: n.elem}}}
	}
	if (n.sort == list || n.sort == mapping) && implements[message](typ) { // a message whose only field is its items
		n.numbers = map[int32]field{1: {node: &node{sort: n.sort, size: n.size, key: n.key, elem: n.elem, value: n.value}}}
	}
	return n
}

// names sets the JSON fields of a struct.
func (t *Types) names(n *node, typ reflect.Type) {
	all := jsonfield.Of(typ, nil)
	n.fields = make(map[string]field, len(all))
	for _, f := range all {
		n.fields[f.Name] = field{t.node(f.Go.Type), counted(typ, f.Name, f.Go.Type)}
	}
}

// numbers sets the protobuf fields of a struct.
func (t *Types) numbers(n *node, typ reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		_, rest, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
		text, _, _ := strings.Cut(rest, ",")
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			continue
		}
		if n.numbers == nil {
			n.numbers = make(map[int32]field, typ.NumField())
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		n.numbers[int32(number)] = field{t.node(f.Type), counted(typ, name, f.Type)}
	}
}

// counted returns the name of a field whose items are counted, or "".
func counted(in reflect.Type, name string, typ reflect.Type) string {
	if in == reflect.TypeFor[metav1.ObjectMeta]() && (typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map) {
		return name
	}
	return ""
}

// inside guesses the content of a type that decodes itself: the types of Kubernetes decode an object into a struct that one of
// their fields points to, and an array into a slice.
func (t *Types) inside(n *node, typ reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		switch {
		case !f.IsExported() || f.Type.Kind() == reflect.Pointer && implements[json.Unmarshaler](f.Type.Elem()):
		case n.object == nil && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
			n.object = t.node(f.Type)
		case n.items == nil && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8:
			n.items = t.node(f.Type)
		}
	}
}
