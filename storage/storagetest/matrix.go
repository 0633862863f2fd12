package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// matrixTests are the tables of https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions, as far as
// they are about the storage: which state a read shows, and where a watch begins.
var matrixTests = []objectTest{
	{name: "which state a list shows", run: func(t *testing.T, s *objects) {
		var revisions []int64
		for i := range 6 {
			revisions = append(revisions, s.create(fmt.Sprint("a/", i)).Revision)
		}
		mid, now := revisions[2], revisions[5]
		s.list(storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: now}}) // a cache has reached that revision now
		for _, test := range []struct {
			name    string
			opts    storage.ListOptions
			exactly bool // at revision
			at      int64
			count   int
			more    bool
		}{
			{"the most recent", storage.ListOptions{}, true, now, 6, false},
			{"the most recent, limited", storage.ListOptions{Limit: 2}, true, now, 2, true},
			{"any", storage.ListOptions{At: storage.Read{Match: storage.Any}}, false, mid, 6, false},
			{"any, limited", storage.ListOptions{At: storage.Read{Match: storage.Any}, Limit: 2}, false, mid, 6, false},
			{"not older", storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: mid}}, false, mid, 6, false},
			{"not older, limited", storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: now}, Limit: 2}, false, now, 2, true},
			{"exactly", storage.ListOptions{At: exact(mid)}, true, mid, 3, false},
			{"exactly, limited", storage.ListOptions{At: exact(mid), Limit: 2}, true, mid, 2, true},
			{"exactly now", storage.ListOptions{At: exact(now)}, true, now, 6, false},
		} {
			p := s.list(test.opts)
			if p.Count != test.count || p.Revision < test.at || test.exactly && p.Revision != test.at || (p.Continue != "") != test.more {
				t.Errorf("%s: %d records at %d, continue %q; want %d at %d", test.name, p.Count, p.Revision, p.Continue, test.count, test.at)
			}
			if !test.more {
				continue
			}
			rest := s.list(storage.ListOptions{Continue: p.Continue})
			if rest.Revision != p.Revision || rest.Continue != "" || !strings.HasPrefix(names(rest), "a/2") {
				t.Errorf("%s: the rest is %q at %d, want it at %d", test.name, names(rest), rest.Revision, p.Revision)
			}
		}
	}},
	{name: "a token goes with no other revision", run: func(t *testing.T, s *objects) {
		s.create("a/1")
		now := s.create("a/2").Revision
		token := s.list(storage.ListOptions{Limit: 1}).Continue
		for _, match := range []storage.Match{storage.Exact, storage.NotOlderThan} {
			_, err := s.List(s.ctx, storage.ListOptions{Continue: token, At: storage.Read{Match: match, Revision: now}})
			if !errors.Is(err, storage.ErrBadContinue) {
				t.Errorf("List: %v, want ErrBadContinue", err)
			}
		}
	}},
	{name: "which state a get shows", run: func(t *testing.T, s *objects) {
		r1 := s.create("a/x")
		r2 := s.resize("a/x")
		s.get("a/x", storage.Read{Match: storage.NotOlderThan, Revision: r2.Revision})
		for _, test := range []struct {
			at   storage.Read
			want int64
		}{
			{storage.Read{}, r2.Revision},
			{storage.Read{Match: storage.Any}, 0},
			{storage.Read{Match: storage.NotOlderThan, Revision: r1.Revision}, 0},
			{storage.Read{Match: storage.NotOlderThan, Revision: r2.Revision}, r2.Revision},
			{exact(r1.Revision), r1.Revision},
			{exact(r2.Revision), r2.Revision},
		} {
			if r := s.get("a/x", test.at); test.want != 0 && r.Revision != test.want || r.Revision < r1.Revision {
				t.Errorf("%+v: revision %d, want %d", test.at, r.Revision, test.want)
			}
		}
	}},
	{name: "no state has revision 0 or less", run: func(t *testing.T, s *objects) {
		s.create("a/x")
		for _, at := range []storage.Read{{Match: storage.Exact}, {Match: storage.Exact, Revision: -1}} {
			if r, err := s.Get(s.ctx, "a/x", at); err == nil {
				t.Errorf("Get at %+v: %+v, want an error", at, r)
			}
			if p, err := s.List(s.ctx, storage.ListOptions{At: at}); err == nil {
				t.Errorf("List at %+v: %q, want an error", at, names(p))
			}
		}
	}},
	{name: "where a watch begins", run: func(t *testing.T, s *objects) {
		r1, r2 := s.create("a/x"), s.create("a/y")
		s.get("a/y", storage.Read{Match: storage.NotOlderThan, Revision: r2.Revision})
		state := []string{at("ADDED a/x size 1", r1), at("ADDED a/y size 1", r2), at("BOOKMARK end", r2)}
		for _, test := range []struct {
			name string
			opts storage.WatchOptions
			want []string
		}{
			{"now", storage.WatchOptions{}, nil},
			{"a revision", storage.WatchOptions{From: r1.Revision}, state[1:2]},
			{"the latest revision", storage.WatchOptions{From: r2.Revision}, nil},
			{"the most recent state", storage.WatchOptions{Initial: true}, state},
			{"a state not older", storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.NotOlderThan, Revision: r2.Revision}}, state},
			{"a state, whatever From says", storage.WatchOptions{Initial: true, From: r1.Revision}, state},
		} {
			w := s.watch(test.opts)
			w.want(test.want...)
			w.wantIdle()
			w.Close()
		}
		next := s.watch(storage.WatchOptions{From: r2.Revision})
		initial := s.watch(storage.WatchOptions{Initial: true})
		r3 := s.resize("a/x")
		next.want(at("MODIFIED a/x size 2", r3))
		initial.want(append(state, at("MODIFIED a/x size 2", r3))...)
	}},
	{name: "a watch cannot begin with exactly one state", run: func(t *testing.T, s *objects) {
		r := s.create("a/x")
		w, err := s.Watch(s.ctx, storage.WatchOptions{Initial: true, At: exact(r.Revision)})
		if err == nil {
			w.Close()
			t.Error("Watch: no error")
		}
	}},
	{name: "a watch begins with a state that comes", options: longReadWait, run: func(t *testing.T, s *objects) {
		s.comes(func(revision int64) error {
			w, err := s.Watch(s.ctx, storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.NotOlderThan, Revision: revision}})
			if err != nil {
				return err
			}
			defer w.Close()
			for {
				events, err := w.Next(s.ctx)
				if err != nil {
					return err
				}
				if last := events[len(events)-1]; last.InitialEnd && last.Record.Revision < revision {
					return fmt.Errorf("the state is of revision %d, want %d", last.Record.Revision, revision)
				} else if last.InitialEnd || last.Record.Revision > revision {
					return nil
				}
			}
		})
	}},
	{name: "what is gone is no obstacle to a later state", run: func(t *testing.T, s *objects) {
		old := s.create("a/x").Revision
		r := s.resize("a/x")
		s.compact()
		s.get("a/x", storage.Read{Match: storage.NotOlderThan, Revision: r.Revision}) // a cache has reached that revision now
		notOlder := storage.Read{Match: storage.NotOlderThan, Revision: old}
		if got := s.get("a/x", notOlder); got.Revision != r.Revision {
			t.Errorf("Get: revision %d, want %d", got.Revision, r.Revision)
		}
		if p := s.list(storage.ListOptions{At: notOlder}); names(p) != "a/x" || p.Revision < r.Revision {
			t.Errorf("List: %q at %d", names(p), p.Revision)
		}
		w := s.watch(storage.WatchOptions{Initial: true, At: notOlder})
		w.want(at("ADDED a/x size 2", r), at("BOOKMARK end", r))
		s.watch(storage.WatchOptions{From: r.Revision}).wantIdle()
	}},
	{name: "a slow watch is told that it has lost events", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{})
		s.create("a/x")
		s.resize("a/x")
		s.compact()
		for seen := 0; ; seen++ {
			events, err := w.Next(s.ctx)
			var expired *storage.ExpiredError
			if errors.As(err, &expired) {
				break
			}
			if err != nil {
				t.Fatalf("Next: %v, want the events or an ExpiredError", err)
			}
			if last := events[len(events)-1]; last.Type == watch.Modified {
				break // the watch has delivered them already
			}
			if seen > 3 {
				t.Fatalf("Next: %+v", events)
			}
		}
	}},
	{name: "a context that has ended", run: func(t *testing.T, s *objects) {
		r := s.create("a/x")
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		_, get := s.Get(ctx, "a/x", storage.Read{})
		_, list := s.List(ctx, storage.ListOptions{})
		_, create := s.Create(ctx, "a/y", gadget("a/y"), storage.WriteOptions{})
		_, update := s.Update(ctx, "a/x", storage.WriteOptions{}, edit(func(*Gadget) {}))
		_, revision := s.Revision(ctx)
		for name, err := range map[string]error{"Get": get, "List": list, "Create": create, "Update": update, "Revision": revision} {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want success or context.Canceled", name, err)
			}
		}
		if got := s.get("a/x", storage.Read{}); got.Revision != r.Revision {
			t.Errorf("Get: %+v", got)
		}
	}},
}
