package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// unreadableTests test values from which no object can be made.
var unreadableTests = []objectTest{
	{name: "others stay readable", run: func(t *testing.T, s *objects) {
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
	{name: "a list gives the reason of each", run: func(t *testing.T, s *objects) {
		s.plant("a/bad", notJSON)
		revision := s.plant("a/other", otherKind)
		_, err := s.List(s.ctx, storage.ListOptions{})
		u := wantUnreadable(t, err, "a/bad", "a/other")
		if u.Truncated || len(u.More) != 1 || u.Err == nil {
			t.Fatalf("the error is %+v", u)
		}
		other := u.More[0]
		if other.Err == nil || other.Err.Error() == u.Err.Error() || !strings.Contains(other.Err.Error(), "Other") {
			t.Errorf("the reasons are %q and %q", u.Err, other.Err)
		}
		if other.StoredKey != s.prefix+"a/other" && other.StoredKey != "" || other.Revision != revision && other.Revision != 0 {
			t.Errorf("the second is %+v", other)
		}
		for _, part := range []string{"a/bad", u.Err.Error(), "a/other", other.Err.Error()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}},
	{name: "a list names a hundred", run: func(t *testing.T, s *objects) {
		for i := range 101 {
			now := s.plant(fmt.Sprintf("a/bad%03d", i), notJSON)
			if i < 98 {
				continue
			}
			_, err := s.List(s.ctx, storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: now}})
			var u *storage.UnreadableError
			if !errors.As(err, &u) || len(u.More) != min(i, 99) || u.Truncated != (i > 99) {
				t.Fatalf("List of %d: %v, want a hundred keys", i+1, err)
			}
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
	{name: "deletion", run: func(t *testing.T, s *objects) {
		d := s.unsafe()
		good := s.create("a/good")
		planted := s.plant("a/bad", notJSON)
		s.plant("a/other", otherKind)
		w := s.watch(storage.WatchOptions{})
		if revision, err := d.DeleteUnreadable(s.ctx, "a/bad", storage.WriteOptions{DryRun: true}); err != nil || revision != planted {
			t.Errorf("a trial: %d, %v; want revision %d", revision, err, planted)
		}
		_, err := s.Get(s.ctx, "a/bad", storage.Read{})
		wantUnreadable(t, err, "a/bad")
		revision, err := d.DeleteUnreadable(s.ctx, "a/bad", storage.WriteOptions{})
		if now := s.revision(); err != nil || revision != now {
			t.Fatalf("DeleteUnreadable: %d, %v; the store is at %d", revision, err, now)
		}
		_, err = w.Next(s.ctx)
		wantUnreadable(t, err, "a/bad")
		s.gone("a/bad")
		_, err = s.List(s.ctx, storage.ListOptions{})
		wantUnreadable(t, err, "a/other")
		for key, want := range map[string]error{
			"a/good": storage.ErrReadable, "a/bad": storage.ErrNotFound, "a/never": storage.ErrNotFound, "a": storage.ErrNotFound, "a/b/c": storage.ErrNotFound,
		} {
			for _, try := range []bool{true, false} {
				if _, err := d.DeleteUnreadable(s.ctx, key, storage.WriteOptions{DryRun: try}); !errors.Is(err, want) {
					t.Errorf("%q, dry run %v: %v, want %v", key, try, err, want)
				}
			}
		}
		if r := s.get("a/good", storage.Read{}); r.Revision != good.Revision || s.revision() != revision {
			t.Errorf("the store is at %d, the readable object %+v", s.revision(), r)
		}
	}},
	{name: "deletion of what is repaired or replaced meanwhile", run: repairs},
}

// repairs checks that an object that was repaired before its deletion stays, however close the two are. The backend's own log
// shows what each deletion has deleted.
func repairs(t *testing.T, s *objects) {
	const rounds = 300
	d, b := s.unsafe(), &backend{Backend: s.behind(), t: t, ctx: s.ctx}
	log := b.watch(storage.WatchRange{Prefix: s.prefix, From: s.revision(), Prev: true})
	var deletions, others int
	for range rounds {
		s.plant("a/x", notJSON)
		var both sync.WaitGroup
		both.Go(func() {
			for _, value := range []string{notJSON + " either", older} {
				c := storage.Commit{Key: s.prefix + "a/x", Expect: storage.AnyRevision, Value: []byte(value)}
				if _, err := b.Commit(s.ctx, c); err != nil {
					t.Errorf("Commit: %v", err)
				}
			}
		})
		revision, err := d.DeleteUnreadable(s.ctx, "a/x", storage.WriteOptions{})
		both.Wait()
		switch {
		case err == nil:
			deletions++
		case errors.Is(err, storage.ErrReadable):
			others++
		default:
			t.Fatalf("DeleteUnreadable: %v", err)
		}
		for now := b.revision(); log.last < now || len(log.pending) > 0; {
			if len(log.pending) == 0 {
				log.RequestProgress()
				log.fill()
				continue
			}
			c := log.next()
			if c.Deleted && (err != nil || c.Revision != revision || c.Prev == nil || string(c.Prev.Value) == older) {
				t.Fatalf("DeleteUnreadable: %d, %v; the backend has %q", revision, err, text(c))
			}
		}
	}
	t.Logf("%d were deleted, %d repaired before", deletions, others)
}

// unsafe returns the storage as a storage.UnreadableDeleter, or skips the test.
func (s *objects) unsafe() storage.UnreadableDeleter {
	s.t.Helper()
	d, ok := s.Interface.(storage.UnreadableDeleter)
	if !ok {
		s.t.Skip("the storage is no storage.UnreadableDeleter")
	}
	return d
}

// wantUnreadable checks which keys an error names, and returns it.
func wantUnreadable(t *testing.T, err error, keys ...string) *storage.UnreadableError {
	t.Helper()
	var u *storage.UnreadableError
	if !errors.As(err, &u) {
		t.Fatalf("error %v, want an UnreadableError", err)
	}
	var got []string
	for one := range u.All() {
		got = append(got, one.Key)
	}
	if fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Errorf("the error names %q, want %q", got, keys)
	}
	return u
}
