package library

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/keelson-dev/keelson/runtime/regexsize"
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

// effort is what a call costs at least because of what it reads, zero if that is not much.
func (c *Costs) effort(function string, args []ref.Val) uint64 {
	bytes := 0
	if len(args) == 0 {
		return 0
	}
	switch function {
	case "matches", "find", "findAll":
		if c.ConstantPatterns || len(args) < 2 {
			return 0
		}
		pattern, _ := args[1].(types.String)
		if n := regexsize.Of(string(pattern)); n > lightInstructions {
			return uint64(n) * costPerInstruction
		}
		return 0
	case "charAt": // which makes another text of it, of numbers
		bytes = 8 * weight(args[0])
	case "size", "int", "uint", "double", "bool", "timestamp", "duration", "_<_", "_<=_", "_>_", "_>=_",
		"isGreaterThan", "isLessThan", "compareTo", "add", "sub", "asApproximateFloat", "getScheme", "getHostname", "getHost", "getPort",
		"getEscapedPath", "getQuery":
		for _, arg := range args {
			bytes += weight(arg)
		}
	case "_==_", "_!=_":
		if len(args) == 2 && isContainer(args[0]) {
			left := MaxElements
			pairs(args[0], args[1], &left)
			return effortOfPairs(MaxElements - left)
		}
		for _, arg := range args {
			bytes += weight(arg)
		}
	case "@in":
		if len(args) == 2 && isAggregate(args[0]) {
			left := MaxElements
			pairsWithEach(args[1], args[0], &left)
			return effortOfPairs(MaxElements - left)
		}
		if weight(args[0]) > lightBytes {
			bytes = sameLength(args[1], args[0])
		}
	case "format":
		if len(args) == 2 {
			bytes = textBytes(args[1], maxBytes)
		}
	}
	if bytes <= lightBytes {
		return 0
	}
	return uint64(bytes) / bytesPerCost
}

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

// pairs takes the comparisons that comparing two values may need from what is left, and says whether there was enough.
// Values that are read from objects count what is compared with them by themselves.
func pairs(v, w ref.Val, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	if text, ok := v.(types.String); ok {
		if other, ok := w.(types.String); ok && len(text) == len(other) {
			*left -= len(text) * pairsPerCost / bytesPerCost
		}
		return *left >= 0
	}
	if !isContainer(v) {
		return true
	}
	switch v := v.(type) {
	case *types.Optional:
		if w, ok := w.(*types.Optional); ok && v.HasValue() && w.HasValue() {
			return pairs(v.GetValue(), w.GetValue(), left)
		}
	case traits.Lister:
		w, ok := w.(traits.Lister)
		if !ok || size(v) != size(w) {
			return true
		}
		other := w.Iterator()
		for it := v.Iterator(); it.HasNext() == types.True && other.HasNext() == types.True; {
			if !pairs(it.Next(), other.Next(), left) {
				return false
			}
		}
	case traits.Mapper:
		w, ok := w.(traits.Mapper)
		if !ok || size(v) != size(w) {
			return true
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			other, found := w.Find(key)
			if !found {
				return true
			}
			if !pairs(v.Get(key), other, left) {
				return false
			}
		}
	}
	return true
}

// pairsWithEach does so for each element of a list and a value.
func pairsWithEach(list, v ref.Val, left *int) bool {
	l, ok := list.(traits.Lister)
	if !ok {
		return true
	}
	for it := l.Iterator(); it.HasNext() == types.True; {
		if !pairs(it.Next(), v, left) {
			return false
		}
	}
	return true
}

// pairsOfAll does so for each element of a list and each of another one, if there are lists or maps in it: of other elements
// cel-go counts the comparisons.
func pairsOfAll(v, w ref.Val, left *int) bool {
	list, ok := v.(traits.Lister)
	if !ok {
		return true
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if element := it.Next(); isContainer(element) && !pairsWithEach(w, element, left) {
			return false
		}
	}
	return true
}

// plainCost is what cel-go says that a call costs of those that have an effort.
func plainCost(function string, args []ref.Val) uint64 {
	switch function {
	case "matches":
		return readTimes(1+float64(size(args[0])), 1) * regex(size(args[1]))
	case "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_":
		return readTimes(float64(min(size(args[0]), size(args[1]))), 1)
	case "@in":
		return size(args[1])
	case "format":
		return read(size(args[0]))
	}
	return 1
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
