package cacher

import (
	"cmp"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/labels"
)

// entry is what the cache keeps of one value. It is never changed once it is in a state.
type entry struct {
	storage.Record
	unreadable *storage.UnreadableError // nil for a record
	labels     *labelSet                // what Record.Labels is; nil when unreadable
	values     []value                  // one per index; nil when unreadable
}

// value is what an index knows a record by.
type value struct {
	text string
	ok   bool // a record without the label is not in the index
}

// entryBytes is about what an entry takes besides the bytes of its record.
const entryBytes = 400

func (e *entry) bytes() int64 {
	if e == nil {
		return 0
	}
	if e.Body.IsZero() {
		return entryBytes
	}
	return entryBytes + int64(len(e.Body.Bytes()))
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

// labelSet is the labels of all records that have the same ones.
type labelSet struct {
	labels.Set
	text string // as JSON: what it is known by
	id   uint32 // another one for the next set
	uses int    // entries that are in the state or the log
}

// entries makes entries of what the storage below has, with one labelSet for the same labels. One goroutine uses it.
type entries struct {
	fields, labels []string // of the indexes, in this order
	sets           map[string]*labelSet
	made           uint32 // sets
}

func (m *entries) entry(in storage.Entry) *entry {
	e := &entry{Record: in.Record, unreadable: in.Unreadable}
	if e.unreadable != nil {
		e.Record = storage.Record{Key: in.Record.Key, Revision: in.Record.Revision}
		return e
	}
	e.labels = m.set(in.Record)
	e.Labels = e.labels
	if n := len(m.fields) + len(m.labels); n > 0 {
		e.values = make([]value, 0, n)
		for _, f := range m.fields {
			e.values = append(e.values, value{e.Fields.Get(f), true})
		}
		for _, l := range m.labels {
			text, ok := e.labels.Set[l]
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
		m.made++
		s = &labelSet{Set: r.Body.Labels(), text: string(text), id: m.made}
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
	if e == nil || e.labels == nil {
		return
	}
	if e.labels.uses--; e.labels.uses == 0 {
		delete(m.sets, e.labels.text)
	}
}

// splitKey returns the namespace and the name in a key.
func splitKey(key string) (namespace, name string) {
	i := strings.LastIndexByte(key, '/')
	return key[:max(i, 0)], key[i+1:]
}
