package selector

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// hashedLabels is a label selector that also has its requirements by label.
type hashedLabels struct {
	labels.Selector // implements the other methods
	rules           map[string]*labelRule
	needed          int // the number of labels that must be present
}

// labelRule holds the requirements for one label.
type labelRule struct {
	needed, barred bool
	in             []string // allowed values, sorted; nil: any value
	out            []string // excluded values, sorted
	above, below   *int64   // the value is an integer between them; nil: no bound
}

func newHashedLabels(s labels.Selector, requirements labels.Requirements) *hashedLabels {
	h := &hashedLabels{Selector: s, rules: map[string]*labelRule{}}
	for i := range requirements {
		r := &requirements[i]
		rule := h.rules[r.Key()]
		if rule == nil {
			rule = &labelRule{}
			h.rules[r.Key()] = rule
		}
		rule.add(r)
	}
	for _, rule := range h.rules {
		slices.Sort(rule.out)
		if rule.needed {
			h.needed++
		}
	}
	return h
}

// add adds a requirement to the rule.
func (l *labelRule) add(r *labels.Requirement) {
	values := r.ValuesUnsorted()
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		l.needed = true
		slices.Sort(values)
		if l.in != nil {
			values = slices.DeleteFunc(values, func(v string) bool { return !has(l.in, v) })
		}
		l.in = values
	case selection.NotIn, selection.NotEquals:
		l.out = append(l.out, values...)
	case selection.Exists:
		l.needed = true
	case selection.DoesNotExist:
		l.barred = true
	case selection.GreaterThan, selection.LessThan:
		l.needed = true
		bound, err := strconv.ParseInt(values[0], 10, 64) // the value was validated when the requirement was made
		switch {
		case err != nil:
			l.barred = true
		case r.Operator() == selection.GreaterThan && (l.above == nil || bound > *l.above):
			l.above = &bound
		case r.Operator() == selection.LessThan && (l.below == nil || bound < *l.below):
			l.below = &bound
		}
	default: // matches nothing
		l.needed, l.barred = true, true
	}
}

// allows reports whether the label may have the value.
func (l *labelRule) allows(value string) bool {
	if l.barred || l.in != nil && !has(l.in, value) || has(l.out, value) {
		return false
	}
	if l.above == nil && l.below == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (l.above == nil || n > *l.above) && (l.below == nil || n < *l.below)
}

// has reports whether values, which are sorted, contain value.
func has(values []string, value string) bool {
	_, found := slices.BinarySearch(values, value)
	return found
}

// Matches implements labels.Selector.
func (h *hashedLabels) Matches(ls labels.Labels) bool {
	m := matching{rules: h.rules}
	switch set := ls.(type) {
	case labels.Set:
		for label, value := range set {
			if !m.look(label, value) {
				return false
			}
		}
		return m.found == h.needed
	case interface {
		Each(yield func(label, value string) bool)
	}:
		refused := false
		set.Each(func(label, value string) bool {
			refused = !m.look(label, value)
			return !refused
		})
		return !refused && m.found == h.needed
	}
	for label, rule := range h.rules {
		value, ok := ls.Lookup(label)
		if ok && !rule.allows(value) || !ok && rule.needed {
			return false
		}
	}
	return true
}

// matching is the state of matching the labels of one object.
type matching struct {
	rules map[string]*labelRule
	found int // the number of required labels that were found
}

// look reports whether the rules allow a label.
func (m *matching) look(label, value string) bool {
	rule := m.rules[label]
	if rule == nil {
		return true
	}
	if rule.needed {
		m.found++
	}
	return rule.allows(value)
}
