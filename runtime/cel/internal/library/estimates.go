package library

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// Assumed sizes for the estimate of a format validation: the regular expression of the format is not known before, so it is
// assumed to have formatRegexSize bytes. Names of formats have at most formatNameSize bytes.
const (
	formatRegexSize = 128
	formatNameSize  = 64
)

// EstimateCallCost implements checker.CostEstimator.
func (c *Costs) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch kind := kind(function, overload); kind {
	case check:
		return fixed(checkCost)
	case nominal:
		return fixed(1)
	case equality:
		return estimateEquality(args)
	case elements:
		if target != nil {
			return &checker.CallEstimate{CostEstimate: c.estimateElements(function, *target)}
		}
	case text:
		return c.estimateText(function, target, args)
	case textTwice:
		return c.estimateTextTwice(function, target, args)
	case joined:
		if target != nil {
			return c.estimateJoin(*target, args)
		}
	default:
		if len(args) > 0 {
			return c.estimateByArgument(kind, overload, target, args)
		}
	}
	return nil
}

// estimateByArgument estimates functions whose cost depends on the first argument besides the target.
func (c *Costs) estimateByArgument(kind costKind, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	first := c.size(args[0])
	switch kind {
	case selector:
		if len(args) == 1 {
			return &checker.CallEstimate{CostEstimate: selectorCost(first)}
		}
	case pattern:
		if target == nil {
			return nil
		}
		in := c.size(*target)
		cost := reading(in.Add(exactly(1))).Multiply(first.MultiplyByCostFactor(common.RegexStringLengthCostFactor))
		return &checker.CallEstimate{CostEstimate: cost, ResultSize: &checker.SizeEstimate{Max: in.Max}}
	case judgement:
		return &checker.CallEstimate{
			CostEstimate: reading(first).MultiplyByCostFactor(formatRegexSize * common.RegexStringLengthCostFactor),
		}
	case containsIP, containsIPs:
		address := checker.SizeEstimate{Min: 4, Max: 16} // of either family
		cost := reading(address.Add(address))
		if kind == containsIPs {
			cost = cost.Add(reading(address)).Add(checker.CostEstimate{Min: 1, Max: 1})
		}
		if overload == "cidr_contains_ip_string" || overload == "cidr_contains_cidr_string" {
			cost = cost.Add(checker.CostEstimate(first).MultiplyByCostFactor(common.StringTraversalCostFactor))
		}
		return &checker.CallEstimate{CostEstimate: cost}
	}
	return nil
}

// estimateText estimates functions that read a string once. Some of them return a string of the same length.
func (c *Costs) estimateText(function string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	var of checker.AstNode
	result := true
	switch function {
	case "lowerAscii", "upperAscii", "substring", "trim":
		if target == nil {
			return nil
		}
		of = *target
	case "url", "jsonpatch.escapeKey":
		if len(args) != 1 {
			return nil
		}
		of = args[0]
	default:
		if len(args) == 0 {
			return nil
		}
		of, result = args[0], false
	}
	size := c.size(of)
	estimate := &checker.CallEstimate{CostEstimate: reading(size)}
	if result {
		estimate.ResultSize = &size
	}
	return estimate
}

// estimateTextTwice estimates functions that read a string and write a string of the same length.
func (c *Costs) estimateTextTwice(function string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	var of checker.AstNode
	switch {
	case function == "ip.isCanonical":
		if len(args) == 0 {
			return nil
		}
		of = args[0]
	case target == nil || function == "replace" && len(args) < 2:
		return nil
	default:
		of = *target
	}
	size := c.size(of)
	estimate := &checker.CallEstimate{CostEstimate: size.MultiplyByCostFactor(2 * common.StringTraversalCostFactor)}
	switch function {
	case "replace":
		replaced := replacedSize(size, c.size(args[0]), c.size(args[1]))
		estimate.ResultSize = &replaced
	case "split":
		most := size.Max // each character is an element of its own
		if len(args) > 1 {
			if literal := args[1].Expr().AsLiteral(); literal != nil {
				if n, ok := literal.Value().(int64); ok {
					most = uint64(n)
				}
			}
		}
		estimate.ResultSize = &checker.SizeEstimate{Max: most}
	}
	return estimate
}

// replacedSize returns the size of a string after parts of it are replaced.
func replacedSize(in, old, with checker.SizeEstimate) checker.SizeEstimate {
	var count, kept checker.SizeEstimate
	switch {
	case old.Min == 0: // the replacement is added before and after each character
		count.Max, kept.Max = in.Max, in.Max
		if in.Max < math.MaxUint64 {
			count.Max++
		}
	case with.Max <= old.Min: // the replacement is not longer
		kept.Max = in.Max
	default:
		count.Max = uint64(math.Ceil(float64(in.Max) / float64(old.Min)))
	}
	switch {
	case old.Max == 0:
		count.Min, kept.Min = in.Min, in.Min
		if in.Min < math.MaxUint64 {
			count.Min++
		}
	case old.Max <= with.Min: // the replacement is not shorter
		kept.Min = in.Min
	default:
		count.Min = uint64(math.Ceil(float64(in.Min) / float64(old.Max)))
	}
	return count.Multiply(with).Add(kept)
}

// estimateJoin estimates the concatenation of the elements of a list with a separator.
func (c *Costs) estimateJoin(target checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	count := c.size(target)
	var size checker.SizeEstimate
	if element := elementOf(target); element != nil {
		size = count.Multiply(c.size(element))
	}
	if len(args) > 0 {
		between := checker.SizeEstimate{Min: max(count.Min, 1) - 1, Max: max(count.Max, 1) - 1}
		size = size.Add(c.size(args[0]).Multiply(between))
	}
	return &checker.CallEstimate{CostEstimate: reading(size), ResultSize: &size}
}

// estimateElements estimates functions that read each element of a list once, or each character of a string.
func (c *Costs) estimateElements(function string, target checker.AstNode) checker.CostEstimate {
	size, each := c.size(target), checker.CostEstimate{Min: 1, Max: 1}
	element := elementOf(target)
	if element == nil {
		if function == "includes" { // the target is dyn, which may be a list
			return size.MultiplyByCost(each)
		}
		return reading(size)
	}
	if k := element.Type().Kind(); k == types.StringKind || k == types.BytesKind {
		each = each.Add(reading(c.size(element)))
	}
	return size.MultiplyByCost(each)
}

// estimateEquality estimates comparisons of values that are not large, except URLs.
func estimateEquality(args []checker.AstNode) *checker.CallEstimate {
	if len(args) != 2 || args[0].Type().Equal(args[1].Type()) != types.True {
		return nil
	}
	of := args[0].Type()
	if of.Kind() == types.OpaqueKind { // the checker makes other values of these types, which are equal by name only
		switch of.TypeName() {
		case IPType.TypeName(), CIDRType.TypeName():
			return fixed(1)
		}
	}
	switch of {
	case QuantityType, SemverType, AuthorizerType, PathCheckType, GroupCheckType, ResourceCheckType, DecisionType:
		return fixed(1)
	case FormatType:
		return upTo(formatNameSize)
	case URLType:
		if size := args[1].ComputedSize(); size != nil {
			return upTo(size.Max)
		}
		return upTo(1)
	}
	return nil
}

// upTo returns the cost of reading between one byte and so many.
func upTo(bytes uint64) *checker.CallEstimate {
	cost := checker.CostEstimate{Min: 1, Max: bytes}
	return &checker.CallEstimate{CostEstimate: cost.MultiplyByCostFactor(common.StringTraversalCostFactor)}
}

func fixed(cost uint64) *checker.CallEstimate {
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: cost, Max: cost}}
}

func exactly(size uint64) checker.SizeEstimate { return checker.SizeEstimate{Min: size, Max: size} }

// reading returns the cost of reading a string.
func reading(size checker.SizeEstimate) checker.CostEstimate {
	return size.MultiplyByCostFactor(common.StringTraversalCostFactor)
}

// size returns the size of a value. If nothing is known, the value may have any size.
func (c *Costs) size(node checker.AstNode) checker.SizeEstimate {
	size := node.ComputedSize()
	if size == nil {
		size = c.EstimateSize(node)
	}
	if size == nil {
		return checker.SizeEstimate{Max: math.MaxUint64}
	}
	return *size
}

// EstimateSize implements checker.CostEstimator.
func (c *Costs) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if c.Sizes == nil {
		return nil
	}
	return c.Sizes.EstimateSize(node)
}

// elementOf returns a node for an element of a list, so that its size can be estimated by the path of the list, if the list has
// one.
func elementOf(list checker.AstNode) checker.AstNode {
	params := list.Type().Parameters()
	if len(params) == 0 {
		return nil
	}
	e := &element{typ: params[0]}
	if path := list.Path(); path != nil {
		e.path = append(append(make([]string, 0, len(path)+1), path...), "@items")
	}
	return e
}

// element is a checker.AstNode that belongs to no expression.
type element struct {
	path []string
	typ  *types.Type
}

// Path implements checker.AstNode.
func (e *element) Path() []string { return e.path }

// Type implements checker.AstNode.
func (e *element) Type() *types.Type { return e.typ }

// Expr implements checker.AstNode.
func (e *element) Expr() ast.Expr { return nil }

// ComputedSize implements checker.AstNode.
func (e *element) ComputedSize() *checker.SizeEstimate { return nil }
