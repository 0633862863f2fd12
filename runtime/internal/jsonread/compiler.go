package jsonread

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Compiler makes and caches the tables by which values of Go types are decoded. It keeps one table for each type. The zero
// Compiler is ready to use. All methods may be called concurrently. It must not be copied.
type Compiler struct {
	known sync.Map // reflect.Type of a struct → *table, nil if this package does not decode it
	mu    sync.Mutex
	made  map[reflect.Type]readFunc // guarded by mu: functions of all types met; those in known are complete
}

// Read decodes text into the struct that into points to, which must be new. If ok is false, the caller must use another decoder;
// into may then be partly filled. Neither text nor parts of it are kept.
func (c *Compiler) Read(text []byte, into any) (ok bool) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return false
	}
	t := c.of(v.Type().Elem())
	if t == nil {
		return false
	}
	defer func() {
		if recover() != nil { // a type's own method panicked; it will panic again in the ordinary decoder
			ok = false
		}
	}()
	r := &reader{text: text}
	r.space()
	if !t.read(r, v.Elem()) {
		return false
	}
	r.space()
	return r.at == len(text)
}

// readFunc decodes the next value into v, which is settable and zero.
type readFunc func(r *reader, v reflect.Value) bool

// refuse is the readFunc of types that this package does not decode.
func refuse(*reader, reflect.Value) bool { return false }

// of returns the table of a struct type, or nil if it has none.
func (c *Compiler) of(t reflect.Type) *table {
	if known, ok := c.known.Load(t); ok {
		return known.(*table)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[reflect.Type]readFunc{}
	}
	var whole *table
	if t.Kind() == reflect.Struct && !reads[json.Unmarshaler](t) && !reads[encoding.TextUnmarshaler](t) {
		whole = c.table(t)
	}
	c.known.Store(t, whole)
	return whole
}

// reads reports whether a pointer to t implements the interface I.
func reads[I any](t reflect.Type) bool { return reflect.PointerTo(t).Implements(reflect.TypeFor[I]()) }

// reader returns the readFunc of a type. The caller holds mu.
func (c *Compiler) reader(t reflect.Type) readFunc {
	if f, ok := c.made[t]; ok {
		return f
	}
	var made readFunc
	c.made[t] = func(r *reader, v reflect.Value) bool { return made(r, v) } // for a type that refers to itself
	made = c.compile(t)
	c.made[t] = made
	return made
}

func (c *Compiler) compile(t reflect.Type) readFunc {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return readTime
	case t.Kind() == reflect.Pointer:
		return c.pointer(t)
	case t.Kind() == reflect.Interface:
		if t == reflect.TypeFor[any]() {
			return readAny
		}
		return refuse
	case reads[json.Unmarshaler](t):
		if t.Name() == "" { // its methods are those of an embedded type, which encoding/json does not always call
			return refuse
		}
		return readItself
	case reads[encoding.TextUnmarshaler](t):
		return refuse
	}
	switch t.Kind() {
	case reflect.Struct:
		if table := c.table(t); table != nil {
			return table.read
		}
	case reflect.String:
		if t != reflect.TypeFor[json.Number]() {
			return readString
		}
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return readUint
	case reflect.Float32, reflect.Float64:
		return readFloat
	case reflect.Slice:
		return c.slice(t)
	case reflect.Map:
		return c.mapOf(t)
	}
	return refuse
}

func (c *Compiler) pointer(t reflect.Type) readFunc {
	if t.Name() != "" {
		return refuse
	}
	elem, read := t.Elem(), c.reader(t.Elem())
	return func(r *reader, v reflect.Value) bool {
		if r.null() {
			return true
		}
		p := reflect.New(elem)
		if !read(r, p.Elem()) {
			return false
		}
		v.Set(p)
		return true
	}
}

func (c *Compiler) slice(t reflect.Type) readFunc {
	switch {
	case t == reflect.TypeFor[[]byte]():
		return readBytes
	case t.Elem().Kind() == reflect.Uint8:
		return refuse
	}
	read := c.reader(t.Elem())
	return func(r *reader, v reflect.Value) bool {
		if r.null() {
			return true
		}
		n := 0
		ok := r.elements(func() bool {
			if n == v.Cap() { // twice as large: a long list is copied less often than with append
				v.Grow(max(n, 1))
			}
			v.SetLen(n + 1)
			n++
			return read(r, v.Index(n-1))
		})
		if ok && n == 0 {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		return ok
	}
}

func (c *Compiler) mapOf(t reflect.Type) readFunc {
	switch key := t.Key(); {
	case t == reflect.TypeFor[map[string]string]():
		return readStringMap
	case key.Kind() != reflect.String || reads[encoding.TextUnmarshaler](key):
		return refuse
	}
	read := c.reader(t.Elem())
	return func(r *reader, v reflect.Value) bool {
		if r.null() {
			return true
		}
		m := reflect.MakeMap(t)
		v.Set(m)
		return r.members(func(name string) bool {
			key := reflect.ValueOf(name).Convert(t.Key())
			value := reflect.New(t.Elem()).Elem()
			if m.MapIndex(key).IsValid() || !read(r, value) {
				return false
			}
			m.SetMapIndex(key, value)
			return true
		})
	}
}

// table describes how a struct is decoded.
type table struct {
	fields []field
	byName map[string]int // index in fields
}

type field struct {
	name string
	at   []int
	read readFunc
}

// mostFields limits the fields of a struct.
const mostFields = 128

// table returns the table of a struct, or nil if this package does not decode it. The caller holds mu.
func (c *Compiler) table(t reflect.Type) *table {
	all := jsonfield.Of(t, nil)
	if len(all) > mostFields {
		return nil
	}
	made := &table{fields: make([]field, len(all)), byName: make(map[string]int, len(all))}
	folded := make(map[string]struct{}, len(all))
	for i, f := range all {
		if !isPlainName(f.Name) {
			return nil
		}
		folded[strings.ToLower(f.Name)] = struct{}{}
		made.byName[f.Name] = i
		made.fields[i] = field{name: f.Name, at: f.At, read: refuse}
		if !f.AsString && direct(t, f.At) {
			made.fields[i].read = c.reader(f.Go.Type)
		}
	}
	if len(folded) < len(all) {
		return nil
	}
	return made
}

// isPlainName reports whether encoding/json uses the name in a tag unchanged.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-./$:", rune(c)) {
			return false
		}
	}
	return name != ""
}

// direct reports whether a field is reached without pointers and without unexported fields.
func direct(t reflect.Type, at []int) bool {
	for _, i := range at {
		if t.Kind() != reflect.Struct || !t.Field(i).IsExported() {
			return false
		}
		t = t.Field(i).Type
	}
	return true
}
