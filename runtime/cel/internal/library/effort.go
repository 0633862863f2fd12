package library

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Some calls cost almost nothing in kube-apiserver however much data they read: the size of a string, its first character, a
// string as a number, a string compared with a short one, nested lists compared with each other, a regular expression with
// repetitions. A comprehension makes hundreds of thousands of such calls before it has cost too much. So calls with large
// arguments cost roughly the time that they take. Other calls cost the same as in kube-apiserver.
const (
	lightBytes   = 32 << 10 // bytes of strings without an extra cost
	bytesPerCost = 200      // bytes of larger strings for a cost of one
	lightPairs   = 1000     // comparisons of elements without an extra cost
	pairsPerCost = 4        // comparisons for a cost of one, if there are more

	lightInstructions  = 1000 // instructions of regular expressions that are not constants, without an extra cost
	costPerInstruction = 3    // for larger regular expressions
)

// weight returns the number of bytes in a value that is neither a list nor a map.
func weight(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case URL:
		return len(v.Opaque) + len(v.Host) + len(v.Path) + len(v.RawPath) + len(v.RawQuery) + len(v.Fragment) + len(v.RawFragment)
	case QuantityValue:
		if _, small := v.AsInt64(); small {
			return 0
		}
		own := v.DeepCopy() // AsDec changes its receiver
		dec := own.AsDec()
		scale := int(dec.Scale())
		return dec.UnscaledBig().BitLen()/8 + max(scale, -scale)
	case SemverValue:
		total := 0
		for _, pre := range v.Pre {
			total += len(pre.VersionStr) + 1
		}
		return total
	}
	return 0
}

// sameLength returns the number of bytes of the strings in a list that a string is compared with: those of the same length.
func sameLength(list, text ref.Val) int {
	l, ok := list.(traits.Lister)
	if !ok {
		return weight(text) // list is a map, in which the string is looked up
	}
	total := 0
	for it := l.Iterator(); it.HasNext() == types.True; {
		if n := weight(it.Next()); n == weight(text) {
			total += n
		}
	}
	return total
}

// effortOfPairs returns the cost of n comparisons.
func effortOfPairs(n int) uint64 {
	if n <= lightPairs {
		return 0
	}
	return uint64(n) / pairsPerCost
}

// Efforts returns an option by which the functions of sets and distinct cost roughly the time that they take, if the compared
// elements are lists or maps. The extensions of cel-go count such an element as one. They must be added before this option.
func Efforts() celgo.ProgramOption {
	track := func(overload string, most int, other func([]ref.Val) (v, w ref.Val, cost uint64)) interpreter.CostTrackerOption {
		return interpreter.OverloadCostTracker(overload, func(args []ref.Val, _ ref.Val) *uint64 {
			v, w, cost := other(args)
			left := most
			pairsOfAll(v, w, &left)
			cost = max(cost, effortOfPairs(most-left))
			return &cost
		})
	}
	sets := func(times uint64) func([]ref.Val) (v, w ref.Val, cost uint64) {
		return func(args []ref.Val) (v, w ref.Val, cost uint64) {
			return args[0], args[1], 1 + size(args[0])*size(args[1])*times
		}
	}
	distinct := func(args []ref.Val) (v, w ref.Val, cost uint64) {
		list := args[0].(traits.Lister) // if it is not a list, the type assertion panics and the evaluation ends, as in cel-go
		n, factor := size(list), 2.0
		if n > 0 {
			switch list.Get(types.IntZero).(type) {
			case types.String, types.Bytes:
				factor += common.StringTraversalCostFactor
			}
		}
		return list, list, uint64(float64(n*n)*factor) + 1 + common.ListCreateBaseCost
	}
	return celgo.CostTrackerOptions(
		track("list_sets_contains_list", maxComparisons, sets(1)), track("list_sets_intersects_list", maxComparisons, sets(1)),
		track("list_sets_equivalent_list", maxComparisons, sets(2)), track("list_distinct", maxComparisons, distinct))
}
