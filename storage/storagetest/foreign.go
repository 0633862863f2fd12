package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// Values that no build of the storage's own codec has written.
const (
	notJSON   = "\x00\x01 not an object"
	otherKind = `{"kind":"Other","apiVersion":"test.example.com/v1","metadata":{"name":"x","namespace":"a"}}`
	// older lacks the default of size and has a field that the kind does not know.
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
	{name: "unreadable objects", run: func(t *testing.T, s *objects) {
		good := s.create("a/good")
		s.plant("a/bad", notJSON)
		now := s.plant("b/bad", otherKind)
		if r := s.get("a/good", storage.Read{}); r.Revision != good.Revision {
			t.Errorf("the readable object is %+v", r)
		}
		_, err := s.Get(s.ctx, "a/bad", storage.Read{})
		wantUnreadable(t, err, "a/bad")
		_, err = s.Update(s.ctx, "a/bad", storage.WriteOptions{}, edit(func(*Gadget) { t.Error("asked to change it") }))
		wantUnreadable(t, err, "a/bad")
		_, err = s.List(s.ctx, storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: now}})
		wantUnreadable(t, err, "a/bad", "b/bad")
		_, err = s.List(s.ctx, storage.ListOptions{Selection: storage.Selection{Namespace: "b"}})
		wantUnreadable(t, err, "b/bad")
		if p := s.list(storage.ListOptions{Selection: storage.Selection{Namespace: "a", Name: "good"}}); p.Count != 1 {
			t.Errorf("%d records", p.Count)
		}
	}},
	{name: "very many unreadable objects", run: func(t *testing.T, s *objects) {
		for i := range 150 {
			s.plant(fmt.Sprint("a/bad", i), notJSON)
		}
		_, err := s.List(s.ctx, storage.ListOptions{})
		var u *storage.UnreadableError
		if !errors.As(err, &u) || len(u.More) != 99 {
			t.Fatalf("List: %v, want a hundred keys", err)
		}
	}},
	{name: "a watch meets an unreadable object", run: func(t *testing.T, s *objects) {
		s.behind()
		w := s.watch(storage.WatchOptions{})
		r := s.create("a/good")
		s.plant("a/bad", notJSON)
		w.want(at("ADDED a/good size 1", r))
		_, err := w.Next(s.ctx)
		wantUnreadable(t, err, "a/bad")
		_, err = w.Next(s.ctx)
		wantUnreadable(t, err, "a/bad")
	}},
	{name: "a watch sees an unreadable object replaced", run: func(t *testing.T, s *objects) {
		s.plant("a/x", notJSON)
		all, some := s.watch(storage.WatchOptions{}), s.watch(storage.WatchOptions{Selection: byLabel("on")})
		s.plant("a/x", older)
		if e := all.next(); e.Record.Key != "a/x" || e.Record.Fields.Get("spec.color") != "red" {
			t.Errorf("got %+v", e)
		}
		if e := some.next(); e.Record.Key != "a/x" || e.Type != watch.Added {
			t.Errorf("with a selector, got %+v", e)
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

func wantUnreadable(t *testing.T, err error, keys ...string) {
	t.Helper()
	var u *storage.UnreadableError
	if !errors.As(err, &u) {
		t.Errorf("error %v, want an UnreadableError", err)
		return
	}
	if got := append([]string{u.Key}, u.More...); fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Errorf("the error names %q, want %q", got, keys)
	}
}
