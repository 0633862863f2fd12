package runtime

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeepCopy returns a copy of in that shares no memory which can be changed. Pointers, slices, maps and interfaces are followed;
// nil stays nil, and empty stays empty. If a type inside in has a generated DeepCopyInto or DeepCopy method, that method copies
// its values. Unexported fields are copied shallowly, as in a struct assignment, and so are map keys, channels and functions.
// Types may be recursive; a value that contains itself must not be passed.
//
// The DeepCopyObject, DeepCopyInto and DeepCopy methods of a type may be written as a call of DeepCopy, unless the type is not an
// Object and has pointers in unexported fields. DeepCopy may run while other goroutines read in.
func DeepCopy[T any](in T) T {
	p := planOf(reflect.TypeFor[T]())
	if p.plain {
		return in
	}
	var out T
	p.root(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&in).Elem())
	return out
}

// copyFunc sets dst, a settable zero or used value, to a deep copy of src. Both are addressable.
type copyFunc func(dst, src reflect.Value)

// plan describes how values of one type are copied.
type plan struct {
	typ    reflect.Type
	plain  bool        // an assignment is enough
	hidden bool        // an unexported field may hold memory that the copy would share if parts copied the value
	method copyFunc    // calls the type's own method; nil if it has none
	parts  copyFunc    // copies by reflection
	root   copyFunc    // copies an outermost value
	elem   *plan       // the plan of a pointer's element
	fields []fieldCopy // the fields of a struct that an assignment does not copy
}

type fieldCopy struct {
	index    int
	plan     *plan
	embedded bool // an unexported embedded struct: its exported fields can be set, the struct itself cannot
}

// copy copies a value that is inside another one.
func (p *plan) copy(dst, src reflect.Value) {
	switch {
	case p.plain:
		dst.Set(src)
	case p.method != nil:
		p.method(dst, src)
	default:
		p.parts(dst, src)
	}
}

// copyFields completes dst, which was assigned from src.
func (p *plan) copyFields(dst, src reflect.Value) {
	for _, f := range p.fields {
		if f.embedded {
			f.plan.copyFields(dst.Field(f.index), src.Field(f.index))
		} else {
			f.plan.copy(dst.Field(f.index), src.Field(f.index))
		}
	}
}

// setRoot chooses how an outermost value is copied. The type's own method is avoided, so that this method may be written as a
// call of DeepCopy, unless only the method can copy everything.
func (p *plan) setRoot() {
	own := func(p *plan) copyFunc {
		switch {
		case p.plain:
			return func(dst, src reflect.Value) { dst.Set(src) }
		case p.method != nil && p.hidden && !reflect.PointerTo(p.typ).Implements(reflect.TypeFor[Object]()):
			return p.method
		}
		return p.parts
	}
	p.root = own(p)
	if p.elem != nil {
		elem := own(p.elem)
		p.root = func(dst, src reflect.Value) { copyPointer(dst, src, elem) }
	}
}

// plans caches the plan of each type: reflect.Type to *plan. It is the only package variable that changes. A plan depends on its
// type alone, and types do not change while a program runs. DeepCopyObject has no parameter that could carry the cache.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	c := compiler{}
	p := c.plan(t)
	for _, made := range c {
		made.setRoot()
	}
	for t, made := range c {
		plans.LoadOrStore(t, made)
	}
	return p
}

// compiler holds the plans that one call of planOf makes. The plans of a recursive type refer to each other, so they are
// published when all of them are complete.
type compiler map[reflect.Type]*plan

func (c compiler) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := c[t]; ok {
		return p
	}
	p := &plan{typ: t}
	c[t] = p
	switch t.Kind() {
	case reflect.Pointer:
		p.elem = c.plan(t.Elem())
		p.parts = func(dst, src reflect.Value) { copyPointer(dst, src, p.elem.copy) }
	case reflect.Slice:
		p.parts = copySlice(t, c.plan(t.Elem()))
	case reflect.Map:
		p.parts = copyMap(t, c.plan(t.Elem()))
	case reflect.Interface:
		p.parts = copyInterface
	case reflect.Array:
		elem := c.plan(t.Elem())
		p.plain, p.hidden, p.parts = elem.plain, elem.hidden, copyArray(elem)
	case reflect.Struct:
		c.planStruct(p)
	default:
		p.plain = true
	}
	if !p.plain {
		p.method = methodOf(t)
	}
	return p
}

func (c compiler) planStruct(p *plan) {
	switch p.typ {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		p.plain = true // the time.Location in these types is shared by design
		return
	}
	for i := range p.typ.NumField() {
		f := p.typ.Field(i)
		fp := c.plan(f.Type)
		switch {
		case fp.plain:
		case f.IsExported():
			p.fields = append(p.fields, fieldCopy{index: i, plan: fp})
			p.hidden = p.hidden || fp.hidden && fp.method == nil
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			p.fields = append(p.fields, fieldCopy{index: i, plan: fp, embedded: true})
			p.hidden = p.hidden || fp.hidden
		default:
			p.hidden = true
		}
	}
	p.plain = len(p.fields) == 0 && !p.hidden
	p.parts = func(dst, src reflect.Value) {
		dst.Set(src)
		p.copyFields(dst, src)
	}
}

// methodOf returns a function that calls the copy method of t: DeepCopyInto(*T), or DeepCopy() returning T or *T. It returns nil
// if t has neither.
func methodOf(t reflect.Type) copyFunc {
	switch t { // the most common types, without the cost of a call by reflection
	case reflect.TypeFor[metav1.ObjectMeta]():
		return func(dst, src reflect.Value) {
			src.Addr().Interface().(*metav1.ObjectMeta).DeepCopyInto(dst.Addr().Interface().(*metav1.ObjectMeta))
		}
	case reflect.TypeFor[resource.Quantity]():
		return func(dst, src reflect.Value) {
			*dst.Addr().Interface().(*resource.Quantity) = src.Addr().Interface().(*resource.Quantity).DeepCopy()
		}
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil // the element of the pointer, or the content of the interface, decides
	}
	ptr := reflect.PointerTo(t)
	if m, ok := ptr.MethodByName("DeepCopyInto"); ok && m.Type.NumIn() == 2 && m.Type.In(1) == ptr && m.Type.NumOut() == 0 {
		return func(dst, src reflect.Value) { m.Func.Call([]reflect.Value{src.Addr(), dst.Addr()}) }
	}
	m, ok := ptr.MethodByName("DeepCopy")
	if !ok || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 {
		return nil
	}
	switch m.Type.Out(0) {
	case t:
		return func(dst, src reflect.Value) { dst.Set(m.Func.Call([]reflect.Value{src.Addr()})[0]) }
	case ptr:
		return func(dst, src reflect.Value) {
			if out := m.Func.Call([]reflect.Value{src.Addr()})[0]; !out.IsNil() {
				dst.Set(out.Elem())
			}
		}
	}
	return nil
}

func copyPointer(dst, src reflect.Value, elem copyFunc) {
	if src.IsNil() {
		dst.SetZero()
		return
	}
	n := reflect.New(src.Type().Elem())
	elem(n.Elem(), src.Elem())
	dst.Set(n.Convert(dst.Type()))
}

func copySlice(t reflect.Type, elem *plan) copyFunc {
	return func(dst, src reflect.Value) {
		if src.IsNil() {
			dst.SetZero()
			return
		}
		n := reflect.MakeSlice(t, src.Len(), src.Len())
		if elem.plain {
			reflect.Copy(n, src)
		} else {
			for i := range src.Len() {
				elem.copy(n.Index(i), src.Index(i))
			}
		}
		dst.Set(n)
	}
}

func copyArray(elem *plan) copyFunc {
	return func(dst, src reflect.Value) {
		for i := range src.Len() {
			elem.copy(dst.Index(i), src.Index(i))
		}
	}
}

func copyMap(t reflect.Type, elem *plan) copyFunc {
	return func(dst, src reflect.Value) {
		if src.IsNil() {
			dst.SetZero()
			return
		}
		n := reflect.MakeMapWithSize(t, src.Len())
		for it := src.MapRange(); it.Next(); {
			if elem.plain {
				n.SetMapIndex(it.Key(), it.Value())
				continue
			}
			from, to := reflect.New(elem.typ).Elem(), reflect.New(elem.typ).Elem()
			from.Set(it.Value())
			elem.copy(to, from)
			n.SetMapIndex(it.Key(), to)
		}
		dst.Set(n)
	}
}

func copyInterface(dst, src reflect.Value) {
	if src.IsNil() {
		dst.SetZero()
		return
	}
	p := planOf(src.Elem().Type())
	if p.plain {
		dst.Set(src)
		return
	}
	from, to := reflect.New(p.typ).Elem(), reflect.New(p.typ).Elem()
	from.Set(src.Elem())
	p.copy(to, from)
	dst.Set(to)
}
