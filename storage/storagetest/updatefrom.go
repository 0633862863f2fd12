package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
)

// asked is a ChangeFunc that records the revisions it was called with.
type asked struct {
	revisions []int64
	answer    func(n int, g *Gadget) (storage.Outcome, error) // n counts from 1
}

func (a *asked) change(_ context.Context, obj runtime.Object, r storage.Record) (storage.Outcome, error) {
	g, ok := obj.(*Gadget)
	if !ok {
		return storage.Outcome{}, fmt.Errorf("the object is a %T", obj)
	}
	if g.ResourceVersion != fmt.Sprint(r.Revision) {
		return storage.Outcome{}, fmt.Errorf("the object is at %s, and its record at %d", g.ResourceVersion, r.Revision)
	}
	a.revisions = append(a.revisions, r.Revision)
	return a.answer(len(a.revisions), g)
}

// errMine is an error that a change returns.
var errMine = errors.New("mine")

// The outcomes of a change. grown stores something, the others store nothing.
var (
	grown = func(_ int, g *Gadget) (storage.Outcome, error) {
		g.Spec.Size += 10
		return storage.Outcome{Object: g}, nil
	}
	deleted  = func(int, *Gadget) (storage.Outcome, error) { return storage.Outcome{Delete: true}, nil }
	same     = func(_ int, g *Gadget) (storage.Outcome, error) { return storage.Outcome{Object: g}, nil }
	nothing  = func(int, *Gadget) (storage.Outcome, error) { return storage.Outcome{}, nil }
	fails    = func(int, *Gadget) (storage.Outcome, error) { return storage.Outcome{}, errMine }
	notFound = func(int, *Gadget) (storage.Outcome, error) {
		return storage.Outcome{}, fmt.Errorf("what it needs: %w", storage.ErrNotFound)
	}
)

// updateFrom updates from a state and checks the revisions with which change was called.
func (s *objects) updateFrom(from storage.Record, opts storage.WriteOptions, answer func(int, *Gadget) (storage.Outcome, error), about ...int64) (storage.Record, error) {
	s.t.Helper()
	a := &asked{answer: answer}
	r, err := s.source().UpdateFrom(s.ctx, from, opts, a.change)
	if !slices.Equal(a.revisions, about) {
		s.t.Errorf("asked about the revisions %d, want %d (it ended with %v)", a.revisions, about, err)
	}
	return r, err
}

// unchanged checks that an update has stored nothing, and has returned the record of a revision.
func (s *objects) unchanged(r storage.Record, err error, revision, now int64) {
	s.t.Helper()
	if err != nil || r.Revision != revision || s.revision() != now {
		s.t.Errorf("the record is at %d, %v; want it at %d. The store is at %d, and was at %d", r.Revision, err, revision, s.revision(), now)
	}
}

// written checks that an update was the last commit, and what it has stored.
func (s *objects) written(r storage.Record, err error, size int32) {
	s.t.Helper()
	if err != nil || r.Revision != s.revision() {
		s.t.Fatalf("the record is at %d, %v; the store is at %d", r.Revision, err, s.revision())
	}
	if got := s.decode(r).Spec.Size; got != size {
		s.t.Errorf("size %d was returned, want %d", got, size)
	}
	if now := s.get(r.Key, storage.Read{}); now.Revision != r.Revision || s.decode(now).Spec.Size != size {
		s.t.Errorf("%s is stored at %d; want size %d at %d", now.Body.Bytes(), now.Revision, size, r.Revision)
	}
}

var updateFromTests = []objectTest{
	{name: "from what is current", run: func(t *testing.T, s *objects) {
		s.source()
		r := s.create("a/x")
		s.create("a/other")
		now := s.revision()
		got, err := s.updateFrom(r, storage.WriteOptions{}, same, r.Revision)
		s.unchanged(got, err, r.Revision, now)
		got, err = s.updateFrom(r, storage.WriteOptions{}, nothing, r.Revision)
		s.unchanged(got, err, r.Revision, now)
		got, err = s.updateFrom(r, storage.WriteOptions{DryRun: true}, grown, r.Revision)
		s.unchanged(got, err, r.Revision, now)
		if size := s.decode(got).Spec.Size; size != 11 {
			t.Errorf("a dry run returns size %d, want 11", size)
		}
		got, err = s.updateFrom(r, storage.WriteOptions{DryRun: true}, deleted, r.Revision)
		s.unchanged(got, err, r.Revision, now)
		if _, err = s.updateFrom(r, storage.WriteOptions{}, fails, r.Revision); !errors.Is(err, errMine) {
			t.Errorf("error %v, want that of change", err)
		}
		got, err = s.updateFrom(r, storage.WriteOptions{}, grown, r.Revision)
		s.written(got, err, 11)
		got, err = s.updateFrom(got, storage.WriteOptions{}, grown, got.Revision)
		s.written(got, err, 21)
		last, err := s.updateFrom(got, storage.WriteOptions{}, deleted, got.Revision)
		if err != nil || last.Revision != s.revision() || string(last.Body.Bytes()) != string(got.Body.Bytes()) {
			t.Errorf("a deletion: %+v, %v; the store is at %d", last, err, s.revision())
		}
		s.gone("a/x")
	}},
	{name: "from what was", run: func(t *testing.T, s *objects) {
		s.source()
		old := s.create("a/x")
		r := s.resize("a/x")
		now := s.revision()
		for _, answer := range []func(int, *Gadget) (storage.Outcome, error){same, nothing} {
			got, err := s.updateFrom(old, storage.WriteOptions{}, answer, old.Revision, r.Revision)
			s.unchanged(got, err, r.Revision, now)
		}
		for _, answer := range []func(int, *Gadget) (storage.Outcome, error){grown, same, nothing, deleted} {
			got, err := s.updateFrom(old, storage.WriteOptions{DryRun: true}, answer, old.Revision, r.Revision)
			s.unchanged(got, err, r.Revision, now)
		}
		for _, answer := range []func(int, *Gadget) (storage.Outcome, error){fails, notFound} {
			_, err := s.updateFrom(old, storage.WriteOptions{}, answer, old.Revision, r.Revision)
			if _, want := answer(1, nil); err == nil || err.Error() != want.Error() {
				t.Errorf("error %v, want that of change: %v", err, want)
			}
		}
		got, err := s.updateFrom(old, storage.WriteOptions{}, func(n int, g *Gadget) (storage.Outcome, error) {
			if n == 1 {
				return fails(n, g)
			}
			return grown(n, g)
		}, old.Revision, r.Revision)
		s.written(got, err, 12)
		last, err := s.updateFrom(old, storage.WriteOptions{}, grown, old.Revision, got.Revision)
		s.written(last, err, 22)
		if _, err := s.updateFrom(old, storage.WriteOptions{}, deleted, old.Revision, last.Revision); err != nil {
			t.Errorf("a deletion: %v", err)
		}
		s.gone("a/x")
	}},
	{name: "from what was deleted", run: func(t *testing.T, s *objects) {
		s.source()
		old := s.create("a/x")
		s.remove("a/x")
		now := s.revision()
		for _, dry := range []bool{false, true} {
			for i, answer := range []func(int, *Gadget) (storage.Outcome, error){grown, same, nothing, deleted, fails, notFound} {
				_, err := s.updateFrom(old, storage.WriteOptions{DryRun: dry}, answer, old.Revision)
				if err == nil || err.Error() != storage.ErrNotFound.Error() || s.revision() != now {
					t.Errorf("answer %d, dry run %v: %v; the store is at %d, and was at %d", i, dry, err, s.revision(), now)
				}
			}
		}
		again := s.create("a/x", "color:red")
		got, err := s.updateFrom(old, storage.WriteOptions{}, nothing, old.Revision, again.Revision)
		s.unchanged(got, err, again.Revision, again.Revision)
		got, err = s.updateFrom(old, storage.WriteOptions{}, grown, old.Revision, again.Revision)
		s.written(got, err, 11)
		if color := s.decode(got).Spec.Color; color != "red" {
			t.Errorf("the color is %q: it was made of the one before", color)
		}
	}},
	{name: "from no state", run: func(t *testing.T, s *objects) {
		r := s.create("a/x")
		for _, from := range []storage.Record{{Key: "a/x"}, {Key: "a/x", Body: r.Body}, {Key: "a/x", Revision: r.Revision}} {
			got, err := s.updateFrom(from, storage.WriteOptions{}, nothing, r.Revision)
			s.unchanged(got, err, r.Revision, r.Revision)
		}
		for _, key := range []string{"a/y", "a", "a/b/c", "", "a/.."} {
			if _, err := s.updateFrom(storage.Record{Key: key}, storage.WriteOptions{}, grown); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%q: %v, want ErrNotFound", key, err)
			}
		}
	}},
	{name: "to what is too large", options: small, run: func(t *testing.T, s *objects) {
		s.source()
		old := s.create("a/x")
		r := s.resize("a/x")
		large := func(_ int, g *Gadget) (storage.Outcome, error) {
			g.Spec.Color = string(slices.Repeat([]byte("x"), 400))
			return storage.Outcome{Object: g}, nil
		}
		if _, err := s.updateFrom(r, storage.WriteOptions{}, large, r.Revision); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("error %v, want ErrTooLarge", err)
		}
		if _, err := s.updateFrom(old, storage.WriteOptions{}, large, old.Revision, r.Revision); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("error %v, want ErrTooLarge", err)
		}
	}},
	{name: "what is stale is rewritten", run: func(t *testing.T, s *objects) {
		s.source()
		planted := s.plant("a/x", older)
		stale := s.get("a/x", storage.Read{Match: storage.NotOlderThan, Revision: planted})
		got, err := s.updateFrom(stale, storage.WriteOptions{}, same, planted)
		s.written(got, err, 1)
		if got.Stale {
			t.Error("it is stale still")
		}
		again, err := s.updateFrom(stale, storage.WriteOptions{}, same, planted, got.Revision)
		s.unchanged(again, err, got.Revision, got.Revision)
	}},
	{name: "what cannot be read any more", run: func(t *testing.T, s *objects) {
		s.source()
		old := s.create("a/x")
		now := s.plant("a/x", notJSON)
		for _, answer := range []func(int, *Gadget) (storage.Outcome, error){grown, same, nothing, deleted, fails} {
			_, err := s.updateFrom(old, storage.WriteOptions{}, answer, old.Revision)
			wantUnreadable(t, err, "a/x")
		}
		if s.revision() != now {
			t.Errorf("the store is at %d, and was at %d", s.revision(), now)
		}
		r := s.plant("a/x", older)
		got, err := s.updateFrom(old, storage.WriteOptions{}, grown, old.Revision, r)
		s.written(got, err, 11)
	}},
	{name: "what changes meanwhile", run: changesMeanwhile},
	{name: "a context that ends", run: func(t *testing.T, s *objects) {
		src := s.source()
		old := s.create("a/x")
		s.resize("a/x")
		now := s.revision()
		for _, own := range []bool{true, false} {
			ctx, cancel := context.WithCancel(s.ctx)
			a := &asked{answer: func(int, *Gadget) (storage.Outcome, error) {
				cancel()
				if own {
					return storage.Outcome{}, fmt.Errorf("the change: %w", ctx.Err())
				}
				return storage.Outcome{}, nil
			}}
			if _, err := src.UpdateFrom(ctx, old, storage.WriteOptions{}, a.change); !errors.Is(err, context.Canceled) || len(a.revisions) != 1 {
				t.Errorf("error %v, asked about %d; want the context's and one", err, a.revisions)
			}
		}
		if s.revision() != now {
			t.Errorf("the store is at %d, and was at %d", s.revision(), now)
		}
	}},
	{name: "many at the same time", run: func(t *testing.T, s *objects) {
		src := s.source()
		const clients, each = 6, 25
		first := s.create("a/x")
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				from := first
				for i := range each {
					r, err := src.UpdateFrom(s.ctx, from, storage.WriteOptions{}, edit(func(g *Gadget) { g.Spec.Size++ }))
					if err != nil {
						t.Errorf("UpdateFrom: %v", err)
						return
					}
					if i%3 != c%3 { // otherwise it continues from the previous record
						from = r
					}
				}
			})
		}
		all.Wait()
		if size := s.decode(s.get("a/x", storage.Read{})).Spec.Size; size != 1+clients*each {
			t.Errorf("the size is %d after %d increments", size, clients*each)
		}
	}},
}

// changesMeanwhile lets others write during the call of change.
func changesMeanwhile(t *testing.T, s *objects) {
	s.source()
	for name, answer := range map[string]func(int, *Gadget) (storage.Outcome, error){
		"grown": grown, "same": same, "nothing": nothing, "fails": fails, "deleted": deleted,
	} {
		for _, dry := range []bool{false, true} {
			key := fmt.Sprintf("a/%s-%v", name, dry)
			old := s.create(key)
			var between []storage.Record
			a := &asked{answer: func(n int, g *Gadget) (storage.Outcome, error) {
				if n <= 2 {
					between = append(between, s.resize(key))
				}
				return answer(n, g)
			}}
			r, err := s.source().UpdateFrom(s.ctx, old, storage.WriteOptions{DryRun: dry}, a.change)
			// A state that was read from the store may be used in its first version.
			want := []int64{old.Revision, between[0].Revision}
			stores := !dry && (name == "grown" || name == "deleted")
			if stores {
				want = append(want, between[1].Revision)
			}
			if !slices.Equal(a.revisions, want) || (err != nil) != (name == "fails") || err != nil && !errors.Is(err, errMine) {
				t.Errorf("%s, dry run %v: asked about %d, want %d; %v", name, dry, a.revisions, want, err)
			}
			switch {
			case stores && name == "grown":
				s.written(r, err, 13)
			case stores:
				s.gone(key)
			case s.revision() != between[1].Revision:
				t.Errorf("%s, dry run %v: the store is at %d, want %d", name, dry, s.revision(), between[1].Revision)
			}
		}
	}
	old := s.create("a/gone")
	if _, err := s.updateFrom(old, storage.WriteOptions{}, func(n int, g *Gadget) (storage.Outcome, error) {
		s.remove("a/gone")
		return grown(n, g)
	}, old.Revision); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("deleted meanwhile: %v, want ErrNotFound", err)
	}
}
