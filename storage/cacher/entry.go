package cacher

import (
	"cmp"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// entry is one value in the cache. It never changes once it is in a state. It has 176 bytes, a size class of the allocator.
// Besides these only its key and its body take memory of their own.
type entry struct {
	storage.Record                          // its Labels are a *labelSet if it has labels; its Fields may be the entry itself
	unreadable     *storage.UnreadableError // nil for a record
	values         []value                  // one for each index; nil when unreadable
}

// set returns the entry's labels; nil when unreadable.
func (e *entry) set() *labelSet {
	s, _ := e.Labels.(*labelSet)
	return s
}

// entryFields are the fields of an entry whose label set has a FieldReader. The Fields that the storage made for the record
// are not kept in that case.
type entryFields entry

var _ fields.Fields = (*entryFields)(nil)

// Has implements fields.Fields.
func (f *entryFields) Has(field string) bool { return (*entry)(f).set().fields.Has(field) }

// Get implements fields.Fields.
func (f *entryFields) Get(field string) string {
	return (*entry)(f).set().fields.Get(f.Key, f.Body, field)
}

// value is the value of a record in an index.
type value struct {
	text string
	ok   bool // false: the record does not have the label and is not in the index
}

// entryBytes is about the memory of an entry besides the bytes of its record.
const entryBytes = 300

func (e *entry) bytes() int64 {
	if e == nil {
		return 0
	}
	if e.Body.IsZero() {
		return entryBytes
	}
	return entryBytes + int64(e.Body.OwnSize())
}

func byKey(a, b *entry) int { return cmp.Compare(a.Key, b.Key) }

// byValue returns the order of an index: by value, then by key.
func byValue(index int) func(a, b *entry) int {
	return func(a, b *entry) int {
		if d := cmp.Compare(a.values[index].text, b.values[index].text); d != 0 {
			return d
		}
		return cmp.Compare(a.Key, b.Key)
	}
}

// before returns a function that reports whether an entry's key is below key.
func before(key string) func(*entry) bool {
	return func(e *entry) bool { return e.Key < key }
}

// beforeValue returns a function that reports whether an entry of an index is before the given value and key.
func beforeValue(index int, text, key string) func(*entry) bool {
	return func(e *entry) bool {
		d := cmp.Compare(e.values[index].text, text)
		return d < 0 || d == 0 && e.Key < key
	}
}

// afterValue returns a function that reports whether an entry of an index is before the end of the given value. end is a key,
// or "" for all keys of the value.
func afterValue(index int, text, end string) func(*entry) bool {
	return func(e *entry) bool {
		d := cmp.Compare(e.values[index].text, text)
		return d < 0 || d == 0 && (end == "" || e.Key < end)
	}
}

// labelSet is the labels of all records that have the same ones. Labels are looked up in their JSON. For the few labels that
// objects have, that is as fast as a map, which takes ten times as much memory.
type labelSet struct {
	text   string              // the labels as JSON; identifies the set
	odd    labels.Set          // the labels if text is not the simplest JSON; otherwise nil
	fields storage.FieldReader // of the record for which the set was made; nil: entries have Fields of their own
	id     uint32              // unique; 0: there are no ids left
	uses   int32               // number of entries in the state or the log
}

var _ labels.Labels = (*labelSet)(nil)

func newLabelSet(text string, r storage.Record) *labelSet {
	s := &labelSet{text: text, fields: fieldReader(r)}
	if !plainLabels(text) {
		s.odd = labels.Merge(r.Body.Labels(), nil) // never nil
	}
	return s
}

// fieldReader returns the FieldReader of a record's Fields, or nil if there is none.
func fieldReader(r storage.Record) storage.FieldReader {
	if f, ok := r.Fields.(storage.ReadFields); ok {
		return f.Reader()
	}
	return nil
}

// plainLabels reports whether text is {"name":"value",...} with at least one label, without escapes and spaces.
func plainLabels(text string) bool {
	rest, ok := strings.CutPrefix(text, "{")
	for ok && rest != "}" {
		if rest, ok = cutQuoted(rest, ':'); ok {
			rest, ok = cutQuoted(rest, ',')
		}
	}
	return ok && len(text) > len("{}")
}

// cutQuoted cuts off a plain string and the character that ends it. A closing brace also ends it, but is not cut off.
func cutQuoted(text string, end byte) (rest string, ok bool) {
	if text == "" || text[0] != '"' {
		return text, false
	}
	i := 1 + strings.IndexByte(text[1:], '"')
	if i == 0 || i+1 == len(text) || strings.IndexByte(text[:i], '\\') >= 0 {
		return text, false
	}
	switch text[i+1] {
	case end:
		return text[i+2:], true
	case '}':
		return text[i+1:], true
	}
	return text, false
}

// Lookup implements labels.Labels.
func (s *labelSet) Lookup(label string) (value string, exists bool) {
	if s.odd != nil {
		value, exists = s.odd[label]
		return value, exists
	}
	n := len(label)
	for rest := s.text; len(rest) > 1; {
		rest = rest[2:] // {" or ,"
		if len(rest) > n && rest[n] == '"' && rest[:n] == label && strings.IndexByte(label, '"') < 0 {
			rest = rest[n+3:] // ":"
			return rest[:strings.IndexByte(rest, '"')], true
		}
		rest = rest[strings.IndexByte(rest, '"')+3:]
		rest = rest[strings.IndexByte(rest, '"')+1:]
	}
	return "", false
}

// Each yields every label until yield returns false; see package runtime/selector.
func (s *labelSet) Each(yield func(label, value string) bool) {
	for label, value := range s.odd {
		if !yield(label, value) {
			return
		}
	}
	if s.odd != nil {
		return
	}
	for rest := s.text; len(rest) > 1; {
		var label, value string
		label, rest, _ = strings.Cut(rest[2:], `"`) // after {" or ,"
		value, rest, _ = strings.Cut(rest[2:], `"`) // after :"
		if !yield(label, value) {
			return
		}
	}
}

// Has implements labels.Labels.
func (s *labelSet) Has(label string) bool {
	_, exists := s.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (s *labelSet) Get(label string) string {
	value, _ := s.Lookup(label)
	return value
}

const maxSetID = 1<<31 - 1

// entries makes entries of what the storage below returns. Equal labels share one labelSet, and bodies share their common
// parts. It is used by one goroutine only.
type entries struct {
	fields, labels []string // of the indexes, in their order
	sets           map[string]*labelSet
	made           uint32 // number of sets made
	commons        commons
}

func (m *entries) entry(in storage.Entry) *entry {
	e := &entry{Record: in.Record, unreadable: in.Unreadable}
	e.Key = strings.Clone(e.Key) // the key may be a part of a longer string
	if e.unreadable != nil {
		e.Record = storage.Record{Key: e.Key, Revision: in.Record.Revision}
		return e
	}
	set := m.set(in.Record)
	e.Labels, e.Body = set, m.commons.share(in.Record)
	if set.fields != nil && set.fields == fieldReader(in.Record) {
		e.Fields = (*entryFields)(e)
	}
	if n := len(m.fields) + len(m.labels); n > 0 {
		e.values = make([]value, 0, n)
		for _, f := range m.fields {
			e.values = append(e.values, value{e.Fields.Get(f), true})
		}
		for _, l := range m.labels {
			text, ok := set.Lookup(l)
			e.values = append(e.values, value{text, ok})
		}
	}
	return e
}

// set returns the shared labels of a record.
func (m *entries) set(r storage.Record) *labelSet {
	text := r.Body.LabelsJSON()
	s := m.sets[string(text)]
	if s == nil {
		s = newLabelSet(string(text), r)
		if m.made < maxSetID {
			m.made++
			s.id = m.made
		}
		if m.sets == nil {
			m.sets = map[string]*labelSet{}
		}
		m.sets[s.text] = s
	}
	s.uses++
	return s
}

// release is called when an entry has left the state and the log.
func (m *entries) release(e *entry) {
	if e == nil || e.unreadable != nil {
		return
	}
	set := e.set()
	if set.uses--; set.uses == 0 {
		delete(m.sets, set.text)
	}
	m.commons.release(e.Body)
}
