package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
)

var getTests = []objectTest{
	{name: "a record is the object", run: func(t *testing.T, s *objects) {
		made := s.create("ns/a", "app=x", "color:red")
		r := s.get("ns/a", storage.Read{})
		if r.Key != "ns/a" || r.Revision != made.Revision || r.Stale {
			t.Errorf("the record is %+v", r)
		}
		want := `{"kind":"Gadget","apiVersion":"test.example.com/v1","metadata":{"name":"a","namespace":"ns","labels":{"app":"x"}},"spec":{"size":1,"color":"red"}`
		if !strings.HasPrefix(string(r.Body.Bytes()), want) {
			t.Errorf("the body is %s", r.Body.Bytes())
		}
		if r.Labels.Get("app") != "x" || r.Labels.Has("x") {
			t.Errorf("the labels are %v", r.Labels)
		}
		for field, want := range map[string]string{"metadata.name": "a", "metadata.namespace": "ns", "spec.color": "red"} {
			if got := r.Fields.Get(field); got != want || !r.Fields.Has(field) {
				t.Errorf("the field %s is %q, want %q", field, got, want)
			}
		}
		if r.Fields.Has("spec.size") || r.Fields.Get("spec.size") != "" {
			t.Error("spec.size is selectable")
		}
		g := s.decode(r)
		if g.Name != "a" || g.Spec.Color != "red" || g.ResourceVersion != strconv.FormatInt(r.Revision, 10) {
			t.Errorf("the object is %+v", g)
		}
		g.Spec.Color, g.Labels["app"] = "changed", "changed"
		if again := s.decode(r); again.Spec.Color != "red" || again.Labels["app"] != "x" {
			t.Error("decoded objects are shared")
		}
	}},
	{name: "what is not there", run: func(t *testing.T, s *objects) {
		s.create("ns/a")
		for _, key := range []string{"ns/b", "ns", "", "/", "ns/", "/a", "ns/a/b", "ns/..", "../a", "ns/.", "ns/a\x00", "\x00/a"} {
			if _, err := s.Get(s.ctx, key, storage.Read{}); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Get(%q): %v, want ErrNotFound", key, err)
			}
		}
	}},
	{name: "at a revision", run: func(t *testing.T, s *objects) {
		before := s.revision()
		r1 := s.create("ns/a", "color:red")
		r2 := s.edit("ns/a", func(g *Gadget) { g.Spec.Color = "blue" })
		s.remove("ns/a")
		for revision, want := range map[int64]string{r1.Revision: "red", r2.Revision: "blue"} {
			r := s.get("ns/a", storage.Read{Match: storage.Exact, Revision: revision})
			if r.Revision != revision || r.Fields.Get("spec.color") != want {
				t.Errorf("at %d: %+v", revision, r)
			}
		}
		for _, revision := range []int64{before, s.revision()} {
			_, err := s.Get(s.ctx, "ns/a", storage.Read{Match: storage.Exact, Revision: revision})
			if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("at %d: %v, want ErrNotFound", revision, err)
			}
		}
	}},
	{name: "not older than", run: func(t *testing.T, s *objects) {
		r := s.create("ns/a")
		for _, at := range []storage.Read{
			{Match: storage.NotOlderThan, Revision: r.Revision},
			{Match: storage.NotOlderThan, Revision: 1},
			{Match: storage.Latest},
		} {
			if got := s.get("ns/a", at); got.Revision != r.Revision {
				t.Errorf("%+v: revision %d, want %d", at, got.Revision, r.Revision)
			}
		}
	}},
	{name: "the future does not come", run: func(t *testing.T, s *objects) {
		now := s.create("ns/a").Revision
		for _, match := range []storage.Match{storage.NotOlderThan, storage.Exact} {
			_, err := s.Get(s.ctx, "ns/a", storage.Read{Match: match, Revision: now + 100})
			wantFuture(t, err, now+100, now)
		}
	}},
	{name: "the future comes", options: longReadWait, run: func(t *testing.T, s *objects) {
		for _, match := range []storage.Match{storage.NotOlderThan, storage.Exact} {
			s.comes(func(revision int64) error {
				_, err := s.Get(s.ctx, "ns/none", storage.Read{Match: match, Revision: revision})
				if errors.Is(err, storage.ErrNotFound) {
					return nil
				}
				return fmt.Errorf("a read of a missing key: %w", err)
			})
		}
	}},
	{name: "a revision that is gone", run: func(t *testing.T, s *objects) {
		old := s.create("ns/a").Revision
		s.resize("ns/a")
		s.compact()
		r, err := s.Get(s.ctx, "ns/a", storage.Read{Match: storage.Exact, Revision: old})
		if err == nil && r.Revision == old {
			return // a cache still has it
		}
		wantExpired(t, err, old)
	}},
}

// longReadWait makes reads wait longer than any test.
func longReadWait(o *storage.StoreOptions) { o.ReadWait = 4 * Timeout }

// comes runs a read for a revision that is two commits in the future, and makes the commits.
func (s *objects) comes(read func(revision int64) error) {
	s.t.Helper()
	want := s.revision() + 2
	done := make(chan error, 1)
	go func() { done <- read(want) }()
	for i := 0; s.revision() < want; i++ {
		s.create(fmt.Sprintf("later/%d-%d", want, i))
	}
	if err := <-done; err != nil {
		s.t.Errorf("for a revision that comes: %v", err)
	}
}

func wantFuture(t *testing.T, err error, requested, current int64) {
	t.Helper()
	var future *storage.FutureError
	if !errors.As(err, &future) || future.Requested != requested || future.Current != current {
		t.Errorf("error %v, want a FutureError for %d at %d", err, requested, current)
	}
}

func wantExpired(t *testing.T, err error, revision int64) *storage.ExpiredError {
	t.Helper()
	var expired *storage.ExpiredError
	if !errors.As(err, &expired) || expired.Revision != revision {
		t.Fatalf("error %v, want an ExpiredError for %d", err, revision)
	}
	return expired
}

var createTests = []objectTest{
	{name: "only once", run: func(t *testing.T, s *objects) {
		first := s.create("ns/a", "color:red")
		for _, dry := range []bool{false, true} {
			_, err := s.Create(s.ctx, "ns/a", gadget("ns/a"), storage.WriteOptions{DryRun: dry})
			if !errors.Is(err, storage.ErrExists) {
				t.Errorf("the second Create: %v, want ErrExists", err)
			}
		}
		if r := s.get("ns/a", storage.Read{}); r.Revision != first.Revision {
			t.Errorf("the second Create changed the object: %+v", r)
		}
		s.remove("ns/a")
		if again := s.create("ns/a"); again.Revision <= first.Revision {
			t.Errorf("revision %d after %d", again.Revision, first.Revision)
		}
	}},
	{name: "the object stays the caller's", run: func(t *testing.T, s *objects) {
		g := gadget("ns/a", "app=x")
		g.ResourceVersion = "77"
		made, err := s.Create(s.ctx, "ns/a", g, storage.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if g.ResourceVersion != "77" || g.Kind != "" {
			t.Errorf("Create changed the object: %+v", g)
		}
		g.Labels["app"], g.Spec.Size = "y", 99
		for _, r := range []storage.Record{made, s.get("ns/a", storage.Read{})} {
			if bytes.Contains(r.Body.Bytes(), []byte("77")) || bytes.Contains(r.Body.Bytes(), []byte("99")) || r.Labels.Get("app") != "x" {
				t.Errorf("the record is %s, labels %v", r.Body.Bytes(), r.Labels)
			}
		}
	}},
	{name: "the record is what Get returns", run: func(t *testing.T, s *objects) {
		made := s.create("ns/a", "app=x", "color:red")
		got := s.get("ns/a", storage.Read{})
		if made.Revision != got.Revision || !bytes.Equal(made.Body.Bytes(), got.Body.Bytes()) || made.Labels.Get("app") != "x" ||
			made.Fields.Get("spec.color") != "red" {
			t.Errorf("Create returned %+v, Get %+v", made, got)
		}
	}},
	{name: "dry run", run: func(t *testing.T, s *objects) {
		before := s.revision()
		r, err := s.Create(s.ctx, "ns/a", gadget("ns/a"), storage.WriteOptions{DryRun: true})
		if err != nil || r.Revision != 0 || r.Key != "ns/a" {
			t.Fatalf("Create: %+v, %v", r, err)
		}
		if g := s.decode(r); g.ResourceVersion != "" || g.Name != "a" {
			t.Errorf("the object is %+v", g)
		}
		s.gone("ns/a")
		if now := s.revision(); now != before {
			t.Errorf("the revision went from %d to %d", before, now)
		}
	}},
	{name: "bad keys", run: func(t *testing.T, s *objects) {
		for _, key := range []string{"", "a", "ns/", "/a", "ns/a/b", "ns/..", "./a", "ns/a\x00b"} {
			if _, err := s.Create(s.ctx, key, gadget("ns/a"), storage.WriteOptions{}); !errors.Is(err, storage.ErrBadKey) {
				t.Errorf("Create(%q): %v, want ErrBadKey", key, err)
			}
		}
	}},
	{name: "too large", options: small, run: func(t *testing.T, s *objects) {
		for _, dry := range []bool{false, true} {
			_, err := s.Create(s.ctx, "ns/a", gadget("ns/a", "color:"+strings.Repeat("x", 400)), storage.WriteOptions{DryRun: dry})
			if !errors.Is(err, storage.ErrTooLarge) {
				t.Errorf("Create: %v, want ErrTooLarge", err)
			}
		}
		s.gone("ns/a")
		s.create("ns/a", "color:"+strings.Repeat("x", 100))
		_, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, edit(func(g *Gadget) { g.Spec.Color += strings.Repeat("x", 300) }))
		if !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("Update: %v, want ErrTooLarge", err)
		}
	}},
}

func small(o *storage.StoreOptions) { o.MaxObjectBytes = 400 }

var updateTests = []objectTest{
	{name: "in place", run: func(t *testing.T, s *objects) {
		r1 := s.create("ns/a")
		r2 := s.edit("ns/a", func(g *Gadget) {
			if g.ResourceVersion != strconv.FormatInt(r1.Revision, 10) {
				t.Errorf("the object is at %s, want %d", g.ResourceVersion, r1.Revision)
			}
			g.Spec.Color = "blue"
		})
		if r2.Revision <= r1.Revision || r2.Fields.Get("spec.color") != "blue" {
			t.Errorf("the record is %+v", r2)
		}
		if got := s.get("ns/a", storage.Read{}); got.Revision != r2.Revision || !bytes.Equal(got.Body.Bytes(), r2.Body.Bytes()) {
			t.Errorf("Update returned %+v, Get %+v", r2, got)
		}
	}},
	{name: "nothing changes", run: func(t *testing.T, s *objects) {
		r1 := s.create("ns/a", "app=x")
		now := s.revision()
		for name, change := range map[string]storage.ChangeFunc{
			"the same object": edit(func(*Gadget) {}),
			"no outcome": func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
				return storage.Outcome{}, nil
			},
			"another resourceVersion": edit(func(g *Gadget) {
				g.ResourceVersion = "1"
			}),
		} {
			r, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, change)
			if err != nil || r.Revision != r1.Revision || s.revision() != now {
				t.Errorf("%s: %+v, %v; the store is at %d, was at %d", name, r, err, s.revision(), now)
			}
		}
	}},
	{name: "what is not there", run: func(t *testing.T, s *objects) {
		for _, key := range []string{"ns/a", "a", "ns/..", "ns/\x00"} {
			_, err := s.Update(s.ctx, key, storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
				t.Errorf("the change of %q was asked for", key)
				return storage.Outcome{}, nil
			})
			if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Update(%q): %v, want ErrNotFound", key, err)
			}
		}
	}},
	{name: "an error of the change", run: func(t *testing.T, s *objects) {
		r1 := s.create("ns/a")
		mine := errors.New("mine")
		_, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{}, mine
		})
		if err != mine { //nolint:errorlint // the error must be returned unchanged
			t.Errorf("Update: %v, want the change's own error", err)
		}
		if r := s.get("ns/a", storage.Read{}); r.Revision != r1.Revision {
			t.Errorf("the object changed: %+v", r)
		}
	}},
	{name: "deletion", run: func(t *testing.T, s *objects) {
		r1 := s.create("ns/a", "app=x")
		r2 := s.remove("ns/a")
		if r2.Revision <= r1.Revision || r2.Revision != s.revision() || r2.Labels.Get("app") != "x" || !bytes.Equal(r1.Body.Bytes(), r2.Body.Bytes()) {
			t.Errorf("the deletion returned %+v, want the last record at the deletion's revision %d", r2, s.revision())
		}
		s.gone("ns/a")
	}},
	{name: "dry run", run: func(t *testing.T, s *objects) {
		r1 := s.create("ns/a")
		dry := storage.WriteOptions{DryRun: true}
		r, err := s.Update(s.ctx, "ns/a", dry, edit(func(g *Gadget) { g.Spec.Color = "blue" }))
		if err != nil || r.Revision != r1.Revision || r.Fields.Get("spec.color") != "blue" {
			t.Errorf("Update: %+v, %v", r, err)
		}
		if r, err = s.Update(s.ctx, "ns/a", dry, remove); err != nil || r.Revision != r1.Revision {
			t.Errorf("Update with a deletion: %+v, %v", r, err)
		}
		if r := s.get("ns/a", storage.Read{}); !bytes.Equal(r.Body.Bytes(), r1.Body.Bytes()) || s.revision() != r1.Revision {
			t.Errorf("the object changed: %+v", r)
		}
	}},
	{name: "a conflict asks again", run: func(t *testing.T, s *objects) {
		s.create("ns/a")
		asked := 0
		r := s.edit("ns/a", func(g *Gadget) {
			if asked++; asked == 1 {
				s.edit("ns/a", func(g *Gadget) { g.Spec.Color = "meanwhile" })
			}
			g.Spec.Size = 7
		})
		g := s.decode(r)
		if asked < 2 || g.Spec.Size != 7 || g.Spec.Color != "meanwhile" {
			t.Errorf("asked %d times, the object is %+v", asked, g.Spec)
		}
	}},
	{name: "a conflict with a deletion", run: func(t *testing.T, s *objects) {
		s.create("ns/a")
		_, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, edit(func(g *Gadget) {
			s.remove("ns/a")
			g.Spec.Size = 7
		}))
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Update: %v, want ErrNotFound", err)
		}
		s.gone("ns/a")
	}},
	{name: "a deletion meets a conflict", run: func(t *testing.T, s *objects) {
		s.create("ns/a")
		first := true
		r, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, func(_ context.Context, _ runtime.Object, r storage.Record) (storage.Outcome, error) {
			if first {
				first = false
				s.edit("ns/a", func(g *Gadget) { g.Spec.Color = "meanwhile" })
			}
			return storage.Outcome{Delete: true}, nil
		})
		if err != nil || r.Fields.Get("spec.color") != "meanwhile" {
			t.Errorf("Update: %+v, %v", r, err)
		}
		s.gone("ns/a")
	}},
	{name: "endless conflicts end with the context", run: func(t *testing.T, s *objects) {
		s.create("ns/a")
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		asked := 0
		_, err := s.Update(ctx, "ns/a", storage.WriteOptions{}, edit(func(g *Gadget) {
			s.resize("ns/a")
			if asked++; asked == 5 {
				cancel()
			}
			g.Spec.Color = "mine"
		}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Update: %v, want context.Canceled", err)
		}
	}},
	{name: "concurrent counters", run: func(t *testing.T, s *objects) {
		const writers, rounds = 6, 20
		s.create("ns/a")
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range rounds {
					_, err := s.Update(s.ctx, "ns/a", storage.WriteOptions{}, edit(func(g *Gadget) { g.Spec.Size++ }))
					if err != nil {
						t.Errorf("Update: %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		if g := s.decode(s.get("ns/a", storage.Read{})); g.Spec.Size != 1+writers*rounds {
			t.Errorf("the size is %d, want %d", g.Spec.Size, 1+writers*rounds)
		}
	}},
}
