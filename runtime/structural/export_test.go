package structural

import "github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"

// Allows is the quick verdict about a value, which Validate trusts if it is a good one.
func Allows(s *Schema, value any) bool { return s.allows(value, NewEffort()) }

// Findings are the texts of what the slow way finds wrong with a value, and how many steps it counts.
func Findings(s *Schema, value any) ([]string, int) {
	found := judge{effort: NewEffort()}.value(s, value, "", former{})
	var texts []string
	for _, err := range found.errs {
		texts = append(texts, err.Error())
	}
	return texts, found.steps
}

// ListsFit is the quick verdict about lists, which may be false although they are fine.
func ListsFit(s *Schema, value any) bool { return s.listsFit(value) }

// ListErrors is the slow way.
func ListErrors(s *Schema, value any) int {
	var all jsonvalue.Errors
	s.listErrors(&all, nil, value)
	return len(all.List)
}

// IsCanonical says that metadata needs no coercion.
func IsCanonical(metadata any) bool { return jsonvalue.IsCanonical(metadata) }

// Recode coerces metadata by way of an ObjectMeta, also if it needs none.
func Recode(object map[string]any) ([]string, error) {
	return jsonvalue.RecodeMetadata(object, false, 10)
}
