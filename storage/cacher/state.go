package cacher

import (
	"slices"

	"github.com/keelson-dev/keelson/storage"
)

// state is all stored values after some change: a few trees of the same entries. A copy of a state does not change, once the
// edition that made the state has ended.
type state struct {
	records    tree[entry]
	unreadable tree[entry]   // those of records that are unreadable
	indexes    []tree[entry] // fields first, then labels
	bytes      int64         // of all records
	versions   []written     // number of records of each apiVersion
}

// written is the number of records that are written in a version. Mostly there is one version.
type written struct {
	version string
	records int
}

// snapshot is an immutable state.
type snapshot struct {
	state
	changed  int64 // revision of the last change in the state
	revision int64 // the last revision at which it is the state; it is so from changed on
}

func newState(o Options) state {
	s := state{records: newTree(byKey), unreadable: newTree(byKey)}
	for i := range len(o.IndexFields) + len(o.IndexLabels) {
		s.indexes = append(s.indexes, newTree(byValue(i)))
	}
	return s
}

// clone returns a copy for another owner. It copies the slices, which a plain copy would share.
func (s state) clone() state {
	s.indexes, s.versions = slices.Clone(s.indexes), slices.Clone(s.versions)
	return s
}

func (s *state) find(key string) *entry {
	return s.records.find(func(e *entry) int {
		switch {
		case e.Key < key:
			return -1
		case e.Key > key:
			return 1
		}
		return 0
	})
}

// put stores e, and returns the entry that it replaces.
func (s *state) put(ed *edition, e *entry) (was *entry) {
	was = s.records.set(ed, e)
	s.count(was, -1)
	s.count(e, 1)
	s.unlist(ed, was, e)
	if e.unreadable != nil {
		s.unreadable.set(ed, e)
		return was
	}
	for i := range s.indexes {
		if e.values[i].ok {
			s.indexes[i].set(ed, e)
		}
	}
	return was
}

// remove removes the entry under key, and returns it.
func (s *state) remove(ed *edition, key string) (was *entry) {
	was = s.records.delete(ed, &entry{Record: storage.Record{Key: key}})
	s.count(was, -1)
	s.unlist(ed, was, nil)
	return was
}

// count counts an entry that is added (by is 1) or removed (by is -1).
func (s *state) count(e *entry, by int) {
	s.bytes += int64(by) * e.bytes()
	if e == nil || e.unreadable != nil {
		return
	}
	i := slices.IndexFunc(s.versions, func(v written) bool { return e.Body.InVersion(v.version) })
	if i < 0 {
		i, s.versions = len(s.versions), append(s.versions, written{version: e.Body.APIVersion()})
	}
	if s.versions[i].records += by; s.versions[i].records == 0 {
		s.versions = slices.Delete(s.versions, i, i+1)
	}
}

// version returns the apiVersion in which all records are written; "" if there are several.
func (s *state) version() string {
	if len(s.versions) != 1 {
		return ""
	}
	return s.versions[0].version
}

// unlist removes was from the trees in which is will not replace it; is is nil if there is no new entry.
func (s *state) unlist(ed *edition, was, is *entry) {
	switch {
	case was == nil:
		return
	case was.unreadable != nil:
		if is == nil || is.unreadable == nil {
			s.unreadable.delete(ed, was)
		}
		return
	}
	for i := range s.indexes {
		v := was.values[i]
		if v.ok && (is == nil || is.unreadable != nil || is.values[i] != v) {
			s.indexes[i].delete(ed, was)
		}
	}
}

// apply applies changes that were made after s.
func (s *state) apply(ed *edition, changes []*change) {
	for _, ch := range changes {
		if ch.is != nil {
			s.put(ed, ch.is)
		} else {
			s.remove(ed, ch.was.Key)
		}
	}
}
