package structural

import "github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"

// Allows returns the fast verdict about a value. Validate relies on it if it is true.
func Allows(s *Schema, value any) bool { return s.allows(value, NewEffort()) }

// Findings returns the texts of the errors of a value that the slow code finds, and the number of steps.
func Findings(s *Schema, value any) ([]string, int) {
	found := judge{effort: NewEffort()}.value(s, value, "", former{})
	var texts []string
	for _, err := range found.errs {
		texts = append(texts, err.Error())
	}
	return texts, found.steps
}

// ListsFit returns the fast verdict about lists. It may be false for valid lists.
func ListsFit(s *Schema, value any) bool { return s.listsFit(value) }

// ListErrors returns the number of errors that the slow code finds in lists.
func ListErrors(s *Schema, value any) int {
	var all jsonvalue.Errors
	s.listErrors(&all, nil, value)
	return len(all.List)
}

// IsCanonical reports whether metadata needs no coercion.
func IsCanonical(metadata any) bool { return jsonvalue.IsCanonical(metadata) }

// Recode converts metadata by an ObjectMeta, even if it is canonical.
func Recode(object map[string]any) ([]string, error) {
	return jsonvalue.RecodeMetadata(object, false, 10)
}
