package library

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Costs says what calls cost: what they did cost, of interpreter.ActualCostEstimator, and what they may cost, of
// checker.CostEstimator. What it does not know costs what cel-go and its extensions say. It does not change.
type Costs struct {
	// Sizes estimates how large the values of variables are. Without it they may be of any size.
	Sizes checker.CostEstimator
	// ConstantPatterns says that all regular expressions are constants, so that calls do not compile any.
	ConstantPatterns bool
}

// costKind is what the cost of a function depends on.
type costKind int

const (
	byDefault   costKind = iota // what cel-go says
	check                       // a fixed price that allows two in an expression
	nominal                     // one
	selector                    // the length of a selector, for its parts
	elements                    // what is in a list
	text                        // the length of a string
	textTwice                   // the length of a string, which is read and copied
	joined                      // the length of the result
	pattern                     // the lengths of a string and of a regular expression
	containsIP                  // the size of a network, and the length of a string
	containsIPs                 // the same, of a network
	judgement                   // the length of a string, and of what judges it
	equality                    // one, of what cannot be large
)

// checkCost is what an authorization costs.
const checkCost = 350_000

// kind is by the name of the function, whichever overload it is.
func kind(function, overload string) costKind {
	switch function {
	case "check":
		return check
	case "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error", "errored",
		"masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast",
		"isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan",
		"compareTo", "add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath",
		"getQuery":
		return nominal
	case "fieldSelector", "labelSelector":
		return selector
	case "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes":
		return elements
	case "ip":
		if overload == "cidr_ip" {
			return nominal
		}
		return text
	case "url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP", "isCIDR", "quantity",
		"isQuantity", "semver", "isSemver":
		return text
	case "replace", "split", "ip.isCanonical":
		return textTwice
	case "join":
		return joined
	case "find", "findAll":
		return pattern
	case "containsIP":
		return containsIP
	case "containsCIDR":
		return containsIPs
	case "validate":
		return judgement
	case "_==_":
		return equality
	}
	return byDefault
}

// callCost is what a call did cost, if it is not what it costs by default.
func callCost(kind costKind, overload string, args []ref.Val, result ref.Val) (uint64, bool) {
	switch kind {
	case byDefault:
		return 0, false
	case check:
		return checkCost, true
	case nominal:
		return 1, true
	case elements:
		if len(args) == 0 {
			return 0, true
		}
		return traversal(args[0]), true
	}
	if len(args) == 0 {
		return 0, false
	}
	first := size(args[0])
	switch kind {
	case text:
		return read(first), true
	case textTwice:
		return readTimes(float64(first), 2), true
	case joined:
		return readTimes(float64(size(result)), 2), true
	}
	if len(args) < 2 {
		return 0, false
	}
	second := size(args[1])
	switch kind {
	case selector:
		return selectorCost(checker.SizeEstimate{Min: second, Max: second}).Max, true
	case pattern:
		return readTimes(1+float64(first), 1) * regex(second), true
	case judgement:
		f, ok := args[0].(FormatValue)
		if !ok {
			return 0, false
		}
		return readTimes(1+float64(second), 1) * regex(uint64(f.regexSize)), true
	case containsIP, containsIPs:
		cost := read(first + first) // as many bytes of both as the prefix has
		if kind == containsIPs {
			cost += read(first) + 1 // it is masked before
		}
		if overload == "cidr_contains_ip_string" || overload == "cidr_contains_cidr_string" {
			cost += read(second)
		}
		return cost, true
	case equality:
		if len(args) != 2 {
			return 0, false
		}
		switch args[0].(type) {
		case QuantityValue, IPValue, CIDRValue, FormatValue, URL, SemverValue, authorizer, pathCheck, groupCheck, resourceCheck, decision:
			return 1, true
		}
	}
	return 0, false
}

// read is what reading a string of so many bytes costs.
func read(bytes uint64) uint64 { return readTimes(float64(bytes), 1) }

// readTimes is what reading it several times costs.
func readTimes(bytes float64, times float64) uint64 {
	return uint64(math.Ceil(bytes * times * common.StringTraversalCostFactor))
}

// regex is by how much a regular expression of so many bytes multiplies the cost of reading.
func regex(bytes uint64) uint64 {
	return uint64(math.Ceil(float64(bytes) * common.RegexStringLengthCostFactor))
}

// size is how large a value is, one if that cannot be told.
func size(v ref.Val) uint64 {
	if sizer, ok := v.(traits.Sizer); ok {
		if n, ok := sizer.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 1
}

// maxTraversal is where counting ends: it is more than there is in any budget. A list that has itself twice, many times over,
// cannot be counted.
const maxTraversal = 10*MaxElements + 1

// traversal is what reading a value with all that is in it costs, or at least that it costs too much.
func traversal(v ref.Val) uint64 {
	var w traverser
	if !w.traverse(v) {
		return max(w.cost, maxTraversal)
	}
	return w.cost
}

// traverser counts. What is empty costs nothing, but is counted too.
type traverser struct{ cost, visits uint64 }

// traverse adds what is in a value, and says whether to go on.
func (w *traverser) traverse(v ref.Val) bool {
	switch v := v.(type) {
	case types.String:
		w.cost += uint64(float64(len(v)) * common.StringTraversalCostFactor)
	case types.Bytes:
		w.cost += uint64(float64(len(v)) * common.StringTraversalCostFactor)
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !w.traverse(it.Next()) {
				return false
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !w.traverse(key) || !w.traverse(v.Get(key)) {
				return false
			}
		}
	default:
		w.cost++
	}
	w.visits++
	return w.cost < maxTraversal && w.visits < maxTraversal
}

// selectorCost is what parsing a selector costs: reading it, a list, and what a requirement is made of for each. The shortest
// requirement has two bytes.
func selectorCost(length checker.SizeEstimate) checker.CostEstimate {
	const each = float64(common.ListCreateBaseCost + common.StructCreateBaseCost)
	list := checker.CostEstimate{Min: common.ListCreateBaseCost, Max: common.ListCreateBaseCost}
	requirements := length.MultiplyByCostFactor(.5).MultiplyByCostFactor(each)
	return list.Add(length.MultiplyByCostFactor(common.StringTraversalCostFactor)).Add(requirements)
}
