package storage

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// record makes the record of a stored value, or returns an *UnreadableError. Bytes that are not known to be canonical pass
// through the codec first.
func (s *Store) record(kv KV) (Record, error) {
	e := s.entry(kv)
	if e.Unreadable != nil {
		return Record{}, e.Unreadable
	}
	return e.Record, nil
}

// entry is like record, but returns the error of an unreadable value within the entry.
func (s *Store) entry(kv KV) Entry {
	key := kv.Key[len(s.root):]
	if s.known.has(kv.Revision) {
		if d, err := codec.ParseDocument(kv.Value); err == nil {
			return Entry{Record: s.recordOf(key, kv.Revision, d, kv.Stale)}
		}
	}
	d, stale, err := s.opts.Codec.Entry(kv.Value)
	if err != nil {
		return Entry{Record: Record{Key: key, Revision: kv.Revision}, Unreadable: s.unreadable(key, kv.Revision, err)}
	}
	if !stale {
		s.known.add(kv.Revision)
		if !shared(d.Bytes(), kv.Value) {
			if same, err := codec.ParseDocument(kv.Value); err == nil {
				d = same // the backend may keep these bytes; nobody else keeps the other ones
			}
		}
	}
	return Entry{Record: s.recordOf(key, kv.Revision, d, stale || kv.Stale)}
}

// shared reports whether two slices begin at the same byte.
func shared(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// unreadable returns the error for the value of a key.
func (s *Store) unreadable(key string, revision int64, err error) *UnreadableError {
	return &UnreadableError{Key: key, StoredKey: s.root + key, Revision: revision, Err: err}
}

// recordOf makes the record of a canonical document.
func (s *Store) recordOf(key string, revision int64, d codec.Document, stale bool) Record {
	a := &attributes{of: &s.opts, key: key, body: d}
	return Record{Key: key, Revision: revision, Body: d, Labels: (*recordLabels)(a), Fields: (*recordFields)(a), Stale: stale, Held: s.holder && !stale}
}

// attributes provides labels and fields of a record to selectors. What is not in the key is looked up in the body when it is
// needed, so that a record to which no selector is applied costs no map.
type attributes struct {
	of   *StoreOptions
	key  string
	body codec.Document
}

// recordLabels are the labels of a record.
type recordLabels attributes

var _ labels.Labels = (*recordLabels)(nil)

// Has implements labels.Labels.
func (l *recordLabels) Has(label string) bool {
	_, ok := l.body.Label(label)
	return ok
}

// Get implements labels.Labels.
func (l *recordLabels) Get(label string) string {
	value, _ := l.body.Label(label)
	return value
}

// Lookup implements labels.Labels.
func (l *recordLabels) Lookup(label string) (string, bool) { return l.body.Label(label) }

// Each yields every label until yield returns false; see package runtime/selector.
func (l *recordLabels) Each(yield func(label, value string) bool) {
	for label, value := range l.body.Labels() {
		if !yield(label, value) {
			return
		}
	}
}

// String returns the labels in the form of a selector that requires all of them.
func (l *recordLabels) String() string { return l.body.Labels().String() }

// recordFields are the selectable fields of a record.
type recordFields attributes

var _ fields.Fields = (*recordFields)(nil)

// Has implements fields.Fields.
func (f *recordFields) Has(field string) bool {
	switch field {
	case "metadata.name":
		return true
	case "metadata.namespace":
		return f.of.Namespaced
	}
	return slices.Contains(f.of.Fields, field)
}

// Get implements fields.Fields. It returns "" for a field that is not selectable.
func (f *recordFields) Get(field string) string {
	namespace, name := SplitKey(f.key, f.of.Namespaced)
	switch field {
	case "metadata.name":
		return name
	case "metadata.namespace":
		return namespace
	}
	if !f.Has(field) {
		return ""
	}
	path := f.path(f.body, field)
	if path == "" {
		return f.converted(field)
	}
	return valueAt(f.body, path)
}

// path returns the path of a field in a document; "" if the field has no path.
func (f *recordFields) path(d codec.Document, field string) string {
	for version, paths := range f.of.FieldPaths {
		if path, ok := paths[field]; ok && d.InVersion(version) {
			return path
		}
	}
	return field
}

// valueAt returns the value at a path. Of several paths it takes the first that has a value.
func valueAt(d codec.Document, path string) (text string) {
	for more := true; more && text == ""; {
		var one string
		one, path, more = strings.Cut(path, "|")
		text = d.Field(one)
	}
	return text
}

// converted returns a field of the object that is decoded from the record. It returns "" if the record cannot be decoded,
// also when the encoding of the type panics.
func (f *recordFields) converted(field string) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	obj, err := f.of.Codec.Decode(f.body)
	if err != nil {
		return ""
	}
	d, err := codec.EncodeDocument(obj, obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return ""
	}
	return valueAt(d, f.path(d, field))
}

// knownRevisions is the set of revisions whose values are known to be canonical, because this process wrote them or has
// checked them. A revision belongs to one value for ever, unless the store is set back to an older state. When that is
// detected, the set is emptied. The set is a bitmap of bounded size, about 3 MiB at most. When it is full it drops some
// revisions, whose values are then checked once more. The zero value is empty.
type knownRevisions struct {
	reached atomic.Int64 // the latest revision at which the store was seen

	mu     sync.RWMutex // guards blocks
	blocks map[int64]*revisionBlock
}

// saw notes that a read returned the store's revision now. The caller loaded before from reached before it began the read.
func (k *knownRevisions) saw(before, now int64) {
	if now < before {
		k.mu.Lock()
		k.blocks = nil
		k.reached.Store(now)
		k.mu.Unlock()
		return
	}
	k.raise(now)
}

// raise notes that the store has reached a revision.
func (k *knownRevisions) raise(now int64) {
	for at := k.reached.Load(); at < now && !k.reached.CompareAndSwap(at, now); {
		at = k.reached.Load()
	}
}

const (
	revisionsPerBlock = 1024
	maxRevisionBlocks = 16384
)

type revisionBlock [revisionsPerBlock / 64]uint64

func (k *knownRevisions) has(revision int64) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	b := k.blocks[revision/revisionsPerBlock]
	bit := revision % revisionsPerBlock
	return b != nil && b[bit/64]&(1<<(bit%64)) != 0
}

func (k *knownRevisions) add(revision int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := revision / revisionsPerBlock
	b := k.blocks[n]
	if b == nil {
		if len(k.blocks) >= maxRevisionBlocks {
			for old := range k.blocks {
				delete(k.blocks, old)
				break
			}
		}
		if k.blocks == nil {
			k.blocks = map[int64]*revisionBlock{}
		}
		b = new(revisionBlock)
		k.blocks[n] = b
	}
	bit := revision % revisionsPerBlock
	b[bit/64] |= 1 << (bit % 64)
}
