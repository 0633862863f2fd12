package library

import (
	"fmt"
	"net/netip"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// IPValue is a value of type [IPType].
type IPValue struct{ netip.Addr }

// IPType is the type of the result of ip(...).
var IPType = celgo.OpaqueType("net.IP")

// IP returns the library with ip, isIP and ip.isCanonical, which take strings, and the methods of addresses. Addresses with a
// zone, and IPv4 addresses that are mapped to IPv6, are invalid.
func IP() celgo.EnvOption {
	is := func(name, id string, f func(netip.Addr) bool) function {
		return method(name, id, args(IPType), celgo.BoolType, on(func(v IPValue) ref.Val { return types.Bool(f(v.Addr)) }))
	}
	return celgo.Lib(lib{name: "kubernetes.net.ip", types: args(IPType), functions: []function{
		global("ip", "string_to_ip", args(celgo.StringType), IPType, onString(toIP)),
		method("family", "ip_family", args(IPType), celgo.IntType, on(family)),
		global("ip.isCanonical", "ip_is_canonical", args(celgo.StringType), celgo.BoolType, onString(func(s string) ref.Val {
			addr, err := parseIP(s)
			if err != nil {
				return types.NewErr("%v", err)
			}
			return types.Bool(addr.String() == s)
		})),
		is("isUnspecified", "ip_is_unspecified", netip.Addr.IsUnspecified),
		is("isLoopback", "ip_is_loopback", netip.Addr.IsLoopback),
		is("isLinkLocalMulticast", "ip_is_link_local_multicast", netip.Addr.IsLinkLocalMulticast),
		is("isLinkLocalUnicast", "ip_is_link_local_unicast", netip.Addr.IsLinkLocalUnicast),
		is("isGlobalUnicast", "ip_is_global_unicast", netip.Addr.IsGlobalUnicast),
		global("isIP", "is_ip", args(celgo.StringType), celgo.BoolType, onString(func(s string) ref.Val {
			_, err := parseIP(s)
			return types.Bool(err == nil)
		})),
		global("string", "ip_to_string", args(IPType), celgo.StringType,
			on(func(v IPValue) ref.Val { return types.String(v.String()) })),
	}})
}

func toIP(s string) ref.Val {
	addr, err := parseIP(s)
	if err != nil {
		return types.NewErr("%v", err)
	}
	return IPValue{addr}
}

func parseIP(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("IP Address %q parse error during conversion from string: %v", s, err)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("IP address %q with zone value is not allowed", s)
	case addr.Is4In6():
		return netip.Addr{}, fmt.Errorf("IPv4-mapped IPv6 address %q is not allowed", s)
	}
	return addr, nil
}

func family(v IPValue) ref.Val {
	if v.Is4() {
		return types.Int(4)
	}
	return types.Int(6)
}

// ConvertToNative implements ref.Val.
func (v IPValue) ConvertToNative(to reflect.Type) (any, error) {
	return native(v.Addr, v.String, "IP", to)
}

// ConvertToType implements ref.Val.
func (v IPValue) ConvertToType(to ref.Type) ref.Val {
	if to == types.StringType {
		return types.String(v.String())
	}
	return convert(v, IPType, to)
}

// Equal implements ref.Val.
func (v IPValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(IPValue)
	if !ok {
		return noOverload(other)
	}
	return types.Bool(v.Addr == o.Addr)
}

// Type implements ref.Val.
func (v IPValue) Type() ref.Type { return IPType }

// Value implements ref.Val.
func (v IPValue) Value() any { return v.Addr }

// Size implements traits.Sizer. It is the length of the address in bytes.
func (v IPValue) Size() ref.Val { return types.Int((v.BitLen() + 7) / 8) }
