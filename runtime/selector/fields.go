package selector

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// hashedFields is a field selector that also has its requirements by field.
type hashedFields struct {
	fields.Selector // implements the other methods
	rules           []fieldRule
	nothing         bool // it selects nothing
}

// fieldRule holds the requirements for one field.
type fieldRule struct {
	field string
	exact bool
	value string   // the required value if exact is set
	out   []string // excluded values, sorted
}

func newHashedFields(s fields.Selector, requirements fields.Requirements) *hashedFields {
	h := &hashedFields{Selector: s}
	at := map[string]int{}
	for _, r := range requirements {
		i, ok := at[r.Field]
		if !ok {
			i = len(h.rules)
			at[r.Field] = i
			h.rules = append(h.rules, fieldRule{field: r.Field})
		}
		rule := &h.rules[i]
		switch {
		case r.Operator == selection.NotEquals:
			rule.out = append(rule.out, r.Value)
		case rule.exact && rule.value != r.Value:
			h.nothing = true
		default:
			rule.exact, rule.value = true, r.Value
		}
	}
	for i := range h.rules {
		slices.Sort(h.rules[i].out)
	}
	return h
}

// Matches implements fields.Selector.
func (h *hashedFields) Matches(fs fields.Fields) bool {
	if h.nothing {
		return false
	}
	for i := range h.rules {
		rule := &h.rules[i]
		value := fs.Get(rule.field)
		if rule.exact && value != rule.value || has(rule.out, value) {
			return false
		}
	}
	return true
}
