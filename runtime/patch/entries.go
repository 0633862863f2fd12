package patch

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxManagers is the maximum number of entries in metadata.managedFields. apimachinery keeps at most ten entries of managers that
// update, and merges the others.
const MaxManagers = 1000

// EntriesError is returned if the object in the request has too many entries in metadata.managedFields. The object must not be
// stored. Err is the cause.
type EntriesError struct{ Err *field.Error }

// Error returns the text of Err.
func (e *EntriesError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EntriesError) Unwrap() error { return e.Err }

// entriesOf returns the managed fields of an object, not a copy.
func entriesOf(obj runtime.Object) []metav1.ManagedFieldsEntry {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return m.GetManagedFields()
}

// checkEntries returns an error for entries that would take too long to read and compare.
func checkEntries(entries []metav1.ManagedFieldsEntry) *field.Error {
	path := field.NewPath("metadata", "managedFields")
	if len(entries) > MaxManagers {
		return field.TooMany(path, len(entries), MaxManagers)
	}
	const small = 4 << 10 // a text of this size cannot be too wide, however deep it is
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

// checkSent is like checkEntries for an object with the entries of a request. If they take no more than the stored entries, the
// error is not an EntriesError.
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

// checkVersions returns an error if a request for a kind without a Go type sends an entry of another kind's version. As in
// kube-apiserver, all entries of the request are then ignored, while for a kind with a Go type only such an entry is. Entries of
// versions that stored entries have are allowed, because a version can be removed from the kind: kube-apiserver then keeps all
// entries as they are and answers each apply with 500, and here such entries are dropped.
func (f *FieldManager) checkVersions(sent, stored []metav1.ManagedFieldsEntry) error {
	if !f.kind.Untyped() {
		return nil
	}
	for _, e := range sent {
		of := func(other metav1.ManagedFieldsEntry) bool { return other.APIVersion == e.APIVersion }
		if e.APIVersion == "" || slices.ContainsFunc(stored, of) {
			continue
		}
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		if err != nil {
			return err
		}
		if f.scheme.Lookup(gv.WithKind(f.kind.GVK.Kind)) == nil {
			return fmt.Errorf("managedFields has an entry of %s, which is no version of %s", e.APIVersion, f.kind.GVK.GroupKind())
		}
	}
	return nil
}

// entriesSize returns the approximate number of bytes of the entries.
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

// checkKept returns an error for a result with too many entries.
func checkKept(entries []metav1.ManagedFieldsEntry) error {
	if wrong := checkEntries(entries); wrong != nil {
		return &Error{Code: http.StatusRequestEntityTooLarge, Message: wrong.Error()}
	}
	return nil
}

// conversionsFor returns the number of entries of other versions. For each of them the object is converted.
func conversionsFor(entries []metav1.ManagedFieldsEntry, version string) int {
	n := 0
	for _, e := range entries {
		if e.APIVersion != version {
			n++
		}
	}
	return n
}

// textWidth returns the cost of the values in a JSON text, in the units of widthOf. If that is more than maxWidth, the result is
// some number above maxWidth. It decodes nothing, and the text may be invalid.
func textWidth(text []byte) int {
	var room [64]int    // large enough for most texts
	members := room[:0] // numbers of members so far of the open objects and arrays
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
