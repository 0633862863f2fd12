package cacher

import (
	"cmp"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// entry is what the cache keeps of one value. It is never changed once it is in a state. It has 176 bytes, a size class of
// the allocator, and those of its key and its body are all that belongs to it besides.
type entry struct {
	storage.Record                          // its Labels are a *labelSet, where it has any; its Fields may be itself
	unreadable     *storage.UnreadableError // nil for a record
	values         []value                  // one per index; nil when unreadable
}

// set is the entry's labels; nil when unreadable.
func (e *entry) set() *labelSet {
	s, _ := e.Labels.(*labelSet)
	return s
}

// entryFields are the fields of an entry whose labels know their reader: what a storage makes for one record only is not
// kept then.
type entryFields entry

var _ fields.Fields = (*entryFields)(nil)

// Has implements fields.Fields.
func (f *entryFields) Has(field string) bool { return (*entry)(f).set().fields.Has(field) }

// Get implements fields.Fields.
func (f *entryFields) Get(field string) string {
	return (*entry)(f).set().fields.Get(f.Key, f.Body, field)
}

// value is what an index knows a record by.
type value struct {
	text string
	ok   bool // a record without the label is not in the index
}

// entryBytes is about what an entry takes besides the bytes of its record.
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

// byValue is the order of an index: that of the values, and of the keys for one value.
func byValue(index int) func(a, b *entry) int {
	return func(a, b *entry) int {
		if d := cmp.Compare(a.values[index].text, b.values[index].text); d != 0 {
			return d
		}
		return cmp.Compare(a.Key, b.Key)
	}
}

// before tells the entries whose key is below one.
func before(key string) func(*entry) bool {
	return func(e *entry) bool { return e.Key < key }
}

// beforeValue tells the entries of an index that come before a value's with a key.
func beforeValue(index int, text, key string) func(*entry) bool {
	return func(e *entry) bool {
		d := cmp.Compare(e.values[index].text, text)
		return d < 0 || d == 0 && e.Key < key
	}
}

// afterValue tells the entries of an index that come before the end of a value's, which is a key, or "" for all.
func afterValue(index int, text, end string) func(*entry) bool {
	return func(e *entry) bool {
		d := cmp.Compare(e.values[index].text, text)
		return d < 0 || d == 0 && (end == "" || e.Key < end)
	}
}

// labelSet is the labels of all records that have the same ones. They are looked up in their JSON: for as few as
// objects have that is as quick as a map, which takes ten times as much.
type labelSet struct {
	text   string              // as JSON: what it is known by
	odd    labels.Set          // where text is not the plainest JSON; else nil
	fields storage.FieldReader // of the record that it was made for; nil: that has fields of its own
	id     uint32              // which no other set has; 0: there are no more
	uses   int32               // entries that are in the state or the log
}

var _ labels.Labels = (*labelSet)(nil)

func newLabelSet(text string, r storage.Record) *labelSet {
	s := &labelSet{text: text, fields: fieldReader(r)}
	if !plainLabels(text) {
		s.odd = labels.Merge(r.Body.Labels(), nil) // which is not nil
	}
	return s
}

// fieldReader returns what reads the fields of a record and of others; nil where there is nothing that does.
func fieldReader(r storage.Record) storage.FieldReader {
	if f, ok := r.Fields.(storage.ReadFields); ok {
		return f.Reader()
	}
	return nil
}

// plainLabels reports whether text is {"name":"value",...} with one label at least, without an escape or a space.
func plainLabels(text string) bool {
	rest, ok := strings.CutPrefix(text, "{")
	for ok && rest != "}" {
		if rest, ok = cutQuoted(rest, ':'); ok {
			rest, ok = cutQuoted(rest, ',')
		}
	}
	return ok && len(text) > len("{}")
}

// cutQuoted cuts a plain string and what ends it off text; a brace ends it as well, and stays.
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

// Each yields every label, until yield returns false; see package runtime/selector.
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
		label, rest, _ = strings.Cut(rest[2:], `"`) // behind {" or ,"
		value, rest, _ = strings.Cut(rest[2:], `"`) // behind :"
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

// entries makes entries of what the storage below has, with one labelSet for the same labels, and with bodies that share
// what they have in common. One goroutine uses it.
type entries struct {
	fields, labels []string // of the indexes, in this order
	sets           map[string]*labelSet
	made           uint32 // sets
	commons        commons
}

func (m *entries) entry(in storage.Entry) *entry {
	e := &entry{Record: in.Record, unreadable: in.Unreadable}
	e.Key = strings.Clone(e.Key) // which is the end of a longer one
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

// release says that an entry has left the state and the log.
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
