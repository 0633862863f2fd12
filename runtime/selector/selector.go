// Package selector limits the size of label and field selectors of clients, and matches large selectors quickly.
//
// A [Limit] is the largest allowed size of a selector. A larger text is refused before it is parsed.
//
// [Labels] and [Fields] return a selector that selects the same objects. If there are many requirements, that selector examines
// each label of an object, or each field that it names, once, and not once for each requirement: the time for a match depends on
// the object, and hardly on the selector. Small selectors are returned unchanged. Selectors are immutable and may be used
// concurrently.
//
// The grammar is that of https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors and
// https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/.
package selector

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// DefaultLimit is the limit that a zero Limit means.
const DefaultLimit Limit = 400

// The number of values and bytes that a selector may have for each requirement of its Limit.
const (
	valuesEach = 10
	bytesEach  = 256
)

// Limit is the largest number of requirements, such as a=b, in a selector. 0 means DefaultLimit, and a negative Limit means no
// limit.
//
// The values in the sets of a label selector, a in (x,y), do not count as requirements: they take no more time to match, and
// clients use sets of some hundred names. All sets together may have ten times as many values as the Limit. The text of a
// selector may have 256 bytes for each requirement of the Limit, because the value of a field has no limit of its own.
// DefaultLimit allows 400 requirements, 4,000 values and 102,400 bytes.
type Limit int

// most returns the number of requirements that l allows; false means no limit.
func (l Limit) most() (int, bool) {
	switch {
	case l < 0:
		return 0, false
	case l == 0:
		return int(DefaultLimit), true
	}
	return int(l), true
}

// ParseLabels parses a label selector. The error says what is wrong, or which limit is exceeded, in words for users.
func (l Limit) ParseLabels(text string) (labels.Selector, error) {
	if err := l.checkLabels(text); err != nil {
		return nil, err
	}
	return labels.Parse(text)
}

// ParseFields parses a field selector. The error says what is wrong, or which limit is exceeded, in words for users.
func (l Limit) ParseFields(text string) (fields.Selector, error) {
	if err := l.checkFields(text); err != nil {
		return nil, err
	}
	return fields.ParseSelector(text)
}

func (l Limit) checkLabels(text string) error {
	most, ok := l.most()
	if !ok || len(text) < most { // each requirement but the last has at least two bytes
		return nil
	}
	if err := checkSize("label", text, most); err != nil {
		return err
	}
	requirements, values, inSet := 1, 0, false
	for i := range len(text) {
		switch text[i] {
		case '(':
			inSet = true
			values++
		case ')':
			inSet = false
		case ',':
			if inSet {
				values++
			} else {
				requirements++
			}
		}
	}
	switch {
	case requirements > most:
		return tooLarge("label", requirements, "requirements", most)
	case values > valuesEach*most:
		return tooLarge("label", values, "values in its sets", valuesEach*most)
	}
	return nil
}

func (l Limit) checkFields(text string) error {
	most, ok := l.most()
	if !ok || len(text) < most {
		return nil
	}
	if err := checkSize("field", text, most); err != nil {
		return err
	}
	requirements, start := 0, 0 // an empty requirement does not count
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',':
			if i > start {
				requirements++
			}
			start = i + 1
		case text[i] == '\\':
			i++ // escapes the next byte
		}
	}
	if requirements > most {
		return tooLarge("field", requirements, "requirements", most)
	}
	return nil
}

func checkSize(what, text string, most int) error {
	if len(text) > bytesEach*most {
		return tooLarge(what, len(text), "bytes", bytesEach*most)
	}
	return nil
}

func tooLarge(what string, has int, of string, most int) error {
	return fmt.Errorf("the %s selector is too large: it has %d %s, and at most %d are allowed", what, has, of, most)
}

// many is the number of requirements and values from which on the other way of matching is faster.
const many = 16

// Labels returns a selector that selects the same objects as s. If a labels.Labels has a method
//
//	Each(yield func(label, value string) bool)
//
// that yields every label once, until yield returns false, the selector calls it once for each match.
func Labels(s labels.Selector) labels.Selector {
	if s == nil {
		return nil
	}
	if _, ok := s.(*hashedLabels); ok {
		return s
	}
	requirements, selectable := s.Requirements()
	if !selectable || !manyLabels(requirements) {
		return s
	}
	return newHashedLabels(s, requirements)
}

// manyLabels reports whether there are many requirements and values.
func manyLabels(requirements labels.Requirements) bool {
	if len(requirements) >= many {
		return true
	}
	n := len(requirements)
	for i := range requirements {
		n += len(requirements[i].ValuesUnsorted())
	}
	return n >= many
}

// Fields returns a selector that selects the same objects as s.
func Fields(s fields.Selector) fields.Selector {
	if s == nil {
		return nil
	}
	if _, ok := s.(*hashedFields); ok {
		return s
	}
	requirements := s.Requirements()
	if len(requirements) < many {
		return s
	}
	return newHashedFields(s, requirements)
}
