package patch

import smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

// maxMisfits is the maximum number of values in an object with another type than in the schema. structured-merge-diff makes an
// error of some 600 bytes for each, so an object with more is not converted to a typed value.
const maxMisfits = 1000

// misfits counts the values whose type is not that of the schema. It stops above maxMisfits.
type misfits struct {
	schema *smdschema.Schema
	found  int
}

func (m *misfits) at(t smdschema.TypeRef, v any) {
	if v == nil {
		return
	}
	atom, _ := m.schema.Resolve(t)
	var fits bool
	switch v := v.(type) {
	case map[string]any:
		if fits = atom.Map != nil; fits {
			m.members(atom.Map, v)
		}
	case []any:
		if fits = atom.List != nil; fits {
			for i := 0; i < len(v) && m.found <= maxMisfits; i++ {
				m.at(atom.List.ElementType, v[i])
			}
		}
	default:
		fits = atom.Scalar != nil && isOf(*atom.Scalar, v)
	}
	if !fits {
		m.found++
	}
}

func (m *misfits) members(t *smdschema.Map, of map[string]any) {
	for name, member := range of {
		ref := t.ElementType
		if field, ok := t.FindField(name); ok {
			ref = field.Type
		} else if ref == (smdschema.TypeRef{}) {
			m.found++ // structured-merge-diff does not check the other members then
			return
		}
		if m.at(ref, member); m.found > maxMisfits {
			return
		}
	}
}

// isOf reports whether v, which is neither an object nor a list, is a scalar of type t.
func isOf(t smdschema.Scalar, v any) bool {
	switch v.(type) {
	case string:
		return t == smdschema.String || t == smdschema.Untyped
	case bool:
		return t == smdschema.Boolean || t == smdschema.Untyped
	}
	return t == smdschema.Numeric || t == smdschema.Untyped
}
