package library

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Costs has the costs of calls. It implements interpreter.ActualCostEstimator for measured costs, and checker.CostEstimator for
// estimates. Functions that it does not have cost what cel-go and its extensions define. It is immutable.
type Costs struct {
	// Sizes estimates the size of the values of variables. If it is nil, values may have any size.
	Sizes checker.CostEstimator
	// ConstantPatterns means that all regular expressions are constants, so that no call compiles one.
	ConstantPatterns bool
}

// costKind says what the cost of a function depends on.
type costKind int

const (
	byDefault   costKind = iota // the cost that cel-go defines
	check                       // a fixed cost; two fit into the limit of one evaluation
	nominal                     // one
	selector                    // the length of a selector and the number of its requirements
	elements                    // the elements of a list
	text                        // the length of a string
	textTwice                   // twice the length of a string, which is read and copied
	joined                      // the length of the result
	pattern                     // the lengths of a string and of a regular expression
	containsIP                  // the size of a network, and the length of a string
	containsIPs                 // like containsIP, for a network as the argument
	judgement                   // the length of a string, and the size of the regular expression of its format
	equality                    // one, for types whose values cannot be large
)

// checkCost is the cost of an authorization check.
const checkCost = 350_000

// kind returns the kind of cost of a function. All overloads of a function have the same kind, except those of ip.
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

// callCost returns the measured cost of a call. The result is false if the call has the default cost.
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
		cost := read(first + first) // as many bytes of both addresses as the prefix has
		if kind == containsIPs {
			cost += read(first) + 1 // the argument is masked first
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

// read returns the cost of reading a string of so many bytes.
func read(bytes uint64) uint64 { return readTimes(float64(bytes), 1) }

// readTimes returns the cost of reading a string of so many bytes several times.
func readTimes(bytes float64, times float64) uint64 {
	return uint64(math.Ceil(bytes * times * common.StringTraversalCostFactor))
}

// regex returns the factor by which a regular expression of so many bytes multiplies the cost of reading.
func regex(bytes uint64) uint64 {
	return uint64(math.Ceil(float64(bytes) * common.RegexStringLengthCostFactor))
}

// size returns the size of a value, or one if the value has no size.
func size(v ref.Val) uint64 {
	if sizer, ok := v.(traits.Sizer); ok {
		if n, ok := sizer.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 1
}

// maxTraversal is the cost at which counting ends. It is more than any budget. A list that contains itself twice, many levels
// deep, cannot be counted to the end.
const maxTraversal = 10*MaxElements + 1

// traversal returns the cost of reading a value with all nested values. If that is more than maxTraversal, it returns at least
// maxTraversal.
func traversal(v ref.Val) uint64 {
	var w traverser
	if !w.traverse(v) {
		return max(w.cost, maxTraversal)
	}
	return w.cost
}

// traverser counts the cost. Empty values cost nothing, so visits are counted too.
type traverser struct{ cost, visits uint64 }

// traverse adds the cost of a value, and reports whether to continue.
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

// selectorCost returns the cost of parsing a selector: reading it, making a list, and making a struct for each requirement. The
// shortest requirement has two bytes.
func selectorCost(length checker.SizeEstimate) checker.CostEstimate {
	const each = float64(common.ListCreateBaseCost + common.StructCreateBaseCost)
	list := checker.CostEstimate{Min: common.ListCreateBaseCost, Max: common.ListCreateBaseCost}
	requirements := length.MultiplyByCostFactor(.5).MultiplyByCostFactor(each)
	return list.Add(length.MultiplyByCostFactor(common.StringTraversalCostFactor)).Add(requirements)
}
