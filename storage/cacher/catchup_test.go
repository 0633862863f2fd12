package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// slowStart is a watch whose initial events are read while the window passes.
type slowStart struct {
	*rig
	w        storage.Watch
	caughtUp atomic.Int64
	objects  map[string]int64 // the state that results from the events so far
	before   map[string]int64 // the state when the watch began
	later    []string         // events of other objects
}

const slowObjects = 1300

// newSlowStart creates a thousand objects, half of them red, and reads the first initial events.
func newSlowStart(t *testing.T, sel storage.Selection) *slowStart {
	t.Helper()
	s := &slowStart{objects: map[string]int64{}}
	s.rig = newRig(t, nil, cacher.Options{
		WindowBytes: smallWindow, IndexFields: []string{"spec.color"}, Hooks: cacher.Hooks{CaughtUp: func() { s.caughtUp.Add(1) }},
	})
	for i := range slowObjects {
		s.put(fmt.Sprintf("a/k%04d", i), []string{"red", "blue"}[i%2])
	}
	s.fill()
	s.before = s.current(sel)
	var err error
	if s.w, err = s.Watch(s.ctx, storage.WatchOptions{Selection: sel, Initial: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.w.Close)
	return s
}

func (s *slowStart) current(sel storage.Selection) map[string]int64 {
	s.t.Helper()
	p, err := s.store.List(s.ctx, storage.ListOptions{Selection: sel})
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]int64{}
	for r := range p.Records {
		all[r.Key] = r.Revision
	}
	return all
}

// read calls Next once, and returns the revision of the bookmark at the end; 0 before that.
func (s *slowStart) read() (end int64, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, waitTime)
	defer cancel()
	events, err := s.w.Next(ctx)
	for i, e := range events {
		_, had := s.objects[e.Record.Key]
		switch {
		case e.InitialEnd && e.Type == watch.Bookmark && i == len(events)-1:
			return e.Record.Revision, nil
		case e.Type == watch.Added && !had, e.Type == watch.Modified && had:
			s.objects[e.Record.Key] = e.Record.Revision
		case e.Type == watch.Deleted && had:
			delete(s.objects, e.Record.Key)
		default:
			s.t.Fatalf("there is %s, when %q was told before: %v", eventText(e), e.Record.Key, had)
		}
		if e.Type != watch.Added || s.before[e.Record.Key] != e.Record.Revision {
			text := fmt.Sprintf("%s %s@%d", e.Type, e.Record.Key, e.Record.Revision)
			if e.Type == watch.Deleted {
				if text = fmt.Sprintf("%s %s", e.Type, e.Record.Key); e.Record.Revision > s.now() || len(e.Record.Body.Bytes()) == 0 {
					s.t.Fatalf("%s at revision %d, and the store is at %d; it has %d bytes", text, e.Record.Revision, s.now(), len(e.Record.Body.Bytes()))
				}
			}
			s.later = append(s.later, text)
		}
	}
	return 0, err
}

// finish reads to the end of the initial events. They must result in the state at the bookmark's revision.
func (s *slowStart) finish(sel storage.Selection, caughtUp int64) {
	s.t.Helper()
	end := int64(0)
	for end == 0 {
		var err error
		if end, err = s.read(); err != nil {
			s.t.Fatal(err)
		}
	}
	if want := s.current(sel); !maps.Equal(s.objects, want) || end != s.now() {
		s.t.Errorf("at %d there are %d objects, want %d at %d", end, len(s.objects), len(want), s.now())
	}
	if n := s.caughtUp.Load(); n != caughtUp {
		s.t.Errorf("it has caught up %d times, want %d", n, caughtUp)
	}
	v := &view{Watch: s.w, r: s.rig}
	v.want(fmt.Sprintf("ADDED a/new@%d", s.put("a/new", "red")))
}

func TestCatchUp(t *testing.T) {
	red := colored("red")
	red.Namespace = "a"
	for name, sel := range map[string]storage.Selection{
		"all": {}, "namespace": {Namespace: "a"}, "index": red,
		"selector": {Namespace: "a", Fields: fields.OneTermNotEqualSelector("spec.color", "blue")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlowStart(t, sel)
			if end, err := s.read(); err != nil || end != 0 || len(s.objects) < 100 {
				t.Fatal(end, err, len(s.objects))
			}
			keys := slices.Sorted(maps.Keys(s.objects))
			first, second := keys[0], keys[1]
			want := []string{
				fmt.Sprintf("ADDED a/0@%d", s.put("a/0", "red")),
				fmt.Sprintf("MODIFIED %s@%d", first, s.put(first, "red")),
			}
			s.drop(second)
			want = append(want, "DELETED "+second)
			s.drop("a/k1100")
			s.put("a/k1100", "red")
			s.drop("a/k1200")
			s.put("a/brief", "red")
			s.drop("a/brief")
			s.put("b/other", "blue")
			if name != "all" {
				s.aside()
			}
			s.seen(s.now())
			s.passes(1)
			for i := range 20 {
				s.drop(fmt.Sprintf("busy/k%d", i))
			}
			s.passesAs("b/other")
			s.finish(sel, 1)
			for _, text := range want {
				if !slices.Contains(s.later, text) {
					t.Errorf("among the %d events of the difference there is no %q", len(s.later), text)
				}
			}
		})
	}
}

// passesAs makes changes of one key until the window has passed.
func (r *rig) passesAs(key string) {
	r.t.Helper()
	for before := r.now(); r.Stats().Oldest <= before; {
		for range 20 {
			r.put(key, "blue")
		}
		r.seen(r.now())
	}
}

// The window passes again while the difference is being sent.
func TestCatchUpAgain(t *testing.T) {
	sel := storage.Selection{Namespace: "a"}
	s := newSlowStart(t, sel)
	for round := range 3 {
		for n := s.caughtUp.Load(); round == 0 && len(s.objects) < 500 || s.caughtUp.Load() < int64(round); {
			if end, err := s.read(); err != nil || end != 0 {
				t.Fatalf("round %d ends at %d, %v; it has caught up %d times", round, end, err, n)
			}
		}
		for i := range slowObjects {
			switch key := fmt.Sprintf("a/k%04d", i); {
			case i%7 == round:
				s.drop(key)
			case i%7 > 2 || round == 0 || i%7 > round:
				s.put(key, "red")
			}
		}
		s.seen(s.now())
	}
	s.finish(sel, 3)
}

// An unreadable object ends a watch that would have to show it, and no other.
func TestCatchUpWithUnreadable(t *testing.T) {
	for _, heals := range []bool{false, true} {
		t.Run(fmt.Sprint("heals ", heals), func(t *testing.T) {
			sel := colored("red")
			sel.Namespace = "a"
			s := newSlowStart(t, sel)
			if _, err := s.read(); err != nil {
				t.Fatal(err)
			}
			s.plant("a/k0500", broken)
			s.plant("c/elsewhere", broken)
			s.seen(s.now())
			s.passesAs("b/other")
			if heals {
				s.commit(storage.Commit{Key: s.root + "a/k0500", Expect: storage.AnyRevision, Delete: true})
				s.seen(s.now())
				s.finish(sel, 1)
				return
			}
			var err error
			for end := int64(0); err == nil && end == 0; {
				end, err = s.read()
			}
			var unreadable *storage.UnreadableError
			if !errors.As(err, &unreadable) || unreadable.Key != "a/k0500" {
				t.Errorf("it ends with %v, want what cannot be read", err)
			}
		})
	}
}
