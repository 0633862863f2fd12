// Package printer makes table columns from the struct tags of Go types:
//
//	type WidgetSpec struct {
//		Size  int32  `json:"size" print:"Size"`
//		Color string `json:"color,omitempty" print:"Color,wide"`
//	}
//
// The tag is the name of the column. ",wide" after the name means that the column is only in wide tables (kubectl get -o wide, a
// priority of 1). Fields of nested structs may have tags too. Columns are in the order of the fields.
//
// The type of the field determines the type of the column, see
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns:
//
//	integer   whole numbers
//	number    floating-point numbers
//	boolean   bools
//	date      metav1.Time, metav1.MicroTime, time.Time: shown as the time since then, such as "3d4h"
//	string    strings, lists of the above (joined by commas), and types with their own text form: metav1.Duration,
//	          resource.Quantity, intstr.IntOrString, and types that implement encoding.TextMarshaler or fmt.Stringer
//
// The column of a pointer shows the value that it points to. An absent value (a nil pointer, a zero time) is an empty cell, and
// is left out of a list.
package printer

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Tag is the key of the struct tag.
const Tag = "print"

const misspeltTag = "Print" // an error, so that a column with this tag is not silently missing

// Column describes a column of a table.
type Column struct {
	Name     string // the name in the tag
	Type     string // "string", "integer", "number", "boolean" or "date"
	Priority int32  // 1 for columns of wide tables only, otherwise 0
	// Path is the path of the field in JSON, such as "spec.size".
	Path string
	// Declaring is the struct that has the field, and Field is the Go name of the field.
	Declaring reflect.Type
	Field     string

	at   []step
	cell func(v reflect.Value, now time.Time) any
}

// step is the index that leads from a struct to one of its fields.
type step []int

// Table holds the columns of a Go type. The zero Table has none. A Table is immutable and may be used concurrently.
type Table struct {
	object  reflect.Type
	columns []Column
}

// Of returns the Table of a struct type, which has no columns if the type has no tags. It returns an error for a tag without a
// name, with unknown options, or with the name of another column, and for a tag at a field that a cell cannot show. The error
// names the field. Of uses reflection and caches nothing.
func Of(t reflect.Type) (Table, error) {
	tags := jsonfield.Seeker{Match: func(f reflect.StructField) bool {
		_, tagged := f.Tag.Lookup(Tag)
		_, misspelt := f.Tag.Lookup(misspeltTag)
		return tagged || misspelt
	}}
	if !tags.Finds(t) {
		return Table{object: t}, nil
	}
	w := walker{object: t, names: map[string]string{}}
	w.visit(t, "", nil, nil)
	if w.err != nil {
		return Table{}, w.err
	}
	return Table{t, w.columns}, nil
}

// Columns returns the columns. The slice is shared and must not be changed.
func (t Table) Columns() []Column { return t.columns }

// Cells appends the cells of an object to dst, one for each column: a string, int64, uint64, float64 or bool, or nil for an
// absent value. object must be a non-nil pointer to the type of the Table. now is the time that dates are compared with.
func (t Table) Cells(dst []any, object any, now time.Time) ([]any, error) {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != t.object {
		return dst, fmt.Errorf("printer: %T is no *%v", object, t.object)
	}
	for _, c := range t.columns {
		if f, ok := c.find(v.Elem()); ok {
			dst = append(dst, c.cell(f, now))
		} else {
			dst = append(dst, nil)
		}
	}
	return dst, nil
}

// find returns the field of v without pointers. It returns false if a pointer is nil.
func (c Column) find(v reflect.Value) (reflect.Value, bool) {
	for _, s := range c.at {
		for _, i := range s {
			var ok bool
			if v, ok = follow(v); !ok {
				return v, false
			}
			v = v.Field(i)
		}
	}
	return follow(v)
}

func follow(v reflect.Value) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, false
		}
		v = v.Elem()
	}
	return v, true
}

// walker collects the columns of a type.
type walker struct {
	object  reflect.Type
	columns []Column
	names   map[string]string // path of each column by its name in lower case
	err     error             // the first error
}

func (w *walker) visit(t reflect.Type, path string, at []step, within []reflect.Type) {
	for _, outer := range within {
		if outer == t {
			w.recursive(t, path)
			return
		}
	}
	within = append(within[:len(within):len(within)], t)
	others := func(declaring reflect.Type, f reflect.StructField, inlined bool) {
		if tag, ok := f.Tag.Lookup(Tag); ok {
			w.refuse(path+f.Name, "the tag print:%q is at a field that JSON does not have", tag)
		}
	}
	for _, f := range jsonfield.Of(t, others) {
		here := append(at[:len(at):len(at)], f.At)
		inner := jsonfield.Dereference(f.Go.Type)
		tag, tagged := f.Go.Tag.Lookup(Tag)
		other, misspelt := f.Go.Tag.Lookup(misspeltTag)
		switch {
		case misspelt:
			w.refuse(path+f.Name, "the tag Print:%q is written print:%q", other, other)
		case tagged:
			w.add(f, path+f.Name, tag, inner, here)
		case inner.Kind() == reflect.Struct && !opaque(inner):
			w.visit(inner, path+f.Name+".", here, within)
		}
	}
}

// opaque reports whether the fields of a struct must be skipped: it is a type of apimachinery, or its JSON does not consist of
// its fields. A String method does not affect the JSON.
func opaque(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.TypeMeta]():
		return true
	}
	for _, marshaler := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if reflect.PointerTo(t).Implements(marshaler) {
			return true
		}
	}
	return false
}

// recursive records an error for tags in a struct that contains itself, because it would have infinitely many columns.
func (w *walker) recursive(t reflect.Type, path string) {
	for i := range t.NumField() {
		if tag, ok := t.Field(i).Tag.Lookup(Tag); ok {
			w.refuse(path+t.Field(i).Name, "the tag print:%q is in a struct that contains itself", tag)
		}
	}
}

func (w *walker) refuse(path, format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("field %s of %v: %s", path, w.object, fmt.Sprintf(format, args...))
	}
}

func (w *walker) add(f jsonfield.Field, path, tag string, inner reflect.Type, at []step) {
	name, options, _ := strings.Cut(tag, ",")
	c := Column{Name: name, Path: path, Declaring: f.Declaring, Field: f.Go.Name, at: at}
	if name == "" || strings.TrimSpace(name) != name {
		w.refuse(path, `the tag print:%q needs a name first, without spaces around it, as in print:"Size" or print:"Size,wide"`, tag)
		return
	}
	switch options {
	case "":
	case "wide":
		c.Priority = 1
	default:
		w.refuse(path, "the tag print:%q has the option %q; there is only wide", tag, options)
		return
	}
	key := strings.ToLower(name)
	if other, ok := w.names[key]; ok || key == "name" || key == "age" {
		if !ok {
			other = "every table"
		}
		w.refuse(path, "the tag print:%q names a column that %s has already; choose another name", tag, other)
		return
	}
	w.names[key] = path
	made := cellOf(inner)
	if made == nil && inner.Kind() == reflect.Slice {
		made = listCell(inner)
	}
	if made == nil {
		w.refuse(path, "the tag print:%q is at a %v, which no cell can show; put it at a string, a number, a bool, a time or a list of them, or make the column with Columns of server.KindOptions", tag, f.Go.Type)
		return
	}
	c.Type, c.cell = made.kind, made.cell
	w.columns = append(w.columns, c)
}

// shown describes how values of a type are shown.
type shown struct {
	kind string
	cell func(v reflect.Value, now time.Time) any
}

// cellOf returns how values of a type other than a pointer or a list are shown, or nil if they cannot be shown.
func cellOf(t reflect.Type) *shown {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return date(func(v reflect.Value) time.Time { return v.Interface().(metav1.Time).Time })
	case reflect.TypeFor[metav1.MicroTime]():
		return date(func(v reflect.Value) time.Time { return v.Interface().(metav1.MicroTime).Time })
	case reflect.TypeFor[time.Time]():
		return date(func(v reflect.Value) time.Time { return v.Interface().(time.Time) })
	case reflect.TypeFor[metav1.Duration]():
		return &shown{"string", func(v reflect.Value, _ time.Time) any { return v.Interface().(metav1.Duration).Duration.String() }}
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[fmt.Stringer]()):
		return &shown{"string", func(v reflect.Value, _ time.Time) any { return addressed(v).(fmt.Stringer).String() }}
	case pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &shown{"string", func(v reflect.Value, _ time.Time) any {
			text, err := addressed(v).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return nil
			}
			return string(text)
		}}
	}
	switch k := t.Kind(); {
	case k == reflect.String:
		return &shown{"string", func(v reflect.Value, _ time.Time) any { return v.String() }}
	case k == reflect.Bool:
		return &shown{"boolean", func(v reflect.Value, _ time.Time) any { return v.Bool() }}
	case k >= reflect.Int && k <= reflect.Int64:
		return &shown{"integer", func(v reflect.Value, _ time.Time) any { return v.Int() }}
	case k >= reflect.Uint && k <= reflect.Uint64:
		return &shown{"integer", func(v reflect.Value, _ time.Time) any { return v.Uint() }}
	case k == reflect.Float32 || k == reflect.Float64:
		return &shown{"number", func(v reflect.Value, _ time.Time) any { return v.Float() }}
	}
	return nil
}

// addressed returns a pointer to a copy of v. v need not be addressable.
func addressed(v reflect.Value) any {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}

func date(at func(reflect.Value) time.Time) *shown {
	return &shown{"date", func(v reflect.Value, now time.Time) any {
		t := at(v)
		if t.IsZero() {
			return nil
		}
		return duration.HumanDuration(now.Sub(t))
	}}
}

// listCell shows a list as its elements, joined by commas.
func listCell(list reflect.Type) *shown {
	element := cellOf(jsonfield.Dereference(list.Elem()))
	if element == nil || list.Elem().Kind() == reflect.Uint8 {
		return nil
	}
	return &shown{"string", func(v reflect.Value, now time.Time) any {
		var words []string
		for i := range v.Len() {
			e, ok := follow(v.Index(i))
			if !ok {
				continue
			}
			if word := element.cell(e, now); word != nil {
				words = append(words, fmt.Sprint(word))
			}
		}
		return strings.Join(words, ",")
	}}
}
