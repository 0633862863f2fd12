// Package excerpt bounds what an answer or a log line quotes of a text that a client chose: a name, a path or a value of any length
// is shown up to a bound, and the excerpt says that it is one:
//
//	excerpt.Of(name, 1024) // "aaa... (truncated, 912345 bytes in all)"
//
// Texts within the bound are what they were, and cost nothing. Cut a text before it is quoted or escaped, which can make it
// several times as long.
package excerpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of what is quoted, in bytes.
const (
	// Name is for what is short by its nature: names, paths of fields, media types.
	Name = 1 << 10
	// Text is for any other text.
	Text = 4 << 10
)

// Of returns text, or, if it is longer than most bytes, its beginning, cut at a rune's end, and a note of how long it is. The result
// is not longer than most bytes, but for a note that is.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := Note(len(text))
	return text[:Runes(text, most-len(note))] + note
}

// OfBytes is Of for a text in bytes, of which it copies no more than is shown.
func OfBytes(text []byte, most int) string {
	if len(text) <= most {
		return string(text)
	}
	note := Note(len(text))
	end := max(most-len(note), 0)
	head := string(text[:end+1])
	return head[:Runes(head, end)] + note
}

// Note is what follows the beginning of a text of so many bytes.
func Note(bytes int) string { return fmt.Sprintf("... (truncated, %d bytes in all)", bytes) }

// Runes returns the largest length up to most at which text can be cut between two runes. text is longer than most.
func Runes(text string, most int) int {
	most = max(most, 0)
	for back := 0; back < utf8.UTFMax && most-back > 0; back++ {
		if utf8.RuneStart(text[most-back]) {
			return most - back
		}
	}
	return most // not UTF-8, or the beginning
}

// Bounds of the errors of one object.
const (
	MaxErrors     = 100      // in a list
	maxErrorBytes = 64 << 10 // of the texts of all
)

// Invalid is apierrors.NewInvalid, of what [Errors] leaves of errs. What the client chose of kind and name is cut as well.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	kind = schema.GroupKind{Group: Of(kind.Group, Name), Kind: Of(kind.Kind, Name)}
	return apierrors.NewInvalid(kind, Of(name, Name), Errors(errs))
}

// Errors bounds the errors that a 422 tells: to 100, and to some 64 KiB. Long values, details and paths are cut, and the last error
// says how many more there are. The list is returned as it is when it is within the bounds, else a new one; neither errs nor an
// error in it is changed.
func Errors(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList // nil: as in errs
	total := 0
	for i, e := range errs[:min(len(errs), MaxErrors)] {
		short, size := shortened(e)
		total += size
		full := i+1 < len(errs) && (i+1 == MaxErrors || total > maxErrorBytes)
		if out == nil && (short != e || full) {
			out = slices.Clone(errs[:min(len(errs), MaxErrors)])
		}
		if full {
			last := *short
			last.Detail = strings.TrimPrefix(fmt.Sprintf("%s; there are %d more errors than these", last.Detail, len(errs)-i-1), "; ")
			out[i] = &last
			return out[:i+1]
		}
		if short != e {
			out[i] = short
		}
	}
	if out == nil {
		return errs
	}
	return out
}

// shortened returns e, or a shorter one, and about how long its text is.
func shortened(e *field.Error) (short *field.Error, size int) {
	out := *e
	out.Field, out.Detail = Of(e.Field, Name), Of(e.Detail, Text)
	value, size, cut := shortValue(e.BadValue)
	size += len(out.Field) + len(out.Detail)
	if !cut && len(out.Field) == len(e.Field) && len(out.Detail) == len(e.Detail) {
		return e, size
	}
	out.BadValue = value
	return &out, size
}

// shortValue cuts a value that is long as field.Error shows it.
func shortValue(v any) (short any, size int, cut bool) {
	switch v := v.(type) {
	case nil, bool, int, int32, int64, float32, float64, field.OmitValueType:
		return v, 0, false
	case string:
		if len(v) > Text {
			return Of(v, Text), Text, true
		}
		return v, len(v), false
	}
	text, err := json.Marshal(v)
	if err != nil {
		s, ok := v.(fmt.Stringer)
		if !ok {
			return v, 0, false
		}
		text = []byte(s.String())
	}
	if len(text) > Text {
		return cutValue(OfBytes(text, Text)), Text, true
	}
	return v, len(text), false
}

// cutValue is a value of which field.Error shows the text as it is.
type cutValue string

// MarshalJSON implements json.Marshaler. It fails, so that String is asked.
func (cutValue) MarshalJSON() ([]byte, error) { return nil, errors.New("part of a value") }

func (c cutValue) String() string { return string(c) }
