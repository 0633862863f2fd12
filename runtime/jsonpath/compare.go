package jsonpath

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

var (
	errSeveral = errors.New("only one value can be compared at a time")
	errKinds   = errors.New("values of these types cannot be compared")
)

// compare evaluates a comparison. Both operands must be strings, bools, whole numbers or other numbers; bools allow only == and
// !=.
func (e *evaluation) compare(operator string, a, b any) (bool, error) {
	equality := false
	switch operator {
	case "==", "!=":
		equality = true
	case "<", "<=", ">", ">=":
	default:
		return false, fmt.Errorf("unrecognized filter operator %s", operator)
	}
	order, ordered, err := e.orderOf(a, b, equality)
	if equality {
		return err == nil && (order == 0) == (operator == "=="), err
	}
	if err == nil && !ordered {
		err = errKinds
	}
	if err != nil {
		return false, err
	}
	switch operator {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	default:
		return order >= 0, nil
	}
}

// orderOf returns a negative number, 0 or a positive number if a is less than, equal to or larger than b. ordered is false if the
// two values have no order. With equality the order only says whether the values are equal.
func (e *evaluation) orderOf(a, b any, equality bool) (order int, ordered bool, err error) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			order, err = e.orderOfTexts(a, b, equality)
			return order, true, err
		}
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b), true, nil
		}
	case bool:
		if b, ok := b.(bool); ok {
			if a == b {
				return 0, false, nil
			}
			return 1, false, nil
		}
	}
	x, ok := wholeOf(a)
	y, ok2 := wholeOf(b)
	if !ok || !ok2 {
		return 0, false, errKinds
	}
	return cmp.Compare(x, y), true, nil
}

// orderOfTexts is the function orderOf for texts. It counts the bytes that it reads.
func (e *evaluation) orderOfTexts(a, b string, equality bool) (int, error) {
	switch {
	case equality && len(a) != len(b):
		return 1, nil
	case !e.spend(min(len(a), len(b)) / stepBytes):
		return 0, e.fatal
	case equality && a == b:
		return 0, nil
	case equality:
		return 1, nil
	}
	return strings.Compare(a, b), nil
}

// wholeOf returns a whole number, which is from JSON, from a path, or a byte of a string.
func wholeOf(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case byte:
		return int64(v), true
	}
	return 0, false
}
