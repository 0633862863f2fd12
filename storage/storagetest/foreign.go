package storagetest

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// Values that the storage's own codec has not written.
const (
	notJSON   = "\x00\x01 not an object"
	otherKind = `{"kind":"Other","apiVersion":"test.example.com/v1","metadata":{"name":"x","namespace":"a"}}`
	// older lacks the default of size and has a field that the kind does not have.
	older = `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"x","namespace":"a","labels":{"on":""}},"spec":{"color":"red","gone":1}}` + "\n"
)

var foreignTests = []objectTest{
	{name: "older bytes are completed", run: func(t *testing.T, s *objects) {
		revision := s.plant("a/x", older)
		r := s.get("a/x", storage.Read{Match: storage.NotOlderThan, Revision: revision})
		g := s.decode(r)
		if !r.Stale || g.Spec.Size != 1 || g.Spec.Color != "red" || strings.Contains(string(r.Body.Bytes()), "gone") {
			t.Errorf("the record is %s, stale %v", r.Body.Bytes(), r.Stale)
		}
		if !r.Labels.Has("on") || r.Fields.Get("spec.color") != "red" {
			t.Errorf("the labels are %v, the color %q", r.Labels, r.Fields.Get("spec.color"))
		}
		p := s.list(storage.ListOptions{Selection: byLabel("on")})
		for r := range p.Records {
			if !r.Stale {
				t.Error("the listed record is not stale")
			}
		}
		if p.Count != 1 {
			t.Errorf("%d records", p.Count)
		}
	}},
	{name: "a stale object is rewritten by an update that changes nothing", run: func(t *testing.T, s *objects) {
		planted := s.plant("a/x", older)
		r := s.edit("a/x", func(*Gadget) {})
		if r.Revision <= planted || r.Stale {
			t.Fatalf("the record is at %d, stale %v; planted at %d", r.Revision, r.Stale, planted)
		}
		if again := s.edit("a/x", func(*Gadget) {}); again.Revision != r.Revision {
			t.Errorf("it was rewritten twice: %d, %d", r.Revision, again.Revision)
		}
	}},
	{name: "neighbours in the backend are not seen", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{})
		for _, key := range []string{
			strings.TrimSuffix(s.prefix, "/"), strings.TrimSuffix(s.prefix, "/") + "s/a/x", strings.TrimSuffix(s.prefix, "/") + "0/a/x",
		} {
			c := storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(notJSON)}
			if _, err := s.behind().Commit(s.ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		r := s.create("a/x")
		w.want(at("ADDED a/x size 1", r))
		if p := s.list(storage.ListOptions{}); names(p) != "a/x" {
			t.Errorf("the list is %q", names(p))
		}
	}},
}
