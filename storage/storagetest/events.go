package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// events is a watch under test.
type events struct {
	storage.Watch
	s       *objects
	pending []storage.Event
}

func (s *objects) watch(opts storage.WatchOptions) *events {
	s.t.Helper()
	w, err := s.Watch(s.ctx, opts)
	if err != nil {
		s.t.Fatalf("Watch(%+v): %v", opts, err)
	}
	s.t.Cleanup(w.Close)
	return &events{Watch: w, s: s}
}

func (e *events) next() storage.Event {
	e.s.t.Helper()
	if len(e.pending) == 0 {
		ctx, cancel := context.WithTimeout(e.s.ctx, Timeout)
		defer cancel()
		got, err := e.Next(ctx)
		if err != nil {
			e.s.t.Fatalf("Next: %v", err)
		}
		if len(got) == 0 {
			e.s.t.Fatal("Next: no event and no error")
		}
		e.pending = append(e.pending, got...)
	}
	event := e.pending[0]
	e.pending = e.pending[1:]
	return event
}

// want checks that the next events are exactly these, in the format of eventText.
func (e *events) want(want ...string) {
	e.s.t.Helper()
	for i, w := range want {
		if got := e.s.eventText(e.next()); got != w {
			e.s.t.Fatalf("event %d is %q, want %q", i, got, w)
		}
	}
}

// wantIdle checks that nothing more was sent up to the store's revision.
func (e *events) wantIdle() {
	e.s.t.Helper()
	for now := e.s.revision(); ; {
		e.RequestProgress()
		event := e.next()
		if event.Type != watch.Bookmark || event.InitialEnd {
			e.s.t.Fatalf("unexpected event %q", e.s.eventText(event))
		}
		if event.Record.Revision >= now {
			return
		}
	}
}

func (e *events) fails(want error) error {
	e.s.t.Helper()
	ctx, cancel := context.WithTimeout(e.s.ctx, Timeout)
	defer cancel()
	for {
		got, err := e.Next(ctx)
		if err == nil && len(got) == 1 && got[0].Type == watch.Bookmark {
			continue
		}
		if !errors.Is(err, want) {
			e.s.t.Fatalf("Next: %+v, %v; want %v", got, err, want)
		}
		return err
	}
}

// eventText returns an event as text: "ADDED ns/a size 1 @5".
func (s *objects) eventText(e storage.Event) string {
	s.t.Helper()
	if e.Type == watch.Bookmark {
		end := ""
		if e.InitialEnd {
			end = " end"
		}
		return fmt.Sprintf("BOOKMARK%s @%d", end, e.Record.Revision)
	}
	g := s.decode(e.Record)
	if g.ResourceVersion != strconv.FormatInt(e.Record.Revision, 10) || g.Namespace+"/"+g.Name != e.Record.Key {
		s.t.Fatalf("the event's record is %q at %d, its object %s/%s at %s", e.Record.Key, e.Record.Revision, g.Namespace, g.Name, g.ResourceVersion)
	}
	return fmt.Sprintf("%s %s size %d @%d", e.Type, e.Record.Key, g.Spec.Size, e.Record.Revision)
}

func at(format string, r storage.Record) string { return fmt.Sprintf(format+" @%d", r.Revision) }

// label and unlabel change whether byLabel("on") selects an object, and its size.
func (s *objects) label(key string) storage.Record {
	s.t.Helper()
	return s.edit(key, func(g *Gadget) {
		g.Labels = map[string]string{"on": ""}
		g.Spec.Size++
	})
}

func (s *objects) unlabel(key string) storage.Record {
	s.t.Helper()
	return s.edit(key, func(g *Gadget) {
		g.Labels = nil
		g.Spec.Size++
	})
}

var eventTests = []objectTest{
	{name: "from now", run: func(t *testing.T, s *objects) {
		s.create("a/before")
		w := s.watch(storage.WatchOptions{})
		r1, r2, r3 := s.create("a/x"), s.resize("a/x"), s.create("b/y")
		r4 := s.remove("a/x")
		w.want(at("ADDED a/x size 1", r1), at("MODIFIED a/x size 2", r2), at("ADDED b/y size 1", r3), at("DELETED a/x size 2", r4))
		w.wantIdle()
	}},
	{name: "from a revision", run: func(t *testing.T, s *objects) {
		r1, r2, r3 := s.create("a/x"), s.resize("a/x"), s.remove("a/x")
		w := s.watch(storage.WatchOptions{From: r1.Revision})
		w.want(at("MODIFIED a/x size 2", r2), at("DELETED a/x size 2", r3))
		w.wantIdle()
		w = s.watch(storage.WatchOptions{From: r2.Revision})
		w.want(at("DELETED a/x size 2", r3))
		w.wantIdle()
	}},
	{name: "from the future", run: func(t *testing.T, s *objects) {
		from := s.revision() + 3
		w := s.watch(storage.WatchOptions{From: from})
		w.RequestProgress() // no bookmark is below the start of the watch
		var want []string
		for i := 0; len(want) < 2; i++ {
			if r := s.create(fmt.Sprint("a/", i)); r.Revision > from {
				want = append(want, at("ADDED "+r.Key+" size 1", r))
			}
		}
		for _, text := range want {
			e := w.next()
			for e.Type == watch.Bookmark && e.Record.Revision >= from {
				e = w.next() // the answer to the request above
			}
			if got := s.eventText(e); got != text {
				t.Fatalf("got %q, want %q", got, text)
			}
		}
	}},
	{name: "label transitions", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Selection: byLabel("on")})
		s.create("a/x")
		r2, r3 := s.label("a/x"), s.label("a/x")
		r4 := s.unlabel("a/x")
		s.unlabel("a/x")
		r6 := s.label("a/x")
		r7 := s.remove("a/x")
		s.create("a/y")
		s.remove("a/y")
		w.want(at("ADDED a/x size 2", r2), at("MODIFIED a/x size 3", r3), at("DELETED a/x size 3", r4),
			at("ADDED a/x size 6", r6), at("DELETED a/x size 6", r7))
		w.wantIdle()
	}},
	{name: "field transitions", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Selection: byField("spec.color=red")})
		r1 := s.create("a/x", "color:red")
		r2 := s.edit("a/x", func(g *Gadget) { g.Spec.Color = "blue"; g.Spec.Size++ })
		r3 := s.edit("a/x", func(g *Gadget) { g.Spec.Color = "red"; g.Spec.Size++ })
		w.want(at("ADDED a/x size 1", r1), at("DELETED a/x size 1", r2), at("ADDED a/x size 3", r3))
		w.wantIdle()
	}},
	{name: "a deletion shows the old content", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Selection: byLabel("on")})
		s.create("a/x", "on=")
		s.unlabel("a/x")
		w.next()
		e := w.next()
		if e.Type != watch.Deleted || !e.Record.Labels.Has("on") {
			t.Errorf("got %s with labels %v, want the old labels", e.Type, e.Record.Labels)
		}
	}},
	{name: "of a namespace", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "a"}})
		s.create("aa/x")
		s.create("b/x")
		r := s.create("a/x")
		w.want(at("ADDED a/x size 1", r))
		w.wantIdle()
	}},
	{name: "of a name", run: func(t *testing.T, s *objects) {
		one := s.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "a", Name: "x"}})
		field := s.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "a", Fields: byField("metadata.name=x").Fields}})
		anywhere := s.watch(storage.WatchOptions{Selection: byField("metadata.name=x")})
		none := s.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "a", Name: ".."}})
		s.create("a/xx")
		s.create("a/w")
		r1, r2 := s.create("a/x"), s.create("b/x")
		one.want(at("ADDED a/x size 1", r1))
		field.want(at("ADDED a/x size 1", r1))
		anywhere.want(at("ADDED a/x size 1", r1), at("ADDED b/x size 1", r2))
		for _, w := range []*events{one, field, anywhere, none} {
			w.wantIdle()
		}
	}},
	{name: "no event for no change", run: func(t *testing.T, s *objects) {
		s.create("a/x")
		w := s.watch(storage.WatchOptions{})
		s.edit("a/x", func(*Gadget) {})
		for _, change := range []storage.ChangeFunc{remove, edit(func(g *Gadget) { g.Spec.Size = 9 })} {
			if _, err := s.Update(s.ctx, "a/x", storage.WriteOptions{DryRun: true}, change); err != nil {
				t.Fatal(err)
			}
		}
		w.wantIdle()
	}},
	{name: "a bookmark when asked for", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Selection: storage.Selection{Namespace: "quiet"}})
		now := s.create("a/x").Revision
		w.wantIdle()
		r := s.create("quiet/x")
		w.want(at("ADDED quiet/x size 1", r))
		if now >= r.Revision {
			t.Errorf("revision %d after %d", r.Revision, now)
		}
	}},
	{name: "a revision that is gone", run: func(t *testing.T, s *objects) {
		old := s.create("a/x").Revision
		r := s.resize("a/x")
		s.compact()
		w, err := s.Watch(s.ctx, storage.WatchOptions{From: old})
		if err == nil {
			defer w.Close()
			var got []storage.Event
			got, err = w.Next(s.ctx)
			if err == nil && got[0].Type == watch.Modified && got[0].Record.Revision == r.Revision {
				return // a cache still has it
			}
		}
		wantExpired(t, err, old)
	}},
	{name: "ends with Close", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{})
		done := make(chan error, 1)
		go func() {
			_, err := w.Next(s.ctx)
			done <- err
		}()
		w.Close()
		if err := <-done; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next: %v, want ErrClosed", err)
		}
		w.Close()
		w.RequestProgress()
		w.fails(storage.ErrClosed)
	}},
	{name: "ends with its context", run: func(t *testing.T, s *objects) {
		ctx, cancel := context.WithCancel(s.ctx)
		w, err := s.Watch(ctx, storage.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		if got, err := w.Next(s.ctx); err == nil {
			t.Errorf("Next: %+v, want an error", got)
		}
	}},
	{name: "a reader gives up and comes back", run: func(t *testing.T, s *objects) {
		for _, initial := range []bool{false, true} {
			ns := fmt.Sprint(initial)
			w := s.watch(storage.WatchOptions{Initial: initial, Selection: storage.Selection{Namespace: ns}})
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("Next: %v, want context.Canceled", err)
			}
			if initial {
				w.want(fmt.Sprintf("BOOKMARK end @%d", s.revision()))
			}
			r := s.create(ns + "/x")
			w.want(at("ADDED "+r.Key+" size 1", r))
		}
	}},
}

var initialTests = []objectTest{
	{name: "nothing", run: func(t *testing.T, s *objects) {
		w := s.watch(storage.WatchOptions{Initial: true})
		w.want(fmt.Sprintf("BOOKMARK end @%d", s.revision()))
		r := s.create("a/x")
		w.want(at("ADDED a/x size 1", r))
	}},
	{name: "the state, its end, and what follows", run: func(t *testing.T, s *objects) {
		y, x := s.create("a/y"), s.create("a/x")
		s.create("a/gone")
		now := s.remove("a/gone")
		for _, read := range []storage.Read{{}, {Match: storage.NotOlderThan, Revision: now.Revision}} {
			w := s.watch(storage.WatchOptions{Initial: true, At: read})
			w.want(at("ADDED a/x size 1", x), at("ADDED a/y size 1", y), at("BOOKMARK end", now))
			w.wantIdle()
		}
		w := s.watch(storage.WatchOptions{Initial: true})
		later := s.resize("a/x")
		w.want(at("ADDED a/x size 1", x), at("ADDED a/y size 1", y), at("BOOKMARK end", now), at("MODIFIED a/x size 2", later))
		w.wantIdle()
	}},
	{name: "any state", run: func(t *testing.T, s *objects) {
		s.create("a/x")
		w := s.watch(storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.Any}})
		seen := ""
		for i := 0; seen != "a/x" && i < 4; i++ { // at once, or later if the initial state was an older one
			if e := w.next(); e.Type == watch.Added {
				seen += e.Record.Key
			}
		}
		if seen != "a/x" {
			t.Errorf("got %q", seen)
		}
	}},
	{name: "selected", run: func(t *testing.T, s *objects) {
		x := s.create("a/x", "on=")
		s.create("a/y")
		s.create("b/x", "on=")
		sel := byLabel("on")
		sel.Namespace = "a"
		w := s.watch(storage.WatchOptions{Initial: true, Selection: sel})
		w.want(at("ADDED a/x size 1", x), fmt.Sprintf("BOOKMARK end @%d", s.revision()))
		y := s.label("a/y")
		w.want(at("ADDED a/y size 2", y))
		one := s.watch(storage.WatchOptions{Initial: true, Selection: storage.Selection{Namespace: "a", Name: "x"}})
		one.want(at("ADDED a/x size 1", x), fmt.Sprintf("BOOKMARK end @%d", s.revision()))
		anywhere := s.watch(storage.WatchOptions{Initial: true, Selection: byField("metadata.name=y")})
		anywhere.want(at("ADDED a/y size 2", y), fmt.Sprintf("BOOKMARK end @%d", s.revision()))
	}},
	{name: "many", run: func(t *testing.T, s *objects) {
		var want []string
		for i := range 1200 {
			r := s.create(fmt.Sprintf("a/%04d", i))
			want = append(want, at("ADDED "+r.Key+" size 1", r))
		}
		w := s.watch(storage.WatchOptions{Initial: true})
		w.want(append(want, fmt.Sprintf("BOOKMARK end @%d", s.revision()))...)
		w.wantIdle()
	}},
	{name: "the future does not come", run: func(t *testing.T, s *objects) {
		now := s.create("a/x").Revision
		_, err := s.Watch(s.ctx, storage.WatchOptions{Initial: true, At: storage.Read{Match: storage.NotOlderThan, Revision: now + 100}})
		wantFuture(t, err, now+100, now)
	}},
	{name: "no gap and no duplicate under writes", run: noGap},
}

// noGap starts watches while other goroutines write, lets each watch follow to the end, and compares the state that results
// from its events with the final list.
func noGap(t *testing.T, s *objects) {
	const writers, rounds, watchers = 3, 60, 6
	var writing, watching sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				if err := s.churn(fmt.Sprintf("n%d/k%d", w, i%7), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	states := make([]map[string]int64, watchers)
	for i := range watchers {
		w, err := s.Watch(s.ctx, storage.WatchOptions{Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watching.Go(func() {
			if states[i], err = replay(s.ctx, w); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	s.create("zz/end")
	watching.Wait()
	want := map[string]int64{}
	for r := range s.list(storage.ListOptions{}).Records {
		want[r.Key] = r.Revision
	}
	for i, state := range states {
		if fmt.Sprint(state) != fmt.Sprint(want) {
			t.Errorf("watcher %d has %v, want %v", i, state, want)
		}
	}
}

// churn creates, changes or deletes an object, depending on what is possible.
func (s *objects) churn(key string, i int) error {
	_, err := s.Create(s.ctx, key, gadget(key), storage.WriteOptions{})
	if !errors.Is(err, storage.ErrExists) {
		return err
	}
	change := remove
	if i%3 != 0 {
		change = edit(func(g *Gadget) { g.Spec.Size++ })
	}
	_, err = s.Update(s.ctx, key, storage.WriteOptions{}, change)
	return err
}

// replay applies a watch's events to an empty state, up to the object zz/end, and checks that each event fits the state
// before it.
func replay(ctx context.Context, w storage.Watch) (map[string]int64, error) {
	state := map[string]int64{}
	live, last := false, int64(0)
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			key, revision := e.Record.Key, e.Record.Revision
			before, known := state[key]
			if live && e.Type != watch.Bookmark && revision <= last {
				return nil, fmt.Errorf("%s %s at %d comes after revision %d", e.Type, key, revision, last)
			}
			switch {
			case e.Type == watch.Bookmark && e.InitialEnd == live:
				return nil, fmt.Errorf("a bookmark at %d with InitialEnd %v when live is %v", revision, e.InitialEnd, live)
			case e.Type == watch.Bookmark:
				live, last = true, revision
				continue
			case known != (e.Type != watch.Added):
				return nil, fmt.Errorf("%s %s at %d, but it was known at %d", e.Type, key, revision, before)
			case e.Type == watch.Deleted:
				delete(state, key)
			default:
				state[key] = revision
			}
			if live {
				last = revision
			}
		}
		if _, ended := state["zz/end"]; ended && live {
			return state, nil
		}
	}
}
