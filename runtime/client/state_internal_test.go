package client

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func itemAt(name string, revision int64) *item {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return &item{obj: obj, meta: obj, uid: types.UID(name), revision: revision, size: 10}
}

// Events that a list already contains, because their watch began before the list, change nothing.
func TestLateEvents(t *testing.T) {
	h := &history{limits: limits{objects: 3, bytes: 100, changes: 10, logBytes: 100}}
	h.replace(&load{items: map[string]*item{}}, 100, 0)
	h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 105)}, bytes: 10}, 110, 100)
	for _, e := range []struct {
		name     string
		is       *item
		revision int64
		changes  bool
	}{
		{"ghost", itemAt("ghost", 103), 103, false}, // deleted before the list
		{"b", nil, 104, false},                      // created again before the list
		{"b", itemAt("b", 105), 105, false},
		{"c", itemAt("c", 111), 111, true},
		{"c", itemAt("c", 111), 111, false}, // sent twice
		{"c", nil, 112, true},
		{"c", nil, 112, false},
	} {
		changed, err := h.event(key("", e.name), e.is, e.revision)
		if err != nil || changed != e.changes {
			t.Errorf("%s at %d: changed %t, %v", e.name, e.revision, changed, err)
		}
	}
	s := h.publish()
	if s.items.Len() != 1 || s.revision != 112 || s.changed != 112 || h.bytes != 10 || h.logBytes != 10 {
		t.Errorf("%d objects at %d, changed at %d, %d and %d bytes", s.items.Len(), s.revision, s.changed, h.bytes, h.logBytes)
	}
}

// A difference that a list has found counts as a change at the revision of the list. Only loading all objects again counts as a
// change without one.
func TestChangedAfterLists(t *testing.T) {
	h := &history{limits: limits{objects: 3, bytes: 100, changes: 10, logBytes: 100}}
	for _, step := range []struct {
		what    string
		do      func()
		changed int64
	}{
		{"the first list", func() { h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 90)}}, 100, 0) }, 100},
		{"a list of the same", func() { h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 90)}}, 110, 100) }, 100},
		{"a bookmark", func() { h.progress(115) }, 100},
		{"a list with a change", func() { h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 116)}}, 120, 115) }, 120},
		{"a list of the same after objects were dropped", func() {
			h.reset()
			h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 116)}}, 130, 0)
		}, 130},
	} {
		if step.do(); h.changed != step.changed {
			t.Errorf("after %s: changed at %d; want %d", step.what, h.changed, step.changed)
		}
	}
}

// The log is limited by its number of changes and by the bytes that it keeps in memory. A published state does not change.
func TestLogIsBounded(t *testing.T) {
	h := &history{limits: limits{objects: 10, bytes: 1000, changes: 5, logBytes: 30}}
	h.replace(&load{items: map[string]*item{"\x00b": itemAt("b", 99)}, bytes: 10}, 100, 0)
	first := h.publish()
	for revision := int64(101); revision <= 120; revision++ {
		if _, err := h.event("\x00b", itemAt("b", revision), revision); err != nil {
			t.Fatal(err)
		}
	}
	s := h.publish()
	if len(s.log) != 3 || h.logBytes != 30 || s.changesFrom != 117 || s.exactFrom != 117 {
		t.Errorf("%d changes of %d bytes from %d, %d", len(s.log), h.logBytes, s.changesFrom, s.exactFrom)
	}
	if i, ok := s.get("\x00b", 118); !ok || i.revision != 118 {
		t.Errorf("the object at 118 is %v", i)
	}
	if i, ok := first.get("\x00b", 100); !ok || i.revision != 99 || first.revision != 100 || len(first.log) != 0 {
		t.Errorf("a state that was published has changed: %v", i)
	}
	if _, err := h.event("\x00c", &item{obj: s.items.Values()[0].obj, revision: 121, size: 1000}, 121); err == nil {
		t.Error("too many bytes are kept")
	}
}

// Objects that are loaded again have another generation, and Changes since an earlier revision returns all of them: even at the
// same revision, the server may have decoded them with another schema.
func TestLoadedAnew(t *testing.T) {
	h := &history{limits: limits{objects: 3, bytes: 100, changes: 10, logBytes: 100}}
	all := func() *load { return &load{items: map[string]*item{"\x00b": itemAt("b", 99)}, bytes: 10} }
	h.replace(all(), 100, 0)
	first := h.publish()
	h.replace(all(), 100, 100)
	if s := h.publish(); s.changed != first.changed || s.generation != first.generation || len(s.changes(100, 100).All) != 0 {
		t.Errorf("listed again: changed at %d of generation %d, was %d of %d", s.changed, s.generation, first.changed, first.generation)
	}
	h.reset()
	h.replace(all(), 100, 0)
	again := h.publish()
	if again.changed != first.changed || again.generation == first.generation {
		t.Errorf("loaded anew: changed at %d of generation %d, was %d of %d", again.changed, again.generation, first.changed, first.generation)
	}
	h.reset()
	h.replace(all(), 99, 0) // as if the server was set back
	for _, s := range []*state{again, h.publish()} {
		if c := s.changes(100, s.revision); !c.Reset || len(c.All) != 1 || c.Revision != s.revision {
			t.Errorf("changes since: %+v, want a Reset with one object", c)
		}
	}
}
