package library

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// What a call may do that is not stopped by its cost in time. All but comparisons is what would cost more than an evaluation
// may, so stopping it changes nothing but when.
const (
	// MaxElements is how many elements of lists and maps, with those in them, a call may look at.
	MaxElements = 1_000_000
	// maxBytes is how long a string may be made. One that is longer costs too much to read.
	maxBytes = 10 * MaxElements
	// maxComparisons is how often elements may be compared.
	maxComparisons = 5 * MaxElements
	// maxCharacters is how often characters may be compared.
	maxCharacters = 1000 * MaxElements
	// maxDigits is how long a quantity may be, and how many zeros it may have.
	maxDigits = 10_000
)

// Stop ends an evaluation as if its cost were too much. It panics, which is how cel-go itself ends one: its Eval recovers.
func Stop() {
	panic(interpreter.EvalCancelledError{
		Cause:   interpreter.CostLimitExceeded,
		Message: "operation cancelled: actual cost limit exceeded",
	})
}

// Tree is a list or a map that is as large as it looks: one that is read from an object, not made in an expression. It need
// not be counted before it is compared.
type Tree interface{ IsTree() }

// Guarded says whether calls of a function should be looked at before.
func Guarded(function string) bool {
	switch function {
	case "replace", "join", "format", "flatten", "distinct", "sets.contains", "sets.intersects", "sets.equivalent", "indexOf",
		"lastIndexOf", "includes", "find", "findAll", "validate", "quantity", "isQuantity":
		return true
	}
	return false
}

// TooMuch says whether a call should not be made: of functions that are [Guarded], and of the operators ==, !=, in and of
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

// costs says whether a call costs more than any may.
func costs(kind costKind, overload string, args []ref.Val) bool {
	cost, ok := callCost(kind, overload, args, types.NullValue)
	return ok && cost > MaxElements
}

// isAggregate says whether a value has others in it.
func isAggregate(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

// isContainer says whether a value has others in it that need counting.
func isContainer(v ref.Val) bool {
	_, tree := v.(Tree)
	return !tree && isAggregate(v)
}

// bounded says whether there are at most so many elements in a value, and in those.
func bounded(v ref.Val, most int) bool { return count(v, &most) }

// count takes the elements of a value from what is left.
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

// tooManyPairs says whether comparing two values is too much.
func tooManyPairs(v, w ref.Val) bool {
	left := MaxElements
	return !pairs(v, w, &left)
}

// tooManyComparisons says whether comparing a value with each element of a list is too much: only if both have elements in
// them.
func tooManyComparisons(list, v ref.Val) bool {
	left := MaxElements
	return isAggregate(v) && !pairsWithEach(list, v, &left)
}

// allPairs says whether comparing each element of a list with each of another one is too much.
func allPairs(v, w ref.Val) bool {
	left := maxComparisons
	return size(v)*size(w) > MaxElements || !pairsOfAll(v, w, &left)
}

// replacedBytes is how long a string becomes.
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

// joinedBytes is how long a list becomes as a string, or at least that it is too long.
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

// formatted says whether what is formatted is too long: the values, with those in them, or digits that are asked for.
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

// textBytes is how long a value is as text, about, or at least that it is more than so much.
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
