package library

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Lists returns the library with isSorted, sum, min, max, indexOf and lastIndexOf of lists. Since version 1 it also has includes,
// whose target may have any type.
func Lists(version int) celgo.EnvOption {
	element := celgo.TypeParamType("A")
	l := lib{name: "kubernetes.lists", functions: []function{
		each("isSorted", "is_sorted_bool", comparable(), celgo.BoolType, isSorted),
		sums(),
		each("max", "max", comparable(), nil, func(v ref.Val) ref.Val { return extreme(v, "max", types.IntNegOne) }),
		each("min", "min", comparable(), nil, func(v ref.Val) ref.Val { return extreme(v, "min", types.IntOne) }),
		method("indexOf", "list_a_index_of_int", args(celgo.ListType(element), element), celgo.IntType, onBoth(indexOf)),
		method("lastIndexOf", "list_a_last_index_of_int", args(celgo.ListType(element), element), celgo.IntType, onBoth(lastIndexOf)),
	}}
	if version >= 1 {
		l.functions = append(l.functions, method("includes", "list_includes_dyn_dyn", args(celgo.DynType, celgo.DynType), celgo.BoolType,
			celgo.BinaryBinding(includes)))
	}
	return celgo.Lib(l)
}

// comparable returns the types whose values have an order. A list of a type parameter cannot require that its elements have an
// order, so each function has one overload for each of these types.
func comparable() []*celgo.Type {
	return []*celgo.Type{celgo.IntType, celgo.UintType, celgo.DoubleType, celgo.BoolType, celgo.DurationType, celgo.TimestampType,
		celgo.StringType, celgo.BytesType}
}

// shortName returns the name of a type in the ids of overloads.
func shortName(t *celgo.Type) string {
	switch t {
	case celgo.DurationType:
		return "duration"
	case celgo.TimestampType:
		return "timestamp"
	}
	return t.TypeName()
}

// each declares a method for lists of each of the types in of. If result is nil, the result type is the element type.
func each(name, id string, of []*celgo.Type, result *celgo.Type, f func(ref.Val) ref.Val) function {
	fn := function{name: name}
	for _, t := range of {
		id, returns := "list_"+shortName(t)+"_"+id, result
		if returns == nil {
			id, returns = id+"_"+shortName(t), t
		}
		fn.overloads = append(fn.overloads, celgo.MemberOverload(id, args(celgo.ListType(t)), returns, celgo.UnaryBinding(f)))
	}
	return fn
}

// sums declares sum. The sum of an empty list is the zero of the element type.
func sums() function {
	fn := function{name: "sum"}
	for _, zero := range []ref.Val{types.Int(0), types.Uint(0), types.Double(0), types.Duration{}} {
		t := zero.Type().(*celgo.Type)
		of := each("sum", "sum", []*celgo.Type{t}, nil, func(v ref.Val) ref.Val { return sum(v, zero) })
		fn.overloads = append(fn.overloads, of.overloads...)
	}
	return fn
}

func sum(list, zero ref.Val) ref.Val {
	iterable, ok := list.(traits.Iterable)
	if !ok {
		return noOverload(list)
	}
	total := zero
	for it := iterable.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		if _, ok := next.(traits.Adder); !ok {
			return noOverload(next)
		}
		total = total.(traits.Adder).Add(next)
		if _, ok := total.(traits.Adder); !ok {
			return noOverload(total) // an overflow
		}
	}
	return total
}

func isSorted(list ref.Val) ref.Val {
	iterable, ok := list.(traits.Iterable)
	if !ok {
		return noOverload(list)
	}
	var last traits.Comparer
	for it := iterable.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		element, ok := next.(traits.Comparer)
		if !ok {
			return noOverload(next)
		}
		if last != nil && last.Compare(next) == types.IntOne {
			return types.False
		}
		last = element
	}
	return types.True
}

// extreme returns the first of the best elements of a list. An element is replaced if comparing it with a later element returns
// worse.
func extreme(list ref.Val, name string, worse ref.Val) ref.Val {
	iterable, ok := list.(traits.Iterable)
	if !ok {
		return noOverload(list)
	}
	var best ref.Val
	for it := iterable.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		if _, ok := next.(traits.Comparer); !ok {
			return noOverload(next)
		}
		if best == nil || best.(traits.Comparer).Compare(next) == worse {
			best = next
		}
	}
	if best == nil {
		return types.NewErr("%s called on empty list", name)
	}
	return best
}

func indexOf(list traits.Lister, item ref.Val) ref.Val {
	size, ok := list.Size().(types.Int)
	if !ok {
		return noOverload(list)
	}
	for i := range size {
		if list.Get(i).Equal(item) == types.True {
			return i
		}
	}
	return types.IntNegOne
}

func lastIndexOf(list traits.Lister, item ref.Val) ref.Val {
	size, ok := list.Size().(types.Int)
	if !ok {
		return noOverload(list)
	}
	for i := size - 1; i >= 0; i-- {
		if list.Get(i).Equal(item) == types.True {
			return i
		}
	}
	return types.IntNegOne
}

// includes reports whether a list has an element, or whether a target of another type equals the item.
func includes(target, item ref.Val) ref.Val {
	list, ok := target.(traits.Lister)
	if !ok {
		return types.Bool(target.Equal(item) == types.True)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if it.Next().Equal(item) == types.True {
			return types.True
		}
	}
	return types.False
}
