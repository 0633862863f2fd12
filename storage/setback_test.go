package storage_test

import (
	"bytes"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// swapped is a backend that can be replaced by another one, like an etcd that is set back to an older state.
type swapped struct{ storage.Backend }

// TestSetBack: after a store is set back, knowledge about a revision is not applied to another value with the same revision.
func TestSetBack(t *testing.T) {
	o := gadgetOptions(t)
	canonical, err := o.Codec.Encode(gadget("a/x"))
	if err != nil {
		t.Fatal(err)
	}
	odd := bytes.Replace(canonical.Bytes(), []byte(`"metadata":{`), []byte(`"pruned":"p","metadata":{`), 1)
	for name, look := range map[string]func(s *storage.Store) error{
		"revision": func(s *storage.Store) error { _, err := s.Revision(t.Context()); return err },
		"get":      func(s *storage.Store) error { _, err := s.Get(t.Context(), "a/x", storage.Read{}); return err },
		"list":     func(s *storage.Store) error { _, err := s.List(t.Context(), storage.ListOptions{}); return err },
		"state":    func(s *storage.Store) error { _, err := s.State(t.Context(), 0); return err },
	} {
		b := &swapped{inMemory(t)}
		s := newStore(t, b, o)
		r := create(t, s, "a/x")
		create(t, s, "a/later")
		if got, err := s.Get(t.Context(), "a/x", storage.Read{}); err != nil || got.Stale {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		b.Backend = inMemory(t)
		commit(t, b, storage.Commit{Key: o.Prefix + "/a/x", Value: bytes.Clone(odd)})
		if err := look(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := s.Get(t.Context(), "a/x", storage.Read{})
		switch {
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		case got.Revision != r.Revision:
			t.Fatalf("%s: revision %d, and before it was %d: the test is about one revision", name, got.Revision, r.Revision)
		case !got.Stale || bytes.Contains(got.Body.Bytes(), []byte("pruned")):
			t.Errorf("%s: stale %v: %s", name, got.Stale, got.Body.Bytes())
		}
	}
}
