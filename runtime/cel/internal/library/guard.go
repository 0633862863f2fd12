package library

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Limits for calls whose running time their cost does not limit. Except for comparisons, calls beyond these limits would cost
// more than one evaluation may cost. So they fail anyway, and the check only makes them fail earlier.
const (
	// MaxElements is the maximum number of elements of lists and maps, counting nested elements, that a call may read.
	MaxElements = 1_000_000
	// maxBytes is the maximum length of a string that a call may make. A longer one costs too much to read.
	maxBytes = 10 * MaxElements
	// maxComparisons is the maximum number of comparisons of elements.
	maxComparisons = 5 * MaxElements
	// maxCharacters is the maximum number of comparisons of characters.
	maxCharacters = 1000 * MaxElements
	// maxDigits is the maximum number of digits of a quantity, and of zeros.
	maxDigits = 10_000
)

// Stop ends an evaluation as if the cost limit were exceeded. It panics in the same way as cel-go, whose Eval recovers.
func Stop() {
	panic(interpreter.EvalCancelledError{
		Cause:   interpreter.CostLimitExceeded,
		Message: "operation cancelled: actual cost limit exceeded",
	})
}

// Tree is implemented by lists and maps whose size is the size of the data that they were read from, because no expression made
// them. Such values need not be counted before they are compared. IsTree is a marker and does nothing.
type Tree interface{ IsTree() }

// Guarded reports whether calls of a function must be checked with [TooMuch] before they are made.
func Guarded(function string) bool {
	switch function {
	case "replace", "join", "format", "flatten", "distinct", "sets.contains", "sets.intersects", "sets.equivalent", "indexOf",
		"lastIndexOf", "includes", "find", "findAll", "validate", "quantity", "isQuantity":
		return true
	}
	return false
}

// TooMuch reports whether a call must not be made. It handles the functions that are [Guarded], the operators ==, != and in, and
// matches.
func TooMuch(function, overload string, args []ref.Val) bool {
	switch function {
	case "_==_", "_!=_":
		return tooManyPairs(args[0], args[1])
	case "@in":
		return tooManyComparisons(args[1], args[0])
	case "indexOf", "lastIndexOf", "includes":
		if s, ok := args[0].(types.String); ok && len(args) > 1 {
			sub, _ := args[1].(types.String)
			return function != "includes" && (len(s)-len(sub))*len(sub) > maxCharacters
		}
		return len(args) > 1 && tooManyComparisons(args[0], args[1])
	case "matches", "find", "findAll":
		return len(args) > 1 && costs(pattern, overload, args)
	case "validate":
		return len(args) > 1 && costs(judgement, overload, args)
	case "replace":
		return len(args) > 2 && replacedBytes(args) > maxBytes
	case "join":
		return joinedBytes(args) > maxBytes
	case "format":
		return len(args) > 1 && formatted(args)
	case "flatten":
		return isContainer(args[0]) && !bounded(args[0], MaxElements)
	case "distinct":
		return allPairs(args[0], args[0])
	case "sets.contains", "sets.intersects", "sets.equivalent":
		return len(args) > 1 && allPairs(args[0], args[1])
	case "quantity", "isQuantity":
		s, _ := args[0].(types.String)
		return len(s) > maxDigits
	}
	return false
}

// costs reports whether a call costs more than any call may.
func costs(kind costKind, overload string, args []ref.Val) bool {
	cost, ok := callCost(kind, overload, args, types.NullValue)
	return ok && cost > MaxElements
}

// isAggregate reports whether a value contains other values.
func isAggregate(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

// isContainer reports whether a value contains other values that must be counted.
func isContainer(v ref.Val) bool {
	_, tree := v.(Tree)
	return !tree && isAggregate(v)
}

// bounded reports whether a value has at most most elements, counting nested elements.
func bounded(v ref.Val, most int) bool { return count(v, &most) }

// count subtracts the number of elements of a value from left, and reports whether the result is not negative.
func count(v ref.Val, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	if !isContainer(v) {
		return true
	}
	switch v := v.(type) {
	case *types.Optional:
		return !v.HasValue() || count(v.GetValue(), left)
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !count(it.Next(), left) {
				return false
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !count(v.Get(it.Next()), left) {
				return false
			}
		}
	}
	return true
}

// tooManyPairs reports whether comparing two values takes too long.
func tooManyPairs(v, w ref.Val) bool {
	left := MaxElements
	return !pairs(v, w, &left)
}

// tooManyComparisons reports whether comparing a value with each element of a list takes too long. It can only if both contain
// other values.
func tooManyComparisons(list, v ref.Val) bool {
	left := MaxElements
	return isAggregate(v) && !pairsWithEach(list, v, &left)
}

// allPairs reports whether comparing each element of a list with each element of another list takes too long.
func allPairs(v, w ref.Val) bool {
	left := maxComparisons
	return size(v)*size(w) > MaxElements || !pairsOfAll(v, w, &left)
}

// replacedBytes returns the length of the result of replace.
func replacedBytes(args []ref.Val) int {
	s, _ := args[0].(types.String)
	old, _ := args[1].(types.String)
	with, _ := args[2].(types.String)
	n := strings.Count(string(s), string(old))
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			n = min(n, int(most))
		}
	}
	return len(s) + n*(len(with)-len(old))
}

// joinedBytes returns the length of the result of join, or a length above maxBytes if the result is longer than that.
func joinedBytes(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	between := 0
	if len(args) > 1 {
		s, _ := args[1].(types.String)
		between = len(s)
	}
	total := 0
	for it := list.Iterator(); it.HasNext() == types.True && total <= maxBytes; {
		s, _ := it.Next().(types.String)
		total += len(s) + between
	}
	return total
}

// formatted reports whether the result of format is too long. It counts the arguments with their nested values, and the digits
// that the format string asks for.
func formatted(args []ref.Val) bool {
	s, _ := args[0].(types.String)
	total := len(s) + textBytes(args[1], maxBytes)
	for rest := string(s); total <= maxBytes; {
		_, after, found := strings.Cut(rest, "%.")
		if !found {
			return false
		}
		digits := 0
		for ; digits < len(after) && '0' <= after[digits] && after[digits] <= '9'; digits++ {
		}
		if digits > 6 {
			return true
		}
		precision := 0
		for _, c := range after[:digits] {
			precision = precision*10 + int(c-'0')
		}
		total += precision
		rest = after
	}
	return true
}

// textBytes returns the approximate length of a value as text. It stops counting above most.
func textBytes(v ref.Val, most int) int {
	total := 8
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && total <= most; {
			total += textBytes(it.Next(), most-total)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && total <= most; {
			key := it.Next()
			total += textBytes(key, most-total) + textBytes(v.Get(key), most-total)
		}
	}
	return total
}

// pairs subtracts the number of comparisons that comparing two values may need from left, and reports whether the result is not
// negative. Values that implement [Tree] count their comparisons themselves.
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

// pairsWithEach calls pairs for each element of a list and a value.
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

// pairsOfAll calls pairs for each element of v that is a list or a map and each element of w. cel-go counts the comparisons of
// other elements.
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
