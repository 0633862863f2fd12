// Package selector bounds the label and field selectors that clients send, and matches large ones quickly.
//
// A [Limit] says how large a selector may be. A text that is larger is refused before it is parsed.
//
// [Labels] and [Fields] return a selector that chooses the same objects, and, where there are many requirements, does so with one
// look at each label of an object, or at each field that the selector names, rather than with one for each requirement: the time to
// match depends on the object, and hardly on the selector. Small selectors are returned as they are.
//
// The grammar is that of https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors and
// https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/.
//
// The package is pure. Selectors are immutable and may be used concurrently.
package selector

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// DefaultLimit is the Limit that the zero Limit stands for.
const DefaultLimit Limit = 400

// What a selector may have for each of the requirements of its Limit.
const (
	valuesEach = 10
	bytesEach  = 256
)

// Limit is how many requirements, such as a=b, a selector may have; 0 is DefaultLimit, negative is no limit.
//
// The values in the sets of a label selector, a in (x,y), are not counted as requirements, for they cost no more time to match,
// and clients select by sets of some hundred names: all its sets together may have ten times as many values as the selector may
// have requirements. The text of a selector may have 256 bytes for each requirement that it may have, since a value of a
// field has no bound of its own. With the default that is 400 requirements, 4,000 values and 102,400 bytes.
type Limit int

// most is the number that l stands for; false: there is none.
func (l Limit) most() (int, bool) {
	switch {
	case l < 0:
		return 0, false
	case l == 0:
		return int(DefaultLimit), true
	}
	return int(l), true
}

// ParseLabels parses a label selector. The error is for people, and says what is wrong, or which limit is exceeded.
func (l Limit) ParseLabels(text string) (labels.Selector, error) {
	if err := l.checkLabels(text); err != nil {
		return nil, err
	}
	return labels.Parse(text)
}

// ParseFields parses a field selector. The error is for people, and says what is wrong, or which limit is exceeded.
func (l Limit) ParseFields(text string) (fields.Selector, error) {
	if err := l.checkFields(text); err != nil {
		return nil, err
	}
	return fields.ParseSelector(text)
}

func (l Limit) checkLabels(text string) error {
	most, ok := l.most()
	if !ok || len(text) < most { // each requirement but the last has two bytes at least
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
	requirements, start := 0, 0 // an empty one is none
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

// many is how many requirements and values make it worth to match another way.
const many = 16

// Labels returns a selector that chooses what s chooses. It matches labels that have a method
//
//	Each(yield func(label, value string) bool)
//
// which yields every label once, until yield returns false, by one call of it.
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

// manyLabels reports whether requirements and their values are many.
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

// Fields returns a selector that chooses what s chooses.
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
