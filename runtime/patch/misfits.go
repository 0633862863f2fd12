package patch

import smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

// maxMisfits is how many values of an object may be other than their schema says for it to be read as a typed value:
// structured-merge-diff writes an error of some 600 bytes about each.
const maxMisfits = 1000

// misfits counts the values that are not of the type that a schema says, until there are more than maxMisfits.
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
			m.found++ // structured-merge-diff looks at no other member then
			return
		}
		if m.at(ref, member); m.found > maxMisfits {
			return
		}
	}
}

// isOf reports whether v, which is no object and no list, is a scalar of type t.
func isOf(t smdschema.Scalar, v any) bool {
	switch v.(type) {
	case string:
		return t == smdschema.String || t == smdschema.Untyped
	case bool:
		return t == smdschema.Boolean || t == smdschema.Untyped
	}
	return t == smdschema.Numeric || t == smdschema.Untyped
}
