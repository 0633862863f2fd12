package library

import (
	"errors"
	"reflect"
	"strings"

	"github.com/blang/semver/v4"
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// SemverValue is a value of type [SemverType].
type SemverValue struct{ semver.Version }

// SemverType is the type of the result of semver(...).
var SemverType = celgo.ObjectType("kubernetes.Semver")

// Semver returns the library with semver and isSemver, which take strings and an optional normalization, and with the parts and
// comparisons of versions. https://semver.org
func Semver() celgo.EnvOption {
	one, two := args(SemverType), args(SemverType, SemverType)
	text, normalized := args(celgo.StringType), args(celgo.StringType, celgo.BoolType)
	part := func(name, id string, get func(semver.Version) uint64) function {
		return method(name, id, one, celgo.IntType, on(func(v SemverValue) ref.Val { return types.Int(get(v.Version)) }))
	}
	return celgo.Lib(lib{name: "kubernetes.Semver", functions: []function{
		{"semver", []celgo.FunctionOpt{
			celgo.Overload("string_to_semver", text, SemverType, onString(func(s string) ref.Val { return toSemver(s, false) })),
			celgo.Overload("string_bool_to_semver", normalized, SemverType, onNormalized(toSemver)),
		}},
		{"isSemver", []celgo.FunctionOpt{
			celgo.Overload("is_semver_string", text, celgo.BoolType, onString(func(s string) ref.Val { return isSemver(s, false) })),
			celgo.Overload("is_semver_string_bool", normalized, celgo.BoolType, onNormalized(isSemver)),
		}},
		method("isGreaterThan", "semver_is_greater_than", two, celgo.BoolType,
			onBoth(func(v, w SemverValue) ref.Val { return types.Bool(v.Compare(w.Version) == 1) })),
		method("isLessThan", "semver_is_less_than", two, celgo.BoolType,
			onBoth(func(v, w SemverValue) ref.Val { return types.Bool(v.Compare(w.Version) == -1) })),
		method("compareTo", "semver_compare_to", two, celgo.IntType,
			onBoth(func(v, w SemverValue) ref.Val { return types.Int(v.Compare(w.Version)) })),
		part("major", "semver_major", func(v semver.Version) uint64 { return v.Major }),
		part("minor", "semver_minor", func(v semver.Version) uint64 { return v.Minor }),
		part("patch", "semver_patch", func(v semver.Version) uint64 { return v.Patch }),
	}})
}

// onNormalized binds a function of a string and a boolean that requests normalization.
func onNormalized(f func(string, bool) ref.Val) celgo.OverloadOpt {
	return onBoth(func(s types.String, normalize types.Bool) ref.Val { return f(string(s), bool(normalize)) })
}

func toSemver(s string, normalize bool) ref.Val {
	v, err := parseSemver(s, normalize)
	if err != nil {
		return types.WrapErr(err)
	}
	return SemverValue{v}
}

func isSemver(s string, normalize bool) ref.Val {
	_, err := parseSemver(s, normalize)
	return types.Bool(err == nil)
}

// parseSemver parses a version. Normalization removes a leading v and leading zeros of numbers, and adds missing parts of
// major.minor.patch as zeros.
func parseSemver(s string, normalize bool) (semver.Version, error) {
	if !normalize {
		return semver.Parse(s)
	}
	parts := strings.SplitN(strings.TrimPrefix(s, "v"), ".", 3)
	for i, part := range parts {
		if len(part) < 2 {
			continue
		}
		part = strings.TrimLeft(part, "0")
		if part == "" || part[0] < '0' || part[0] > '9' {
			part = "0" + part
		}
		parts[i] = part
	}
	if len(parts) < 3 && strings.ContainsAny(parts[len(parts)-1], "+-") {
		return semver.Version{}, errors.New("short version cannot contain PreRelease/Build meta data")
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	return semver.Parse(strings.Join(parts, "."))
}

// ConvertToNative implements ref.Val.
func (v SemverValue) ConvertToNative(to reflect.Type) (any, error) {
	return native(v.Version, v.String, "Semver", to)
}

// ConvertToType implements ref.Val.
func (v SemverValue) ConvertToType(to ref.Type) ref.Val { return convert(v, SemverType, to) }

// Equal implements ref.Val.
func (v SemverValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(SemverValue)
	if !ok {
		return noOverload(other)
	}
	return types.Bool(v.EQ(o.Version))
}

// Type implements ref.Val.
func (v SemverValue) Type() ref.Type { return SemverType }

// Value implements ref.Val.
func (v SemverValue) Value() any { return v.Version }
