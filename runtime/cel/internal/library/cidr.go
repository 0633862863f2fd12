package library

import (
	"fmt"
	"net/netip"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// CIDRValue is a value of type [CIDRType].
type CIDRValue struct{ netip.Prefix }

// CIDRType is the type of the result of cidr(...).
var CIDRType = celgo.OpaqueType("net.CIDR")

// CIDR returns the library with cidr and isCIDR, which take strings, and the methods of networks. It needs [IP].
func CIDR() celgo.EnvOption {
	text := celgo.StringType
	return celgo.Lib(lib{name: "kubernetes.net.cidr", types: args(CIDRType), functions: []function{
		global("cidr", "string_to_cidr", args(text), CIDRType, onString(toCIDR)),
		{"containsIP", []celgo.FunctionOpt{
			celgo.MemberOverload("cidr_contains_ip_string", args(CIDRType, text), celgo.BoolType, onText(func(v CIDRValue, s string) ref.Val {
				addr, err := parseIP(s)
				if err != nil {
					return types.NoSuchOverloadErr() // as in kube-apiserver, the error does not have the reason
				}
				return types.Bool(v.Contains(addr))
			})),
			celgo.MemberOverload("cidr_contains_ip_ip", args(CIDRType, IPType), celgo.BoolType,
				onBoth(func(v CIDRValue, w IPValue) ref.Val { return types.Bool(v.Contains(w.Addr)) })),
		}},
		{"containsCIDR", []celgo.FunctionOpt{
			celgo.MemberOverload("cidr_contains_cidr_string", args(CIDRType, text), celgo.BoolType, onText(func(v CIDRValue, s string) ref.Val {
				w, ok := toCIDR(s).(CIDRValue)
				if !ok {
					return toCIDR(s)
				}
				return contains(v, w)
			})),
			celgo.MemberOverload("cidr_contains_cidr", args(CIDRType, CIDRType), celgo.BoolType, onBoth(contains)),
		}},
		method("ip", "cidr_ip", args(CIDRType), IPType, on(func(v CIDRValue) ref.Val { return IPValue{v.Addr()} })),
		method("prefixLength", "cidr_prefix_length", args(CIDRType), celgo.IntType,
			on(func(v CIDRValue) ref.Val { return types.Int(v.Bits()) })),
		method("masked", "cidr_masked", args(CIDRType), CIDRType, on(func(v CIDRValue) ref.Val { return CIDRValue{v.Masked()} })),
		global("isCIDR", "is_cidr", args(text), celgo.BoolType, onString(func(s string) ref.Val {
			_, ok := toCIDR(s).(CIDRValue)
			return types.Bool(ok)
		})),
		global("string", "cidr_to_string", args(CIDRType), text, on(func(v CIDRValue) ref.Val { return types.String(v.String()) })),
	}})
}

// toCIDR parses a network. The address may have bits beyond the prefix.
func toCIDR(s string) ref.Val {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		err = fmt.Errorf("network address parse error during conversion from string: %v", err)
	} else if prefix.Addr().Is4In6() {
		err = fmt.Errorf("IPv4-mapped IPv6 address %q is not allowed", s)
	}
	if err != nil {
		return types.NewErr("network address parse error during conversion from string: %v", err)
	}
	return CIDRValue{prefix}
}

// contains reports whether network v contains network w or is equal to it.
func contains(v, w CIDRValue) ref.Val {
	return types.Bool(v.Overlaps(w.Prefix) && v.Bits() <= w.Bits())
}

// ConvertToNative implements ref.Val.
func (v CIDRValue) ConvertToNative(to reflect.Type) (any, error) {
	return native(v.Prefix, v.String, "CIDR", to)
}

// ConvertToType implements ref.Val.
func (v CIDRValue) ConvertToType(to ref.Type) ref.Val {
	if to == types.StringType {
		return types.String(v.String())
	}
	return convert(v, CIDRType, to)
}

// Equal implements ref.Val.
func (v CIDRValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(CIDRValue)
	if !ok {
		return noOverload(other)
	}
	return types.Bool(v.Prefix == o.Prefix)
}

// Type implements ref.Val.
func (v CIDRValue) Type() ref.Type { return CIDRType }

// Value implements ref.Val.
func (v CIDRValue) Value() any { return v.Prefix }

// Size implements traits.Sizer. It is the length of the prefix in bytes.
func (v CIDRValue) Size() ref.Val { return types.Int((v.Bits() + 7) / 8) }
