package library

import (
	"errors"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QuantityValue is a value of type [QuantityType].
type QuantityValue struct {
	*resource.Quantity
	// computed is true for results of add and sub. They equal other quantities only as the left operand.
	computed bool
}

// QuantityType is the type of the result of quantity(...).
var QuantityType = celgo.ObjectType("kubernetes.Quantity")

// Quantity returns the library with quantity and isQuantity, which take strings as in
// https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity, and with the arithmetic and comparisons of quantities.
func Quantity() celgo.EnvOption {
	type q = QuantityValue
	one, two := args(QuantityType), args(QuantityType, QuantityType)
	return celgo.Lib(lib{name: "kubernetes.quantity", functions: []function{
		global("quantity", "string_to_quantity", args(celgo.StringType), QuantityType, onString(parseQuantity)),
		global("isQuantity", "is_quantity_string", args(celgo.StringType), celgo.BoolType, onString(func(s string) ref.Val {
			_, err := resource.ParseQuantity(s)
			return types.Bool(err == nil)
		})),
		global("sign", "quantity_sign", one, celgo.IntType, on(func(v q) ref.Val { return types.Int(v.Sign()) })),
		method("isGreaterThan", "quantity_is_greater_than", two, celgo.BoolType,
			onBoth(func(v, w q) ref.Val { return types.Bool(v.compare(w) == 1) })),
		method("isLessThan", "quantity_is_less_than", two, celgo.BoolType,
			onBoth(func(v, w q) ref.Val { return types.Bool(v.compare(w) == -1) })),
		method("compareTo", "quantity_compare_to", two, celgo.IntType,
			onBoth(func(v, w q) ref.Val { return types.Int(v.compare(w)) })),
		method("asApproximateFloat", "quantity_get_float", one, celgo.DoubleType,
			on(func(v q) ref.Val { return types.Double(v.AsApproximateFloat64()) })),
		method("asInteger", "quantity_get_int", one, celgo.IntType, on(integer)),
		method("isInteger", "quantity_is_integer", one, celgo.BoolType, on(func(v q) ref.Val {
			_, ok := v.AsInt64()
			return types.Bool(ok)
		})),
		arithmetic("add", (*resource.Quantity).Add),
		arithmetic("sub", (*resource.Quantity).Sub),
	}})
}

func parseQuantity(s string) ref.Val {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return types.WrapErr(err)
	}
	return QuantityValue{Quantity: &q}
}

// compare returns -1, 0 or 1, the order of two quantities.
func (v QuantityValue) compare(w QuantityValue) int {
	computable(v.Quantity, w.Quantity)
	return v.Cmp(*w.Quantity)
}

// computable ends the evaluation if one of the quantities has so many zeros that writing it takes too long, such as 1e999999999.
func computable(all ...*resource.Quantity) {
	for _, q := range all {
		if _, small := q.AsInt64(); small {
			continue
		}
		own := q.DeepCopy() // AsDec changes its receiver
		if scale := own.AsDec().Scale(); scale > maxDigits || scale < -maxDigits {
			Stop()
		}
	}
}

func integer(v QuantityValue) ref.Val {
	i, ok := v.AsInt64()
	if !ok {
		return types.WrapErr(errors.New("cannot convert value to integer"))
	}
	return types.Int(i)
}

// arithmetic declares an operation of a quantity with a quantity or an integer.
func arithmetic(name string, apply func(*resource.Quantity, resource.Quantity)) function {
	compute := func(v QuantityValue, w resource.Quantity) ref.Val {
		result := v.DeepCopy()
		computable(&result, &w)
		apply(&result, w)
		return QuantityValue{Quantity: &result, computed: true}
	}
	return function{name, []celgo.FunctionOpt{
		celgo.MemberOverload("quantity_"+name, args(QuantityType, QuantityType), QuantityType,
			onBoth(func(v, w QuantityValue) ref.Val { return compute(v, *w.Quantity) })),
		celgo.MemberOverload("quantity_"+name+"_int", args(QuantityType, celgo.IntType), QuantityType,
			onBoth(func(v QuantityValue, w types.Int) ref.Val {
				return compute(v, *resource.NewQuantity(int64(w), resource.DecimalExponent))
			})),
	}}
}

// ConvertToNative implements ref.Val.
func (v QuantityValue) ConvertToNative(to reflect.Type) (any, error) {
	return native(v.Quantity, v.String, "Quantity", to)
}

// ConvertToType implements ref.Val.
func (v QuantityValue) ConvertToType(to ref.Type) ref.Val { return convert(v, QuantityType, to) }

// Equal implements ref.Val.
func (v QuantityValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(QuantityValue)
	if !ok || o.computed {
		return noOverload(other)
	}
	return types.Bool(v.compare(o) == 0)
}

// Type implements ref.Val.
func (v QuantityValue) Type() ref.Type { return QuantityType }

// Value implements ref.Val.
func (v QuantityValue) Value() any { return v.Quantity }
