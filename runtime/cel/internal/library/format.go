package library

import (
	"net/url"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	namevalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// FormatValue is a value of type [FormatType].
type FormatValue struct {
	name      string
	validate  func(string) []string
	regexSize int // size of a regular expression for this format, which is the cost of a validation
}

// FormatType is the type of the result of format.named(...).
var FormatType = celgo.ObjectType("kubernetes.NamedFormat")

// Format returns the library with the formats of strings: format.named(name), whose result is optional, and one function for each
// format.
func Format() celgo.EnvOption {
	formats := formats()
	functions := []function{
		method("validate", "format-validate", args(FormatType, celgo.StringType), celgo.OptionalType(celgo.ListType(celgo.StringType)),
			onText(judge)),
		global("format.named", "format-named", args(celgo.StringType), celgo.OptionalType(FormatType), onString(func(s string) ref.Val {
			if f, ok := formats[s]; ok {
				return types.OptionalOf(f)
			}
			return types.OptionalNone
		})),
	}
	for name, f := range formats {
		name = "format." + name
		functions = append(functions, global(name, name, args(), FormatType,
			decls.FunctionBinding(func(...ref.Val) ref.Val { return f })))
	}
	return celgo.Lib(lib{name: "kubernetes.format", functions: functions})
}

// judge returns the errors of a string, or an empty optional if it has none.
func judge(f FormatValue, s string) ref.Val {
	if faults := f.validate(s); len(faults) > 0 {
		return types.OptionalOf(types.NewStringList(types.DefaultTypeAdapter, faults))
	}
	return types.OptionalNone
}

// formats returns the formats by their names in expressions.
func formats() map[string]FormatValue {
	named := func(judge namevalidation.ValidateNameFunc, prefix bool) func(string) []string {
		return func(s string) []string { return judge(s, prefix) }
	}
	label, subdomain, old := namevalidation.NameIsDNSLabel, namevalidation.NameIsDNSSubdomain, namevalidation.NameIsDNS1035Label
	openAPI := func(name, fault string) func(string) []string {
		return func(s string) []string {
			if strfmt.Default.Validates(name, s) {
				return nil
			}
			return []string{fault}
		}
	}
	const date = len(strfmt.DateTimePattern)
	return map[string]FormatValue{
		"dns1123Label":           {"DNS1123Label", named(label, false), 30},
		"dns1123LabelPrefix":     {"DNS1123LabelPrefix", named(label, true), 30},
		"dns1123Subdomain":       {"DNS1123Subdomain", named(subdomain, false), 60},
		"dns1123SubdomainPrefix": {"DNS1123SubdomainPrefix", named(subdomain, true), 60},
		"dns1035Label":           {"DNS1035Label", named(old, false), 30},
		"dns1035LabelPrefix":     {"DNS1035LabelPrefix", named(old, true), 30},
		"qualifiedName":          {"QualifiedName", validation.IsQualifiedName, 60},
		"labelValue":             {"LabelValue", validation.IsValidLabelValue, 40},
		"uri":                    {"URI", uri, 1103},
		"uuid":                   {"uuid", openAPI("uuid", "does not match the UUID format"), len(strfmt.UUIDPattern)},
		"byte":                   {"byte", openAPI("byte", "invalid base64"), 84},
		"date":                   {"date", openAPI("date", "invalid date"), date},
		"datetime":               {"datetime", openAPI("datetime", "invalid datetime"), date},
	}
}

// uri returns the error of the URL parser.
func uri(s string) []string {
	if _, err := url.ParseRequestURI(s); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// ConvertToNative implements ref.Val.
func (f FormatValue) ConvertToNative(to reflect.Type) (any, error) {
	return native(nil, nil, "Format", to)
}

// ConvertToType implements ref.Val.
func (f FormatValue) ConvertToType(to ref.Type) ref.Val { return convert(f, FormatType, to) }

// Equal implements ref.Val.
func (f FormatValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(FormatValue)
	if !ok {
		return noOverload(other)
	}
	return types.Bool(f.name == o.name)
}

// Type implements ref.Val.
func (f FormatValue) Type() ref.Type { return FormatType }

// Value implements ref.Val.
func (f FormatValue) Value() any { return f }
