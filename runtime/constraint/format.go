package constraint

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// textFormats returns the formats of texts that Kubernetes checks.
func textFormats() []string {
	return []string{
		"bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "duration", "email", "hexcolor", "hostname",
		"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "password", "rgbcolor", "ssn",
		"uri", "uuid", "uuid3", "uuid4", "uuid5",
	}
}

// formatCheck returns the check of a format, which is nil if every value is valid. It returns false for an unknown format.
func formatCheck(name string, c class) (check, bool) {
	switch {
	case name == "":
		return nil, true
	case c == integer && name == "int32":
		return mistyped(name, fitsInt32), true
	case c == integer && name == "int64", c == float && (name == "float" || name == "double"):
		return nil, true
	case c != text || !slices.Contains(textFormats(), name):
		return nil, false
	}
	formats := strfmt.NewFormats()
	return mistyped(name, func(v reflect.Value) bool { return formats.Validates(name, v.String()) }), true
}

func mistyped(name string, fits func(reflect.Value) bool) check {
	return func(v reflect.Value) complaint {
		if fits(v) {
			return nil
		}
		shown, value := plain(v), ""
		if s, ok := shown.(string); ok {
			value = fmt.Sprintf(": %q", s)
		}
		return one(func(at *field.Path) *field.Error {
			return field.TypeInvalid(at, shown, fmt.Sprintf("%s in body must be of type %s%s", at, name, value))
		}, "format="+name)
	}
}

func fitsInt32(v reflect.Value) bool {
	if v.CanInt() {
		return v.Int() >= math.MinInt32 && v.Int() <= math.MaxInt32
	}
	return v.Uint() <= math.MaxInt32
}
