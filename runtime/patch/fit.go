package patch

import (
	"math"
	"reflect"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// fits calls fit for an object.
func (c *comparer) fits(p *plan, obj reflect.Value) bool {
	c.sum, c.depth = 0, 0
	return c.fit(p.root, obj.Elem())
}

// fit reports whether v is small enough to be compared, and has no value that structured-merge-diff would refuse or that is
// different in JSON.
func (c *comparer) fit(n *node, v reflect.Value) bool {
	v, ok := follow(n, v)
	if !ok {
		return true
	}
	switch n.form {
	case opaque:
		return false
	case aUint:
		return v.Uint() <= math.MaxInt64
	case aFloat:
		return math.Abs(v.Float()) < math.MaxInt64 // and not NaN
	case intOrText: // other types cannot be encoded
		kind := pointerTo[intstr.IntOrString](v).Type
		return kind == intstr.Int || kind == intstr.String
	case aStruct:
		fields := n.structure()
		if !c.enter(len(fields)) {
			return false
		}
		for i := range fields {
			if f := &fields[i]; f.node.maybeUnfit() {
				if at, given := f.of(v); given && !c.fit(f.node, at) {
					return false
				}
			}
		}
		c.depth--
	case aMap:
		if !c.enter(v.Len()) {
			return false
		}
		if texts, ok := v.Interface().(map[string]string); ok && n.item.form == aString {
			for name := range texts {
				if !utf8.ValidString(name) {
					return false
				}
			}
		} else {
			for members := v.MapRange(); members.Next(); {
				if !utf8.ValidString(members.Key().String()) || !c.fit(n.item, members.Value()) {
					return false
				}
			}
		}
		c.depth--
	case aList:
		if !c.enter(v.Len()) {
			return false
		}
		for i := range v.Len() {
			item := v.Index(i)
			if !c.fit(n.item, item) || !n.atomic && !n.keyFits(item) {
				return false
			}
		}
		c.depth--
	}
	return true
}

// maybeUnfit reports whether fit has to check the values of n.
func (n *node) maybeUnfit() bool {
	switch n.form {
	case opaque, aUint, aFloat, intOrText, aStruct, aMap, aList:
		return true
	}
	return false
}

// enter counts a value with this number of members, and goes one level down. The time of a comparison is linear, so only the
// members that may have to be sorted need a bound.
func (c *comparer) enter(members int) bool {
	const perLevel = 30
	c.depth++
	c.sum += members*members + c.depth*perLevel
	return c.sum <= MaxMembers*MaxMembers
}

// keyFits reports whether the strings in the key of a list item are unchanged in JSON.
func (n *node) keyFits(item reflect.Value) bool {
	if len(n.keys) == 0 {
		return n.item.form != aString || utf8.ValidString(item.String())
	}
	for i := range n.keys {
		if f := n.keys[i].field; f != nil && f.node.form == aString {
			if v, given := f.of(item); given && !utf8.ValidString(v.String()) {
				return false
			}
		}
	}
	return true
}
