package crd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maker makes schemas that are large in some respect, and values for them.
type maker struct {
	*rand.Rand
	left int // remaining number of schemas and values
}

// few returns mostly a small number, and sometimes a large one.
func (m *maker) few(most int) int {
	if m.IntN(8) == 0 {
		return m.IntN(most)
	}
	return m.IntN(4)
}

func (m *maker) name() string {
	name := make([]byte, 3+m.few(300))
	for i := range name {
		name[i] = byte('a' + m.IntN(26))
	}
	return string(name)
}

// branches returns schemas for an anyOf and the like.
func (m *maker) branches() []apiextensionsv1.JSONSchemaProps {
	all := make([]apiextensionsv1.JSONSchemaProps, m.few(200))
	for i := range all {
		low := float64(i)
		all[i].Minimum = &low
		if m.IntN(8) == 0 {
			all[i].Pattern = fmt.Sprintf("(x?){%d}y", m.IntN(40))
		}
		if m.left--; m.left > 0 && m.IntN(100) == 0 {
			all[i].Not = &apiextensionsv1.JSONSchemaProps{AnyOf: m.branches()}
		}
	}
	return all
}

func (m *maker) schema(depth int) apiextensionsv1.JSONSchemaProps {
	m.left--
	s := apiextensionsv1.JSONSchemaProps{Nullable: depth > 0 && m.IntN(5) == 0}
	switch kind := m.IntN(6); {
	case depth > 8 || m.left < 0 || kind == 0:
		s.Type, s.AnyOf = []string{"string", "integer", "number", "boolean"}[m.IntN(4)], m.branches()
		for range m.few(2000) {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%d", m.IntN(9999))})
		}
	case kind == 1 && depth > 0:
		items := m.schema(depth + 1)
		s.Type, s.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
	case kind == 2 && depth > 0:
		others := m.schema(depth + 1)
		s.Type, s.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &others}
	default:
		s.Type, s.Properties = "object", map[string]apiextensionsv1.JSONSchemaProps{}
		for range 1 + m.few(200) {
			s.Properties[m.name()] = m.schema(depth + 1)
		}
	}
	if depth > 0 && m.IntN(3) == 0 {
		value := m.empty(&s)
		if m.IntN(50) == 0 {
			value = m.value(&s)
		}
		s.Default = &apiextensionsv1.JSON{}
		s.Default.Raw, _ = json.Marshal(value)
	}
	if m.IntN(6) == 0 {
		for i := range m.few(50) {
			s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: fmt.Sprintf("%d >= 0", i)})
		}
	}
	return s
}

// empty returns a value with many places for defaults, or nil for schemas other than lists and objects.
func (m *maker) empty(s *apiextensionsv1.JSONSchemaProps) any {
	switch s.Type {
	case "array":
		list := []any{}
		for range m.few(100) {
			if element := m.empty(s.Items.Schema); element != nil {
				list = append(list, element)
			}
		}
		return list
	case "object":
		return map[string]any{}
	}
	return nil
}

// value returns a value that is valid by a schema, or nearly so.
func (m *maker) value(s *apiextensionsv1.JSONSchemaProps) any {
	m.left--
	switch s.Type {
	case "string":
		return m.name()
	case "boolean":
		return true
	case "array":
		list := []any{}
		for range m.few(3000) {
			if m.left < 0 {
				break
			}
			list = append(list, m.value(s.Items.Schema))
		}
		return list
	case "object":
		object := map[string]any{}
		for name, property := range s.Properties {
			if m.IntN(2) == 0 {
				object[name] = m.value(&property)
			}
		}
		for range m.few(500) {
			if s.AdditionalProperties != nil && m.left > 0 {
				object[m.name()] = m.value(s.AdditionalProperties.Schema)
			}
		}
		return object
	}
	return int64(m.IntN(9999))
}

// FuzzHostile makes definitions that are large in random ways. An accepted definition is served, and its objects are pruned,
// defaulted, validated and published. Neither that nor the validation of the definition may allocate more than the bound.
func FuzzHostile(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(1000))
	}
	compiler, err := celrules.NewCompiler()
	if err != nil {
		f.Fatal(err)
	}
	validator := definition.NewValidator(compiler)
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		m := &maker{rand.New(rand.NewPCG(seed, 1)), int(size)} //nolint:gosec // what is random is to come again
		root := m.schema(0)
		root.Type = "object"
		d := definitionOf("fuzzes", "Fuzz", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Schema.OpenAPIV3Schema = &root
		})
		m.left = 20_000
		object, _ := m.value(&root).(map[string]any)
		took := allocatedBy(func() {
			definition.SetDefaults(d)
			definition.PrepareForCreate(d)
			if errs := validator.Validate(t.Context(), d); len(errs) > 0 {
				return
			}
			d.Status.AcceptedNames = d.Spec.Names
			if _, err := groupOf(d, nil); err != nil {
				t.Errorf("accepted, but not served: %v", err)
			}
			if _, err := structural.OpenAPI(&root); err != nil {
				t.Errorf("accepted, but not published: %v", err)
			}
			s, err := structural.Compile(&root)
			if err != nil {
				t.Fatalf("accepted, but not compiled: %v", err)
			}
			rules, err := compiler.Compile(s)
			if err != nil {
				t.Fatalf("accepted, but its rules are not compiled: %v", err)
			}
			s.Prune(object, 100)
			s.SetDefaults(object)
			if errs := s.Validate(nil, object); celrules.Blocked(errs) == nil && rules != nil {
				rules.Validate(t.Context(), nil, object, celrules.Budget)
			}
			s.CheckLists(nil, object)
		})
		if took > 4<<30 {
			t.Errorf("%d MiB were allocated", took>>20)
		}
	})
}
