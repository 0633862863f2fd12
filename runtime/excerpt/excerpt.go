// Package excerpt shortens texts of clients in responses and log lines. A name, a path or a value may have any length; an excerpt
// shows its beginning, and says how long the whole text is:
//
//	excerpt.Of(name, 1024) // "aaa... (truncated, 912345 bytes in all)"
//
// A text within the limit is returned unchanged, at no cost. Shorten a text before it is quoted or escaped, because that can make
// it several times as long.
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

// Limits for excerpts, in bytes.
const (
	// Name is for texts that are usually short: names, paths of fields, media types.
	Name = 1 << 10
	// Text is for any other text.
	Text = 4 << 10
)

// Of returns text if it has at most most bytes. Otherwise it returns the beginning of text, cut between two runes, and a note
// with its length. The result has at most most bytes, unless the note alone is longer.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := Note(len(text))
	return text[:Runes(text, most-len(note))] + note
}

// OfBytes is Of for a []byte. It copies only the bytes that are shown.
func OfBytes(text []byte, most int) string {
	if len(text) <= most {
		return string(text)
	}
	note := Note(len(text))
	end := max(most-len(note), 0)
	head := string(text[:end+1])
	return head[:Runes(head, end)] + note
}

// Note returns the note that follows the beginning of a text of the given length.
func Note(bytes int) string { return fmt.Sprintf("... (truncated, %d bytes in all)", bytes) }

// Runes returns the largest length, up to most, at which text can be cut between two runes. text must be longer than most.
func Runes(text string, most int) int {
	most = max(most, 0)
	for back := 0; back < utf8.UTFMax && most-back > 0; back++ {
		if utf8.RuneStart(text[most-back]) {
			return most - back
		}
	}
	return most // not UTF-8, or at the beginning
}

// Limits for the errors of one object.
const (
	MaxErrors     = 100      // MaxErrors is the largest number of errors in a list
	maxErrorBytes = 64 << 10 // of the texts of all errors
)

// Invalid is apierrors.NewInvalid with the errors that [Errors] returns. kind and name, which a client may have chosen, are
// shortened too.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	kind = schema.GroupKind{Group: Of(kind.Group, Name), Kind: Of(kind.Kind, Name)}
	return apierrors.NewInvalid(kind, Of(name, Name), Errors(errs))
}

// Errors limits the errors in a response with the code 422 to 100 errors and about 64 KiB. Long values, details and paths are
// shortened, and the last error says how many more there are. Errors returns errs itself if it is within the limits, and
// otherwise a new list. It changes neither errs nor an error in it.
func Errors(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList // nil means that errs needs no change
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

// shortened returns e or a shorter copy, and the approximate size of its text.
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

// shortValue shortens a value whose text in a field.Error is long.
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

// cutValue is a value whose text a field.Error shows unchanged.
type cutValue string

// MarshalJSON implements json.Marshaler. It returns an error, so that field.Error uses String.
func (cutValue) MarshalJSON() ([]byte, error) { return nil, errors.New("part of a value") }

func (c cutValue) String() string { return string(c) }
