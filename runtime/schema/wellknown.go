package schema

import (
	"encoding/json"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The methods by which a Go type defines the form of its JSON, by the convention of k8s.io/kube-openapi.
type (
	schemaTyper   interface{ OpenAPISchemaType() []string }
	schemaFormat  interface{ OpenAPISchemaFormat() string }
	schemaOneOfer interface{ OpenAPIV3OneOfTypes() []string }
)

// wellKnown returns the schema of a type whose schema does not depend on its fields.
func wellKnown(t reflect.Type) (spec.Schema, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return typed("string", "date-time"), true
	case reflect.TypeFor[json.Number]():
		return typed("number", ""), true
	case reflect.TypeFor[json.RawMessage]():
		return anything(), true
	case reflect.TypeFor[metav1.FieldsV1]():
		return described(typed("object", ""), "FieldsV1 stores a set of fields in a data structure like a Trie, in JSON format."), true
	case reflect.TypeFor[apiruntime.RawExtension]():
		return described(withAnyFields(typed("object", "")), "RawExtension is used to hold extensions in external versions."), true
	case reflect.TypeFor[unstructured.Unstructured]():
		s := withAnyFields(typed("object", ""))
		s.Extensions = withExtension(s.Extensions, extensionEmbedded, true)
		return s, true
	}
	v, ok := methods[schemaTyper](t)
	if !ok {
		return spec.Schema{}, false
	}
	return described(selfDescribed(t, v.OpenAPISchemaType()), wellKnownText(t)), true
}

// selfDescribed returns the schema of a type that has an OpenAPISchemaType method. No types mean any type; several types go to
// oneOf.
func selfDescribed(t reflect.Type, types []string) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: types}}
	if v, ok := methods[schemaFormat](t); ok {
		s.Format = v.OpenAPISchemaFormat()
	}
	if v, ok := methods[schemaOneOfer](t); ok && len(v.OpenAPIV3OneOfTypes()) > 0 {
		s.Type = nil
		for _, name := range v.OpenAPIV3OneOfTypes() {
			s.OneOf = append(s.OneOf, typed(name, ""))
		}
	}
	if len(s.Type) == 0 && len(s.OneOf) == 0 {
		return withAnyFields(s)
	}
	return s
}

// wellKnownText returns the description of a Kubernetes type that is a single value; these types have no SwaggerDoc method.
func wellKnownText(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return "Time is a wrapper around time.Time which supports correct marshaling to YAML and JSON.  Wrappers are provided for many of the factory methods that the time package offers."
	case reflect.TypeFor[metav1.MicroTime]():
		return "MicroTime is version of Time with microsecond level precision."
	case reflect.TypeFor[metav1.Duration]():
		return "Duration is a wrapper around time.Duration which supports correct marshaling to YAML and JSON. In particular, it marshals into strings, which can be used as map keys in json."
	case reflect.TypeFor[intstr.IntOrString]():
		return "IntOrString is a type that can hold an int32 or a string. When used in JSON or YAML marshalling and unmarshalling, it produces or consumes the inner type. This allows you to have, for example, a JSON field that can accept a name or number."
	case reflect.TypeFor[resource.Quantity]():
		return "Quantity is a fixed-point representation of a number, such as 100m, 1.5 or 2Gi. In JSON it is a string, or a number, of a sign, digits with an optional fraction, and an optional suffix: a binary one (Ki, Mi, Gi, Ti, Pi, Ei), a decimal one (m, k, M, G, T, P, E) or an exponent (e3)."
	}
	return ""
}

func described(s spec.Schema, text string) spec.Schema {
	s.Description = text
	return s
}
