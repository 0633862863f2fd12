package patch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// comparer compares two objects by a plan. It writes the differences into trace, which can be the key of a map; [readTrace]
// converts it to sets. The objects must fit (see fits).
type comparer struct {
	trace  []byte
	unsure bool // the result of structured-merge-diff is not certain

	sum, depth int // sum and depth of fit
}

// follow returns the value that n's pointers lead to. The result is false for null.
func follow(n *node, v reflect.Value) (reflect.Value, bool) {
	for range n.pointers {
		if v.IsNil() {
			return v, false
		}
		v = v.Elem()
	}
	switch n.form {
	case aMap, aList, bytes64:
		return v, !v.IsNil()
	case aTime:
		return v, !pointerTo[metav1.Time](v).IsZero()
	case aMicroTime:
		return v, !pointerTo[metav1.MicroTime](v).IsZero()
	}
	return v, true
}

// compare writes the changes from l to r. One of them may be the zero Value, which means that there is no value.
func (c *comparer) compare(n *node, l, r reflect.Value) {
	if n.form == theEntries { // only the entries of l have an effect
		if l.IsValid() {
			c.trace = append(c.trace, removed)
		}
		return
	}
	switch {
	case n.atomic || n.form < aStruct:
		c.leaf(n, l, r)
	case n.form == aStruct:
		c.structs(n, l, r)
	case n.form == aMap:
		c.maps(n, l, r)
	case n.form == aList:
		c.lists(n, l, r)
	}
}

// leaf compares values that are managed as a whole.
func (c *comparer) leaf(n *node, l, r reflect.Value) {
	if !c.oneSide(l, r) && !c.same(n, l, r) {
		c.trace = append(c.trace, modified)
	}
}

// oneSide writes that the value was added or removed, and reports whether it was.
func (c *comparer) oneSide(l, r reflect.Value) bool {
	switch {
	case !l.IsValid():
		c.trace = append(c.trace, added)
	case !r.IsValid():
		c.trace = append(c.trace, removed)
	default:
		return false
	}
	return true
}

// nulls compares two values without members: absent, null or empty ones.
func (c *comparer) nulls(l, r reflect.Value, lHas, rHas bool) {
	if !c.oneSide(l, r) && lHas != rHas {
		c.trace = append(c.trace, modified)
	}
}

func (c *comparer) structs(n *node, l, r reflect.Value) {
	lv, lHas := present(n, l)
	rv, rHas := present(n, r)
	any := false
	for i, fields := 0, n.structure(); i < len(fields); i++ {
		f := &fields[i]
		var lf, rf reflect.Value
		var lGiven, rGiven bool
		if lHas {
			lf, lGiven = f.of(lv)
		}
		if rHas {
			rf, rGiven = f.of(rv)
		}
		if lGiven || rGiven {
			any = true
			c.below(f.node, lf, rf, f.name)
		}
	}
	if !any {
		c.nulls(l, r, lHas, rHas)
		return
	}
	c.oneSide(l, r)
}

// present calls follow, unless v is the zero Value.
func present(n *node, v reflect.Value) (reflect.Value, bool) {
	if !v.IsValid() {
		return v, false
	}
	return follow(n, v)
}

// below compares the values of a field or member. It writes nothing if they are equal.
func (c *comparer) below(n *node, l, r reflect.Value, name string) {
	start := len(c.trace)
	c.trace = appendText(append(c.trace, toField), name)
	c.inside(n, l, r, start)
}

// inside compares the values that the last step of the trace leads to. The step begins at start, and is removed if the values are
// equal.
func (c *comparer) inside(n *node, l, r reflect.Value, start int) {
	end := len(c.trace)
	c.compare(n, l, r)
	if len(c.trace) == end {
		c.trace = c.trace[:start]
		return
	}
	c.trace = append(c.trace, back)
}

func (c *comparer) maps(n *node, l, r reflect.Value) {
	lv, lHas := present(n, l)
	rv, rHas := present(n, r)
	if (!lHas || lv.Len() == 0) && (!rHas || rv.Len() == 0) {
		c.nulls(l, r, lHas, rHas)
		return
	}
	if lHas && rHas && lv.Len() == rv.Len() && c.sameTexts(lv, rv) {
		return
	}
	var names []string
	for _, side := range []reflect.Value{lv, rv} {
		if side.IsValid() {
			for members := side.MapRange(); members.Next(); {
				names = append(names, members.Key().String())
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		var lm, rm reflect.Value
		if lHas {
			lm = lv.MapIndex(reflect.ValueOf(name).Convert(lv.Type().Key()))
		}
		if rHas {
			rm = rv.MapIndex(reflect.ValueOf(name).Convert(rv.Type().Key()))
		}
		c.below(n.item, lm, rm, name)
	}
	c.oneSide(l, r)
}

// sameTexts reports whether two maps of the same length are equal maps of strings. It is false for other maps.
func (c *comparer) sameTexts(l, r reflect.Value) bool {
	lTexts, ok := l.Interface().(map[string]string)
	if !ok {
		return false
	}
	rTexts := r.Interface().(map[string]string)
	for name, text := range lTexts {
		if other, ok := rTexts[name]; !ok || other != text {
			return false
		}
	}
	return true
}

func (c *comparer) lists(n *node, l, r reflect.Value) {
	lv, lHas := present(n, l)
	rv, rHas := present(n, r)
	if (!lHas || lv.Len() == 0) && (!rHas || rv.Len() == 0) {
		c.nulls(l, r, lHas, rHas)
		return
	}
	if lHas && rHas && lv.Len() == rv.Len() && c.sameValue(n, lv, rv) { // duplicate items make no difference
		return
	}
	left, right := c.items(n, lv, lHas), c.items(n, rv, rHas)
	i, j := 0, 0
	for !c.unsure && (i < len(left) || j < len(right)) {
		var li, ri reflect.Value
		var key []byte
		var order int
		switch {
		case i == len(left):
			order = 1
		case j == len(right):
			order = -1
		default:
			order = bytes.Compare(left[i].key, right[j].key)
		}
		if order <= 0 {
			li, key = left[i].value, left[i].key
			i++
		}
		if order >= 0 {
			ri, key = right[j].value, right[j].key
			j++
		}
		start := len(c.trace)
		c.trace = append(c.trace, key...)
		c.inside(n.item, li, ri, start)
	}
	c.oneSide(l, r)
}

// listItem is an item of a list, and the step to the item.
type listItem struct {
	key   []byte
	value reflect.Value
}

// items returns the items of a list, sorted by their keys. Two items with the same key set c.unsure.
func (c *comparer) items(n *node, list reflect.Value, has bool) []listItem {
	if !has {
		return nil
	}
	items := make([]listItem, list.Len())
	for i := range items {
		items[i] = listItem{key: n.appendKey(nil, list.Index(i)), value: list.Index(i)}
	}
	slices.SortFunc(items, func(a, b listItem) int { return bytes.Compare(a.key, b.key) })
	for i := range max(len(items)-1, 0) {
		if bytes.Equal(items[i].key, items[i+1].key) {
			c.unsure = true
		}
	}
	return items
}

// same reports whether two values are equal in JSON. The order of members does not count.
func (c *comparer) same(n *node, l, r reflect.Value) bool {
	lv, lHas := follow(n, l)
	rv, rHas := follow(n, r)
	if !lHas || !rHas {
		return lHas == rHas
	}
	return c.sameValue(n, lv, rv)
}

// sameValue is like same, for values that are not null.
func (c *comparer) sameValue(n *node, l, r reflect.Value) bool {
	switch n.form {
	case aString:
		return c.sameText(l.String(), r.String())
	case aBool:
		return l.Bool() == r.Bool()
	case anInt:
		return l.Int() == r.Int()
	case aUint:
		return l.Uint() == r.Uint()
	case aFloat:
		return l.Float() == r.Float()
	case bytes64:
		return bytes.Equal(l.Bytes(), r.Bytes())
	case aTime: // encoded as a text in whole seconds
		return pointerTo[metav1.Time](l).Unix() == pointerTo[metav1.Time](r).Unix()
	case aMicroTime:
		lt, rt := pointerTo[metav1.MicroTime](l), pointerTo[metav1.MicroTime](r)
		return lt.Unix() == rt.Unix() && lt.Nanosecond()/1000 == rt.Nanosecond()/1000
	case intOrText:
		li, ri := pointerTo[intstr.IntOrString](l), pointerTo[intstr.IntOrString](r)
		if li.Type == intstr.Int || ri.Type == intstr.Int {
			return li.Type == ri.Type && li.IntVal == ri.IntVal
		}
		return c.sameText(li.StrVal, ri.StrVal)
	case aStruct:
		for i, fields := 0, n.structure(); i < len(fields); i++ {
			f := &fields[i]
			lf, lGiven := f.of(l)
			rf, rGiven := f.of(r)
			if lGiven != rGiven || lGiven && !c.same(f.node, lf, rf) {
				return false
			}
		}
		return true
	case aMap:
		if l.Len() != r.Len() {
			return false
		}
		for members := l.MapRange(); members.Next(); {
			other := r.MapIndex(members.Key())
			if !other.IsValid() || !c.same(n.item, members.Value(), other) {
				return false
			}
		}
		return true
	case aList:
		if l.Len() != r.Len() {
			return false
		}
		for i := range l.Len() {
			if !c.same(n.item, l.Index(i), r.Index(i)) {
				return false
			}
		}
		return true
	}
	return c.sameEncoding(l, r)
}

// sameText compares strings. It sets c.unsure for different strings that may be equal in JSON.
func (c *comparer) sameText(l, r string) bool {
	if l == r {
		return true
	}
	c.unsure = c.unsure || !utf8.ValidString(l) || !utf8.ValidString(r)
	return false
}

// sameEncoding compares scalars that implement their own encoding.
func (c *comparer) sameEncoding(l, r reflect.Value) bool {
	if l.Comparable() && l.Equal(r) {
		return true
	}
	lText, lErr := json.Marshal(l.Interface())
	rText, rErr := json.Marshal(r.Interface())
	c.unsure = c.unsure || cmp.Or(lErr, rErr) != nil
	return bytes.Equal(lText, rText)
}
