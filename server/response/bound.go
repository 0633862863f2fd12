package response

import (
	"fmt"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keelson-dev/keelson/runtime/excerpt"
)

// Bounds of a Status, in bytes of its JSON, in which a control character takes six bytes, and so does each of <, > and &. Longer
// texts are cut between two runes, and end with a note: "... (truncated, 912345 bytes in all)". The details of a Status have as
// many causes as the bounds allow. If there are more, the last cause, without a type and field, has the number of those that were
// left out.
const (
	// MaxMessage bounds the message of a Status.
	MaxMessage = 32 << 10
	// MaxCauses bounds the number of causes.
	MaxCauses     = 256
	MaxCauseBytes = 48 << 10 // MaxCauseBytes bounds the bytes of all causes together
	maxCauseText  = 16 << 10 // bound of each text in a cause: a value of excerpt.Text, quoted twice, and the description of the error
	maxName       = 2 << 10  // bound of each name in the details
)

// bounded returns s with long texts cut. It does not change the details of s, which others may share.
func bounded(s metav1.Status) metav1.Status {
	s.Message, s.Reason = cut(s.Message, MaxMessage), metav1.StatusReason(cut(string(s.Reason), maxName))
	s.Continue, s.ResourceVersion = cut(s.Continue, MaxMessage), cut(s.ResourceVersion, maxName)
	if s.Details == nil {
		return s
	}
	d := *s.Details
	d.Name, d.Group, d.Kind, d.UID = cut(d.Name, maxName), cut(d.Group, maxName), cut(d.Kind, maxName), types.UID(cut(string(d.UID), maxName))
	d.Causes = boundedCauses(d.Causes)
	s.Details = &d
	return s
}

// boundedCauses returns causes, or a shorter list.
func boundedCauses(causes []metav1.StatusCause) []metav1.StatusCause {
	var out []metav1.StatusCause // nil: out is the same as causes
	left := MaxCauseBytes
	for i, c := range causes {
		short := metav1.StatusCause{
			Type: metav1.CauseType(cut(string(c.Type), maxName)), Message: cut(c.Message, maxCauseText), Field: cut(c.Field, maxCauseText),
		}
		const names = `{"reason":"","message":"","field":""},`
		left -= encodedLen(string(short.Type)) + encodedLen(short.Message) + encodedLen(short.Field) + len(names)
		if left < 0 || i == MaxCauses {
			more := metav1.StatusCause{Message: fmt.Sprintf("there are %d more causes than these", len(causes)-i)}
			return append(append([]metav1.StatusCause(nil), head(out, causes, i)...), more)
		}
		if out == nil && short != c {
			out = append(make([]metav1.StatusCause, 0, min(len(causes), MaxCauses)+1), causes[:i]...)
		}
		if out != nil {
			out = append(out, short)
		}
	}
	return head(out, causes, len(causes))
}

// head returns the first n causes: all of out, unless it is nil.
func head(out, causes []metav1.StatusCause, n int) []metav1.StatusCause {
	if out != nil {
		return out
	}
	return causes[:n]
}

// cut is like excerpt.Of, for a bound on the length of the text in JSON.
func cut(text string, most int) string {
	if len(text) <= most/6 || encodedLen(text[:min(len(text), most+1)]) <= most {
		return text
	}
	note := excerpt.Note(len(text))
	left := most - len(note)
	for i, r := range text {
		if left -= runeLen(r, text[i:]); left < 0 {
			return text[:i] + note
		}
	}
	return text // the note would make it longer
}

// encodedLen returns an upper bound of the length of a text in JSON, without the quotes.
func encodedLen(text string) int {
	n := 0
	for i, r := range text {
		n += runeLen(r, text[i:])
	}
	return n
}

// runeLen returns an upper bound of the length in JSON of r, with which text begins.
func runeLen(r rune, text string) int {
	switch {
	case r == '"', r == '\\':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == 0x7f, r == 0x2028, r == 0x2029:
		return 6
	case r == utf8.RuneError:
		if _, n := utf8.DecodeRuneInString(text); n == 1 { // invalid UTF-8
			return 6
		}
	}
	return utf8.RuneLen(r)
}
