package patch

import (
	"fmt"
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxManagers bounds the entries in metadata.managedFields. Of those that update, apimachinery merges all but ten.
const MaxManagers = 1000

// EntriesError is returned for an object whose managedFields are more than can be kept, and come from the request. The object must
// not be stored.
type EntriesError struct{ Err *field.Error }

func (e *EntriesError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EntriesError) Unwrap() error { return e.Err }

// entriesOf returns the entries of an object, which are its own.
func entriesOf(obj runtime.Object) []metav1.ManagedFieldsEntry {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return m.GetManagedFields()
}

// checkEntries refuses entries that would take too long to be read and compared.
func checkEntries(entries []metav1.ManagedFieldsEntry) *field.Error {
	path := field.NewPath("metadata", "managedFields")
	if len(entries) > MaxManagers {
		return field.TooMany(path, len(entries), MaxManagers)
	}
	const small = 4 << 10 // cannot be too wide, however deep it is
	if entriesSize(entries) <= small {
		return nil
	}
	sum := 0
	for _, e := range entries {
		if e.FieldsV1 != nil {
			if sum += textWidth(e.FieldsV1.GetRawBytes()); sum > maxWidth {
				return field.Forbidden(path, fmt.Sprintf("the entries name too many fields, or fields that are nested too deeply: about %d of the latter kind, or of one map or list, are the limit", MaxMembers))
			}
		}
	}
	return nil
}

// checkSent is checkEntries for an object with the entries that a request gave it. Those that are no more than what is stored already
// are no EntriesError.
func checkSent(obj, live runtime.Object) error {
	entries := entriesOf(obj)
	wrong := checkEntries(entries)
	if wrong == nil {
		return nil
	}
	if sent, stored := entriesSize(entries), entriesSize(entriesOf(live)); sent <= stored {
		return fmt.Errorf("what is stored already: %w", wrong)
	}
	return &EntriesError{wrong}
}

// entriesSize is about how many bytes the entries take.
func entriesSize(entries []metav1.ManagedFieldsEntry) int {
	size := 0
	for _, e := range entries {
		const rest = 64
		if size += rest; e.FieldsV1 != nil {
			size += len(e.FieldsV1.GetRawBytes())
		}
	}
	return size
}

// checkKept refuses a result with more entries than can be kept.
func checkKept(entries []metav1.ManagedFieldsEntry) error {
	if wrong := checkEntries(entries); wrong != nil {
		return &Error{Code: http.StatusRequestEntityTooLarge, Message: wrong.Error()}
	}
	return nil
}

// conversionsFor is how many entries are of another version than that, and have the object converted.
func conversionsFor(entries []metav1.ManagedFieldsEntry, version string) int {
	n := 0
	for _, e := range entries {
		if e.APIVersion != version {
			n++
		}
	}
	return n
}

// textWidth is what the values in a JSON text cost as those of widthOf do, or at least that it is more than maxWidth. It makes
// nothing of the text, which may be none.
func textWidth(text []byte) int {
	var room [64]int    // for most
	members := room[:0] // how many the objects and arrays have that are open
	sum, empty := 0, false
	for i := 0; i < len(text) && sum <= maxWidth; i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			members, empty = append(members, 0), true
			continue
		case ',', '}', ']':
			n := len(members) - 1
			if n < 0 {
				return sum
			}
			if !empty {
				members[n]++
				sum += perMember + len(members)*perLevel + 2*members[n]
			}
			if text[i] != ',' {
				members = members[:n]
			}
		}
		empty = false
	}
	return sum
}
