package library

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Some calls cost next to nothing however large what they read is: the size of a text, its first character, a text as a
// number, one text compared with a short one, lists in lists compared with each other, a regular expression with repetitions. A comprehension makes hundreds of
// thousands of such calls before it has cost too much. So what is large makes them cost what they take, roughly; what is not
// costs what it costs in kube-apiserver.
const (
	lightBytes   = 32 << 10 // of texts that cost nothing more
	bytesPerCost = 200      // of larger ones
	lightPairs   = 1000     // of elements, compared with each other, that cost nothing more
	pairsPerCost = 4        // of more

	lightInstructions  = 1000 // of regular expressions that are no constants, for nothing more
	costPerInstruction = 3    // of larger ones
)

// weight is how many bytes there are in a value that is no list and no map.
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
		own := v.DeepCopy() // AsDec changes how it is kept
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

// sameLength is how many bytes of texts in a list a text is compared with: those of the same length.
func sameLength(list, text ref.Val) int {
	l, ok := list.(traits.Lister)
	if !ok {
		return weight(text) // which is looked up
	}
	total := 0
	for it := l.Iterator(); it.HasNext() == types.True; {
		if n := weight(it.Next()); n == weight(text) {
			total += n
		}
	}
	return total
}

// effortOfPairs is what so many comparisons cost.
func effortOfPairs(n int) uint64 {
	if n <= lightPairs {
		return 0
	}
	return uint64(n) / pairsPerCost
}

// Efforts has the functions of sets and distinct cost what they take if there are lists or maps in what they compare. The
// extensions of cel-go, which must come before, count those as one.
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
		list := args[0].(traits.Lister) // or the evaluation ends, as in cel-go
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
