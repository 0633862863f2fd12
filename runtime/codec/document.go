package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Document is one object in canonical form (see the package documentation), with the offsets that readers need. It is a value of
// fixed size that refers to one immutable, shared slice: the bytes that it was made from must not be changed, and copies of a
// Document share them. The zero Document is empty; only its method IsZero may be called.
type Document struct {
	value   []byte  // no resourceVersion, no trailing newline; without the text in common
	common  *Common // the text that value lacks; nil: none
	sorted  bool    // an untyped object: all its keys are sorted, so kind is not first
	lead    bool    // a comma precedes the inserted member
	trail   bool    // a comma follows the inserted member
	members int32   // of a typed object: offset of the first member after kind and apiVersion
	insert  int32   // where the resourceVersion member goes
	managed int32   // the comma before metadata.managedFields; 0 when these are not the last member, or follow none or a number
	meta    span    // value of "metadata", braces included
	labels  span    // value of metadata.labels; empty when absent
	version span    // text of apiVersion, without quotes; in the head
	kind    span    // text of kind, without quotes; in the head
}

type span struct{ from, to int32 }

// ErrNotCanonical is returned by ParseDocument for bytes that are not in canonical form: they are not a JSON object, kind and
// apiVersion do not come first (or the members of an untyped object are not sorted), metadata is missing, or there is a
// resourceVersion. Decode and encode the object to get canonical bytes.
var ErrNotCanonical = errors.New("not in canonical form")

// ParseDocument returns the Document of value, and keeps value. A single trailing newline is removed. ParseDocument checks the
// form of the members that it reads and never panics. It does not check the text inside spec and status, because value is
// expected to come from this package's encoder.
func ParseDocument(value []byte) (Document, error) {
	value = bytes.TrimSuffix(value, []byte("\n"))
	if len(value) > math.MaxInt32 {
		return Document{}, fmt.Errorf("%w: larger than 2 GiB", ErrNotCanonical)
	}
	d := Document{value: value, insert: -1}
	at, count := 1, 0
	var before []byte // the key of the previous member
	err := eachMember(value, 0, func(key []byte, start, from, to int) error {
		at = to
		count++
		switch {
		case count == 1:
			d.sorted = string(key) != "kind"
		case d.sorted && bytes.Compare(before, key) >= 0, !d.sorted && count == 2 && string(key) != "apiVersion":
			return fmt.Errorf("%w: kind and apiVersion are not first, and the members are not in order", ErrNotCanonical)
		case count == 3:
			d.members = int32(start)
		}
		before = key
		return d.member(key, from, to)
	})
	switch {
	case err != nil:
		return Document{}, err
	case d.meta.to == 0 || d.kind.to == 0 || d.version.to == 0:
		return Document{}, fmt.Errorf("%w: kind, apiVersion or metadata is missing", ErrNotCanonical)
	case at+1 != len(value):
		return Document{}, fmt.Errorf("%w: more than one value", ErrNotCanonical)
	}
	if err := d.scanMetadata(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// member stores the offsets of the members that every object has.
func (d *Document) member(key []byte, from, to int) error {
	place, trim := &d.meta, int32(0)
	switch string(key) {
	case "kind":
		place, trim = &d.kind, 1
	case "apiVersion":
		place, trim = &d.version, 1
	case "metadata":
	default:
		return nil
	}
	text := d.value[from:to]
	switch {
	case place.to != 0:
		return fmt.Errorf("%w: %s comes twice", ErrNotCanonical, key)
	case trim == 1 && (text[0] != '"' || bytes.IndexByte(text, '\\') >= 0):
		return fmt.Errorf("%w: %s is no plain string", ErrNotCanonical, key)
	}
	*place = span{int32(from) + trim, int32(to) - trim}
	return nil
}

const managedFields = "managedFields"

// scanMetadata finds the labels and the place of the resourceVersion, which is before the first member that follows it in the
// canonical order of the object.
func (d *Document) scanMetadata() error {
	from := int(d.meta.from)
	count, end, last := 0, from+1, false // last reports whether the last member is managedFields
	err := eachMember(d.value, from, func(key []byte, start, valueFrom, to int) error {
		follows := true
		switch string(key) {
		case "labels":
			d.labels = span{int32(valueFrom), int32(to)}
		case managedFields:
			if count > 0 && strings.IndexByte(`"}]`, d.value[start-2]) >= 0 {
				d.managed = int32(start - 1)
			}
		case "resourceVersion":
			return fmt.Errorf("%w: metadata has a resourceVersion", ErrNotCanonical)
		case "name", "generateName", "namespace", "selfLink", "uid":
			follows = false
		}
		if d.sorted {
			follows = string(key) > "resourceVersion"
		}
		if d.insert < 0 && follows {
			d.insert, d.trail = int32(start), true
		}
		count++
		end, last = to, string(key) == managedFields
		return nil
	})
	if err != nil {
		return err
	}
	if d.insert < 0 {
		d.insert, d.lead = int32(end), count > 0
	}
	if !last {
		d.managed = 0
	}
	return nil
}

// IsZero reports whether d is the zero Document.
func (d Document) IsZero() bool { return d.value == nil }

// Bytes returns the canonical bytes, without resourceVersion. They are shared and must not be changed. A Document with a [Common]
// returns a new slice.
func (d Document) Bytes() []byte {
	if d.common != nil {
		return d.AppendObject(make([]byte, 0, d.Size()), 0)
	}
	return d.value
}

// Size returns the length of Bytes.
func (d Document) Size() int {
	if d.common != nil {
		return len(d.value) + d.common.size
	}
	return len(d.value)
}

// inHead returns a part of the text of kind and apiVersion.
func (d Document) inHead(s span) string {
	if d.common != nil {
		return d.common.head[s.from:s.to]
	}
	return string(d.value[s.from:s.to])
}

// APIVersion returns the version that the document is written in, as "group/version".
func (d Document) APIVersion() string { return d.inHead(d.version) }

// InVersion reports whether the document is written in the given apiVersion.
func (d Document) InVersion(apiVersion string) bool {
	return d.inHead(d.version) == apiVersion
}

// Kind returns the kind in the document.
func (d Document) Kind() string { return d.inHead(d.kind) }

// Len returns about how many bytes AppendObject appends.
func (d Document) Len() int { return d.Size() + len(`"resourceVersion":"",`) + 20 }

// AppendObject appends the document as a single object, with kind, apiVersion and the given resourceVersion. A revision of 0
// leaves resourceVersion out, as for an object that was never stored.
func (d Document) AppendObject(dst []byte, revision int64) []byte {
	if d.common != nil {
		return d.appendRange(append(append(dst, '{'), d.common.head...), int(d.members), len(d.value), revision)
	}
	return d.appendRange(dst, 0, len(d.value), revision)
}

// AppendItem appends the document as an item of a list: without kind and apiVersion, unless the object is untyped.
func (d Document) AppendItem(dst []byte, revision int64) []byte {
	switch {
	case d.sorted:
		return d.AppendObject(dst, revision)
	case d.common != nil: // value begins with the first member after kind and apiVersion
		return d.appendRange(dst, 0, len(d.value), revision)
	}
	return d.appendRange(append(dst, '{'), int(d.members), len(d.value), revision)
}

// AppendMetadata appends the value of metadata, with its braces and the given resourceVersion.
func (d Document) AppendMetadata(dst []byte, revision int64) []byte {
	return d.appendRange(dst, int(d.meta.from), int(d.meta.to), revision)
}

// appendRange appends value[from:to], which must contain all of metadata or its value, with the resourceVersion inserted.
func (d Document) appendRange(dst []byte, from, to int, revision int64) []byte {
	if revision == 0 {
		return d.appendText(dst, from, to)
	}
	dst = append(dst, d.value[from:d.insert]...)
	if d.lead {
		dst = append(dst, ',')
	}
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, revision, 10)
	dst = append(dst, '"')
	if d.trail {
		dst = append(dst, ',')
	}
	return d.appendText(dst, int(d.insert), to)
}

// Labels returns the object's labels as a map of the caller's own, or nil if it has none.
func (d Document) Labels() labels.Set {
	if d.labels.to == 0 {
		return nil
	}
	set := labels.Set{}
	err := eachMember(d.value, int(d.labels.from), func(key []byte, _, from, to int) error {
		text, err := stringValue(d.value[from:to])
		set[string(key)] = text
		return err
	})
	if err != nil {
		return nil // the bytes are not canonical: labels must be a map of strings
	}
	return set
}

// LabelsJSON returns the JSON text of the object's labels, or nil if it has none. The bytes are shared and must not be changed.
// Documents with equal labels have equal texts.
func (d Document) LabelsJSON() []byte { return d.value[d.labels.from:d.labels.to] }

// Label returns the value of one label, and whether the object has that label. It allocates only the value.
func (d Document) Label(name string) (value string, ok bool) {
	if d.labels.to == 0 {
		return "", false
	}
	_ = eachMember(d.value, int(d.labels.from), func(key []byte, _, from, to int) error {
		if string(key) != name {
			return nil
		}
		var err error
		value, err = stringValue(d.value[from:to])
		ok = err == nil
		return errStop
	})
	return value, ok
}

// Field returns the text of the scalar at a dotted JSON path ("spec.color") as field selectors compare it: the text of a string,
// or the JSON of a number or boolean. It returns "" for a missing or null member.
func (d Document) Field(path string) string {
	if d.common != nil && d.common.has(path) {
		d = d.Whole()
	}
	at := 0
	for {
		name, rest, more := strings.Cut(path, ".")
		from, to := -1, -1
		if at >= len(d.value) || d.value[at] != '{' {
			return ""
		}
		_ = eachMember(d.value, at, func(key []byte, _, vf, vt int) error {
			if string(key) != name {
				return nil
			}
			from, to = vf, vt
			return errStop
		})
		if from < 0 {
			return ""
		}
		if more {
			at, path = from, rest
			continue
		}
		text := d.value[from:to]
		switch text[0] {
		case '"':
			s, err := stringValue(text)
			if err != nil {
				return ""
			}
			return s
		case '{', '[', 'n':
			return ""
		}
		return string(text)
	}
}

var errStop = errors.New("stop")

// stringValue returns the text of a JSON string.
func stringValue(text []byte) (s string, err error) {
	if n := len(text); n >= 2 && text[0] == '"' && bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : n-1]), nil
	}
	err = json.Unmarshal(text, &s)
	return s, err
}

// eachMember calls f for each member of the object that starts at value[at], with its unescaped key, which f must not change, the
// offset of the member, and the offsets where its value starts and ends. If f returns an error, eachMember stops and returns it.
func eachMember(value []byte, at int, f func(key []byte, start, from, to int) error) error {
	if at >= len(value) || value[at] != '{' {
		return fmt.Errorf("%w: no object at offset %d", ErrNotCanonical, at)
	}
	i := at + 1
	if i < len(value) && value[i] == '}' {
		return nil
	}
	for {
		start := i
		end, ok := skipString(value, i)
		if !ok || end >= len(value) || value[end] != ':' {
			return fmt.Errorf("%w: no member at offset %d", ErrNotCanonical, start)
		}
		key := value[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var text string
			if json.Unmarshal(value[i:end], &text) != nil {
				return fmt.Errorf("%w: bad key at offset %d", ErrNotCanonical, start)
			}
			key = []byte(text)
		}
		from := end + 1
		to, ok := skipValue(value, from)
		if !ok || to >= len(value) {
			return fmt.Errorf("%w: no value at offset %d", ErrNotCanonical, from)
		}
		if err := f(key, start, from, to); err != nil {
			return err
		}
		switch value[to] {
		case '}':
			return nil
		case ',':
			i = to + 1
		default:
			return fmt.Errorf("%w: unexpected %q at offset %d", ErrNotCanonical, value[to], to)
		}
	}
}

// skipString returns the offset after the JSON string that starts at value[i].
func skipString(value []byte, i int) (int, bool) {
	if i >= len(value) || value[i] != '"' {
		return 0, false
	}
	i++
	quote := bytes.IndexByte(value[i:], '"')
	if quote < 0 {
		return 0, false
	}
	escape := bytes.IndexByte(value[i:i+quote], '\\')
	if escape < 0 {
		return i + quote + 1, true
	}
	for i += escape; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return 0, false
}

// skipValue returns the offset after the JSON value that starts at value[i]. Canonical bytes have no white space.
func skipValue(value []byte, i int) (int, bool) {
	if i >= len(value) {
		return 0, false
	}
	switch value[i] {
	case '"':
		return skipString(value, i)
	case '{', '[':
		depth := 0
		for i < len(value) {
			switch value[i] {
			case '"':
				end, ok := skipString(value, i)
				if !ok {
					return 0, false
				}
				i = end
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1, true
				}
			}
			i++
		}
		return 0, false
	}
	start := i
	for i < len(value) && value[i] != ',' && value[i] != '}' && value[i] != ']' {
		if c := value[i]; c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '{' || c == '[' {
			return 0, false
		}
		i++
	}
	return i, i > start
}

// Whole returns d without a [Common], with all its bytes in one slice.
func (d Document) Whole() Document {
	if d.common == nil {
		return d
	}
	out := d
	out.value, out.common = d.Bytes(), nil
	out.shift(1, int32(len(d.common.head)), int32(d.common.size))
	return out
}
