package roundtrip

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
)

const (
	mostTries = 400  // the number of values that are tried for a field
	mostItems = 1000 // the number of items or entries that are added to a list or map to reach its minimum
)

// rules has the rules of struct types, by type. It is immutable once the checker is made.
type rules map[reflect.Type][]member

// member is a field of a struct.
type member struct {
	at    []int // the index of the field, through embedded structs
	place *place
}

// place has the rules for the value of a field, or for the elements of a list or map.
type place struct {
	field  constraint.Field
	name   string            // the path of the value in errors about a holder
	holder reflect.Type      // a struct whose only field is this one, or a list with this element
	own    *constraint.Rules // of holder; nil if there are no rules here or below
	elem   *place            // of a list or map, else nil
}

// add compiles the rules of the struct t and of the types inside it.
func (r rules) add(t reflect.Type) {
	if _, known := r[t]; known {
		return
	}
	r[t] = nil // for a type that contains itself
	var members []member
	for _, f := range jsonfield.Of(t, nil) {
		if f.Go.IsExported() {
			p := r.place(f.Go)
			p.name = f.Name
			p.hold(f.Go)
			members = append(members, member{f.At, p})
		}
	}
	r[t] = members
}

// place compiles the rules for a field, without its holder.
func (r rules) place(f reflect.StructField) *place {
	p := &place{}
	p.field, _ = constraint.ParseField(f) // a registered kind has no wrong tags
	t, tag := f.Type, f.Tag
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if jsonfield.Marshals(t) {
		return p
	}
	switch t.Kind() {
	case reflect.Struct:
		r.add(t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			p.elem = r.elements(t.Elem(), tag.Get("items"))
		}
	case reflect.Map:
		p.elem = r.elements(t.Elem(), tag.Get("additionalProperties"))
	}
	return p
}

// elements compiles the rules for the elements of a list or map. A list type that contains itself without a struct has no rules.
func (r rules) elements(t reflect.Type, tags string) *place {
	if t.Name() != "" && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		if _, seen := r[t]; seen {
			return nil
		}
		r[t] = nil
		defer delete(r, t)
	}
	p := r.place(reflect.StructField{Name: "V", Type: t, Tag: reflect.StructTag(tags)})
	p.name = "V[0]"
	p.hold(reflect.StructField{Name: "V", Type: reflect.SliceOf(t), Tag: reflect.StructTag("items:" + strconv.Quote(tags))})
	return p
}

// hold makes the holder, a struct with the field f alone.
func (p *place) hold(f reflect.StructField) {
	p.holder = reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})
	p.own, _ = constraint.Of(p.holder)
}

// errors returns the errors of v itself, and those of its elements that are duplicates. It leaves out errors of values inside v.
func (p *place) errors(v reflect.Value) (out field.ErrorList) {
	if p.own == nil {
		return nil
	}
	holder := reflect.New(p.holder)
	if held := holder.Elem().Field(0); held.Type() != v.Type() {
		held.Set(reflect.Append(held, v))
	} else {
		held.Set(v)
	}
	for _, err := range p.own.Validate(holder.Interface()) {
		rest, own := strings.CutPrefix(err.Field, p.name)
		if own && (rest == "" || err.Type == field.ErrorTypeDuplicate && p.index(err) >= 0) {
			out = append(out, err)
		}
	}
	return out
}

// index returns the index of the list element that is a duplicate, or -1 for other errors.
func (p *place) index(err *field.Error) int {
	text, isIndex := strings.CutPrefix(err.Field, p.name+"[")
	text, ends := strings.CutSuffix(text, "]")
	i, no := strconv.Atoi(text)
	if !isIndex || !ends || no != nil {
		return -1
	}
	return i
}

// fitter changes the values of a random object so that they obey the rules. Values that obey them are kept.
type fitter struct {
	rules rules
	c     randfill.Continue
}

// fit changes v, which must be settable.
func (f *fitter) fit(p *place, v reflect.Value) {
	if !v.CanSet() {
		return
	}
	if p.field.Required {
		f.present(p, v)
	}
	in := v
	for in.Kind() == reflect.Pointer {
		if in.IsNil() {
			return
		}
		in = in.Elem()
	}
	switch in.Kind() {
	case reflect.Struct:
		f.members(in)
	case reflect.Slice, reflect.Array:
		f.list(p, v, in)
	case reflect.Map:
		f.mapping(p, v, in)
	default:
		f.scalar(p, v, in)
	}
}

func (f *fitter) members(v reflect.Value) {
	for _, m := range f.rules[v.Type()] {
		if value, err := v.FieldByIndexErr(m.at); err == nil { // otherwise an embedded pointer is nil
			f.fit(m.place, value)
		}
	}
}

// present gives a required field a value.
func (f *fitter) present(p *place, v reflect.Value) {
	absent := func() bool {
		return slices.ContainsFunc(p.errors(v), func(e *field.Error) bool { return e.Type == field.ErrorTypeRequired })
	}
	for try := 0; try < mostTries && absent(); try++ {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(f.filled(v.Type().Elem()).Addr())
		case reflect.Slice:
			v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), f.filled(v.Type().Elem())))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(f.filled(v.Type().Key()), f.filled(v.Type().Elem()))
		default:
			v.Set(f.filled(v.Type()))
		}
	}
}

// filled returns a new value of type t, which need not obey the rules.
func (f *fitter) filled(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	f.c.Fill(v.Interface())
	dropNulls(v)
	return v.Elem()
}

// list changes the elements of in, which is v without pointers, removes duplicates, and changes the number of elements.
func (f *fitter) list(p *place, v, in reflect.Value) {
	if p.elem == nil {
		return
	}
	for i := range in.Len() {
		f.fit(p.elem, in.Index(i))
	}
	if in.Kind() != reflect.Slice || len(p.errors(v)) == 0 {
		return
	}
	f.distinct(p, v, in)
	if high := p.field.MaxItems; high != nil && int64(in.Len()) > *high {
		in.SetLen(int(*high))
	}
	for try := 0; p.field.MinItems != nil && int64(in.Len()) < min(*p.field.MinItems, mostItems) && try < mostTries+mostItems; try++ {
		elem := f.filled(in.Type().Elem())
		f.fit(p.elem, elem)
		in.Set(reflect.Append(in, elem))
		f.distinct(p, v, in)
	}
}

// distinct removes the elements that are in the list twice.
func (f *fitter) distinct(p *place, v, in reflect.Value) {
	errs := p.errors(v)
	for i := len(errs) - 1; i >= 0; i-- { // in the order of the list
		if at := p.index(errs[i]); errs[i].Type == field.ErrorTypeDuplicate && at >= 0 {
			in.Set(reflect.AppendSlice(in.Slice3(0, at, at), in.Slice(at+1, in.Len())))
		}
	}
}

// mapping changes the values of the map in, which is v without pointers, and the number of its entries. The order of the keys does
// not depend on that of the map, so that a seed always makes the same object.
func (f *fitter) mapping(p *place, v, in reflect.Value) {
	if p.elem == nil || in.IsNil() {
		return
	}
	keys := in.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys {
		value := reflect.New(in.Type().Elem()).Elem()
		value.Set(in.MapIndex(key))
		f.fit(p.elem, value)
		in.SetMapIndex(key, value)
	}
	if len(p.errors(v)) == 0 {
		return
	}
	for i := 0; i < len(keys) && p.field.MaxProperties != nil && int64(in.Len()) > *p.field.MaxProperties; i++ {
		in.SetMapIndex(keys[i], reflect.Value{})
	}
	for try := 0; p.field.MinProperties != nil && int64(in.Len()) < min(*p.field.MinProperties, mostItems) && try < mostTries+mostItems; try++ {
		value := f.filled(in.Type().Elem())
		f.fit(p.elem, value)
		in.SetMapIndex(f.filled(in.Type().Key()), value)
	}
}

// scalar replaces the text or number in, which is v without pointers, unless it obeys the rules. If no value is found that does,
// the field is left out if that obeys them, and otherwise keeps its value.
func (f *fitter) scalar(p *place, v, in reflect.Value) {
	if len(p.errors(v)) == 0 {
		return
	}
	zero := reflect.Zero(v.Type())
	mayBeAbsent := len(p.errors(zero)) == 0
	if mayBeAbsent && v.Kind() != reflect.Pointer && f.c.Intn(4) == 0 {
		v.Set(zero)
		return
	}
	was := reflect.New(in.Type()).Elem()
	was.Set(in)
	for try := range mostTries {
		if !f.propose(p, in, try) {
			break
		}
		if len(p.errors(v)) == 0 {
			return
		}
	}
	in.Set(was)
	if mayBeAbsent {
		v.Set(zero)
	}
}

// propose sets v to a value that is likely to obey the rules. It returns false for types that it has no values for.
func (f *fitter) propose(p *place, v reflect.Value, try int) bool {
	switch enum := p.field.Enum; {
	case len(enum) > 0:
		v.Set(reflect.ValueOf(enum[f.c.Intn(len(enum))]).Convert(v.Type()))
	case v.Kind() == reflect.String:
		v.SetString(textFor(f.c.Rand, &p.field, try))
	case v.CanInt():
		bits := v.Type().Bits()
		low, high := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), uint(bits-1))), new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		if p.field.Format == "int32" {
			low, high = big.NewInt(math.MinInt32), big.NewInt(math.MaxInt32+1)
		}
		v.SetInt(f.whole(p, low, high).Int64())
	case v.CanUint():
		high := new(big.Int).Lsh(big.NewInt(1), uint(v.Type().Bits()))
		if p.field.Format == "int32" {
			high = big.NewInt(math.MaxInt32 + 1)
		}
		v.SetUint(f.whole(p, new(big.Int), high).Uint64())
	case v.CanFloat():
		v.SetFloat(f.fraction(p))
	default:
		return false
	}
	return true
}

// whole returns an integer that is at least low and less than high, and obeys the rules if one does. It returns the bounds more
// often than other numbers.
func (f *fitter) whole(p *place, low, high *big.Int) *big.Int {
	one := big.NewInt(1)
	number := func(n interface{ String() string }) *big.Int {
		out, _ := new(big.Int).SetString(n.String(), 10) // the tag is a number that fits an integer
		return out
	}
	if p.field.Minimum != "" {
		if low = number(p.field.Minimum); p.field.ExclusiveMinimum {
			low.Add(low, one)
		}
	}
	if p.field.Maximum != "" {
		if high = number(p.field.Maximum); !p.field.ExclusiveMaximum {
			high.Add(high, one)
		}
	}
	unit := one
	if p.field.MultipleOf != "" {
		unit = number(p.field.MultipleOf)
	}
	// The result is unit times a number that is at least first and at most last.
	first := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(low), unit))
	last := new(big.Int).Div(new(big.Int).Sub(high, one), unit)
	n := first
	if span := new(big.Int).Sub(last, first); span.Sign() > 0 {
		switch f.c.Intn(8) {
		case 0:
		case 1:
			n = last
		default:
			n = new(big.Int).Add(first, new(big.Int).Rand(f.c.Rand, span.Add(span, one)))
		}
	}
	return n.Mul(n, unit)
}

// fraction returns a number within the bounds.
func (f *fitter) fraction(p *place) float64 {
	const far = 1e6 // numbers without a bound are at most so far from the other bound, or from zero
	low, errLow := p.field.Minimum.Float64()
	high, errHigh := p.field.Maximum.Float64()
	switch {
	case errLow != nil && errHigh != nil:
		low, high = -far, far
	case errLow != nil:
		low = high - far
	case errHigh != nil:
		high = low + far
	}
	unit, err := p.field.MultipleOf.Float64()
	if err != nil {
		return low + f.c.Float64()*(high-low)
	}
	first, last := math.Ceil(low/unit), math.Floor(high/unit)
	return unit * min(first+math.Floor(f.c.Float64()*(last-first+1)), last)
}
