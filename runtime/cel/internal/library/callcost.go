package library

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/keelson-dev/keelson/runtime/regexsize"
)

// CallCost implements interpreter.ActualCostEstimator.
func (c *Costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	cost, ok := callCost(kind(function, overload), overload, args, result)
	if heavy := c.effort(function, args); heavy > 0 {
		if !ok {
			cost = plainCost(function, args)
		}
		cost, ok = max(cost, heavy), true
	}
	if !ok {
		return nil
	}
	return &cost
}

// effort returns the minimum cost of a call for the data that it reads, zero if that is little.
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
	case "charAt": // charAt makes a second copy of the text, with eight bytes for each character
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

// plainCost returns the cost of a call in cel-go, for the functions that effort handles.
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
