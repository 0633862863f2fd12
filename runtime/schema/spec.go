package schema

import (
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// wrapRef moves a reference into allOf if s has other content: OpenAPI 3.0 ignores everything beside a $ref.
func wrapRef(s spec.Schema) spec.Schema {
	ref := s.Ref
	if ref.String() == "" || reflect.DeepEqual(s, spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref}}) {
		return s
	}
	s.Ref = spec.Ref{}
	s.AllOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Ref: ref}}}
	return s
}

func reference(name string) spec.Schema {
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1") // RFC 6901, section 3
	ref, err := spec.NewRef(RefPrefix + name)
	if err != nil { // a group that is not a DNS name
		return anything()
	}
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref}}
}

func typed(name, format string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{name}, Format: format}}
}

// anything returns the schema of any JSON value.
func anything() spec.Schema { return withAnyFields(spec.Schema{}) }

// withAnyFields lets values have fields that s does not specify.
func withAnyFields(s spec.Schema) spec.Schema {
	s.Extensions = withExtension(s.Extensions, extensionPreserveUnknown, true)
	return s
}

func withExtension(e spec.Extensions, name string, value any) spec.Extensions {
	if e == nil {
		e = spec.Extensions{}
	}
	e[name] = value
	return e
}

// primitive returns the schema of a Go kind without parts. For values that JSON cannot hold, such as a channel, it allows
// anything.
func primitive(k reflect.Kind) spec.Schema {
	switch k {
	case reflect.Bool:
		return typed("boolean", "")
	case reflect.String:
		return typed("string", "")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16:
		return typed("integer", "int32")
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return typed("integer", "int64")
	case reflect.Float32:
		return typed("number", "float")
	case reflect.Float64:
		return typed("number", "double")
	}
	return anything()
}
