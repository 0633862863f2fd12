package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// source returns the storage as a storage.Source, or skips the test.
func (s *objects) source() storage.Source {
	s.t.Helper()
	src, ok := s.Interface.(storage.Source)
	if !ok {
		s.t.Skip("the storage is no storage.Source")
	}
	return src
}

var sourceTests = []objectTest{
	{name: "every state and every move of a history", run: sourceHistory},
	{name: "an empty state", run: func(t *testing.T, s *objects) {
		start := s.revision()
		wantState(t, s.state(0), start)
		gone := s.create("a/x").Revision
		s.remove("a/x")
		wantState(t, s.state(start), start)
		wantState(t, s.state(gone), gone, fmt.Sprintf("a/x@%d", gone))
		wantState(t, s.state(0), s.revision())
	}},
	{name: "no such state", run: func(t *testing.T, s *objects) {
		src := s.source()
		now := s.create("a/x").Revision
		_, err := src.State(s.ctx, now+7)
		wantFuture(t, err, now+7, now)
		if _, err := src.State(s.ctx, -1); err == nil {
			t.Error("there is a state at revision -1")
		}
		s.resize("a/x")
		s.compact()
		_, err = src.State(s.ctx, now)
		wantExpired(t, err, now)
	}},
	{name: "a state that comes", options: longReadWait, run: func(t *testing.T, s *objects) {
		src := s.source()
		s.comes(func(revision int64) error {
			state, err := src.State(s.ctx, revision)
			if err == nil && state.Revision != revision {
				err = fmt.Errorf("the state is at revision %d", state.Revision)
			}
			return err
		})
	}},
	{name: "a state stays while it is read", run: stateBesideWrites},
	{name: "a state that is forgotten while it is read", run: stateForgotten},
	{name: "a state that is not read to its end", run: func(t *testing.T, s *objects) {
		s.many(200)
		for n := range 3 {
			for range s.state(0).Entries {
				if n--; n < 0 {
					break
				}
			}
		}
		ctx, cancel := context.WithCancel(s.ctx)
		state, err := s.source().State(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		read, err := entries(state)
		if len(read) < 200 && !errors.Is(err, context.Canceled) {
			t.Errorf("%d entries, %v after the end of the context", len(read), err)
		}
	}},
	{name: "moves from the future", run: func(t *testing.T, s *objects) {
		f := s.follow(s.revision() + 2)
		f.RequestProgress()
		got := f.fill()
		if len(got.Moves) > 0 || got.Progress > f.from-2 {
			t.Errorf("%d moves, progress %d; want none at %d", len(got.Moves), got.Progress, f.from-2)
		}
		s.create("a/1")
		s.create("a/2")
		r := s.create("a/3")
		f.want(fmt.Sprintf("put a/3@%d", r.Revision))
		f.wantIdle()
	}},
	{name: "moves that are forgotten", run: func(t *testing.T, s *objects) {
		from := s.create("a/x").Revision
		s.resize("a/x")
		s.compact()
		_, err := s.source().Follow(s.ctx, from)
		wantExpired(t, err, from)
	}},
	{name: "moves end", run: func(t *testing.T, s *objects) {
		ctx, cancel := context.WithCancel(s.ctx)
		f, err := s.source().Follow(ctx, s.revision())
		if err != nil {
			t.Fatal(err)
		}
		once, ended := context.WithCancel(s.ctx)
		ended()
		if got, err := f.Next(once); !errors.Is(err, context.Canceled) {
			t.Errorf("Next = %+v, %v with a context that has ended", got, err)
		}
		r := s.create("a/x")
		if got, err := f.Next(s.ctx); err != nil || len(got.Moves) != 1 || got.Moves[0].Record.Revision != r.Revision {
			t.Errorf("Next = %+v, %v; want what was created", got, err)
		}
		cancel()
		if got, err := f.Next(s.ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Next = %+v, %v after the end of the context", got, err)
		}
		f.Close()
		closed := s.follow(s.revision())
		closed.Close()
		closed.Close()
		if got, err := closed.Next(s.ctx); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next = %+v, %v after Close", got, err)
		}
	}},
	{name: "moves wake their reader", run: func(t *testing.T, s *objects) {
		f := s.follow(s.revision())
		w, ok := f.Following.(storage.Waker)
		if !ok {
			t.Skip("the following is no storage.Waker")
		}
		for _, key := range []string{"a/x", "a/y"} {
			c := asleep(t, s.ctx, w)
			r := s.create(key)
			c.comes()
			awake(t, w)
			f.want(fmt.Sprintf("put %s@%d", key, r.Revision))
		}
		c := asleep(t, s.ctx, w)
		f.RequestProgress()
		c.comes()
		f.fill()
		c = asleep(t, s.ctx, w)
		f.Close()
		c.comes()
		awake(t, w)
		if got, err := f.Next(s.ctx); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next = %+v, %v after Close", got, err)
		}
	}},
	{name: "the oldest state", run: func(t *testing.T, s *objects) {
		oldest := func() int64 {
			oldest, err := s.source().Oldest(s.ctx)
			if err != nil {
				t.Fatalf("Oldest: %v", err)
			}
			state := s.state(oldest)
			if _, err := entries(state); err != nil || state.Revision != oldest {
				t.Errorf("the oldest state, of revision %d, is at %d: %v", oldest, state.Revision, err)
			}
			f := s.follow(oldest)
			f.wantNoMoves(s.revision())
			return oldest
		}
		oldest()
		s.create("a/x")
		s.resize("a/x")
		oldest()
		s.compact()
		if got, now := oldest(), s.revision(); got != now {
			t.Errorf("the oldest revision is %d, compacted at %d", got, now)
		}
		s.resize("a/x")
		oldest()
	}},
	{name: "what is current", run: func(t *testing.T, s *objects) {
		keys := []string{"a/x", "a/y", "b/x", "a", "a/b/c", "", "a/"}
		s.wantStat(keys...)
		s.create("a/x")
		s.create("a/y")
		s.wantStat(keys...)
		s.resize("a/x")
		s.remove("a/y")
		s.wantStat(keys...)
		s.create("a/y")
		s.wantStat(keys...)
		revision := s.plant("b/x", notJSON)
		s.wantStat("a/x", "a/y")
		if got, err := s.source().Stat(s.ctx, "b/x"); err != nil || got.Revision != revision || got.At < revision {
			t.Errorf("Stat of what cannot be read: %+v, %v; want revision %d", got, err, revision)
		}
	}},
}

// wantStat checks that Stat agrees with Get.
func (s *objects) wantStat(keys ...string) {
	s.t.Helper()
	now := s.revision()
	for _, key := range keys {
		got, err := s.source().Stat(s.ctx, key)
		r, missing := s.Get(s.ctx, key, storage.Read{})
		if missing != nil && !errors.Is(missing, storage.ErrNotFound) {
			s.t.Fatalf("Get(%q): %v", key, missing)
		}
		if want := (storage.Stat{Revision: r.Revision, At: now}); err != nil || got != want {
			s.t.Fatalf("Stat(%q) = %+v, %v; want %+v", key, got, err, want)
		}
	}
}

func (s *objects) state(at int64) storage.State {
	s.t.Helper()
	state, err := s.source().State(s.ctx, at)
	if err != nil {
		s.t.Fatalf("State(%d): %v", at, err)
	}
	return state
}

// entries reads a state. An entry after an error is another error.
func entries(state storage.State) (read []storage.Entry, err error) {
	for e, failed := range state.Entries {
		switch {
		case err != nil:
			return read, fmt.Errorf("after the error %w there was more", err)
		case failed != nil:
			err = failed
		default:
			read = append(read, e)
		}
	}
	return read, err
}

// entryText returns an entry as text, to be compared.
func entryText(e storage.Entry) string {
	text := fmt.Sprintf("%s@%d", e.Record.Key, e.Record.Revision)
	if e.Unreadable != nil {
		text += " broken"
	}
	return text
}

func wantState(t *testing.T, state storage.State, revision int64, want ...string) {
	t.Helper()
	read, err := entries(state)
	var got []string
	for _, e := range read {
		got = append(got, entryText(e))
	}
	if err != nil || state.Revision != revision || !slices.Equal(got, want) {
		t.Fatalf("the state at %d is %q, %v; want %q at %d", state.Revision, got, err, want, revision)
	}
}

// many creates objects a/0000 and so on, and returns their revisions.
func (s *objects) many(n int) map[string]int64 {
	s.t.Helper()
	var mu sync.Mutex // guards revisions
	revisions := map[string]int64{}
	var creating sync.WaitGroup
	for c := range 16 {
		creating.Go(func() {
			for i := c; i < n; i += 16 {
				key := fmt.Sprintf("a/%04d", i)
				r, err := s.Create(s.ctx, key, gadget(key), storage.WriteOptions{})
				if err != nil {
					s.t.Errorf("Create(%q): %v", key, err)
					return
				}
				mu.Lock()
				revisions[key] = r.Revision
				mu.Unlock()
			}
		})
	}
	creating.Wait()
	return revisions
}

// stateBesideWrites changes, deletes and creates objects that are still to be read.
func stateBesideWrites(t *testing.T, s *objects) {
	s.source()
	const n = 600
	revisions := s.many(n)
	var want []string
	for _, key := range slices.Sorted(maps.Keys(revisions)) {
		want = append(want, fmt.Sprintf("%s@%d", key, revisions[key]))
	}
	now := s.revision()
	for _, at := range []int64{0, now} {
		state := s.state(at)
		var got []string
		for e, err := range state.Entries {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entryText(e))
			if i := len(got); at == 0 && i%40 == 1 && i < n-40 {
				s.remove(fmt.Sprintf("a/%04d", n-i))
				s.resize(fmt.Sprintf("a/%04d", n-i-1))
				s.create(fmt.Sprintf("a/%04dx", n-i-2))
				s.create(fmt.Sprintf("%c/x", 'b'+i/40))
			}
		}
		if state.Revision != now || !slices.Equal(got, want) {
			t.Errorf("read at %d: %d entries at %d; want %d at %d", at, len(got), state.Revision, len(want), now)
		}
	}
}

// stateForgotten compacts the state that is still to be read: the entries end with the error, or all come.
func stateForgotten(t *testing.T, s *objects) {
	s.source()
	revisions := s.many(300)
	state := s.state(0)
	s.resize("a/0299")
	s.compact()
	read, err := entries(state)
	for i, e := range read {
		key := fmt.Sprintf("a/%04d", i)
		if entryText(e) != fmt.Sprintf("%s@%d", key, revisions[key]) {
			t.Fatalf("entry %d is %s", i, entryText(e))
		}
	}
	var expired *storage.ExpiredError
	switch {
	case err == nil && len(read) != len(revisions):
		t.Errorf("%d entries and no error; there were %d", len(read), len(revisions))
	case err != nil && (!errors.As(err, &expired) || expired.Revision != state.Revision):
		t.Errorf("after %d entries: %v, want an ExpiredError for %d", len(read), err, state.Revision)
	}
}

// following is a Following under test.
type following struct {
	storage.Following
	s       *objects
	from    int64
	reached int64
	pending []storage.Move
}

func (s *objects) follow(from int64) *following {
	s.t.Helper()
	f, err := s.source().Follow(s.ctx, from)
	if err != nil {
		s.t.Fatalf("Follow(%d): %v", from, err)
	}
	s.t.Cleanup(f.Close)
	return &following{Following: f, s: s, from: from}
}

// fill waits for the next moves.
func (f *following) fill() storage.Moves {
	f.s.t.Helper()
	ctx, cancel := context.WithTimeout(f.s.ctx, Timeout)
	defer cancel()
	got, err := f.Next(ctx)
	if err != nil {
		f.s.t.Fatalf("Next: %v", err)
	}
	for _, m := range got.Moves {
		if m.Record.Revision <= f.reached || m.Record.Revision > got.Progress || m.Record.Revision <= f.from {
			f.s.t.Fatalf("a move of revision %d after %d, with the progress %d", m.Record.Revision, f.reached, got.Progress)
		}
	}
	if now := f.s.revision(); got.Progress < f.reached || got.Progress > now {
		f.s.t.Fatalf("the progress is %d after %d; the store is at %d", got.Progress, f.reached, now)
	}
	f.reached = got.Progress
	f.pending = append(f.pending, got.Moves...)
	return got
}

// next returns the next move.
func (f *following) next() storage.Move {
	f.s.t.Helper()
	for len(f.pending) == 0 {
		f.fill()
	}
	m := f.pending[0]
	f.pending = f.pending[1:]
	return m
}

func (f *following) want(want ...string) {
	f.s.t.Helper()
	for i, w := range want {
		if got := moveText(f.next()); got != w {
			f.s.t.Fatalf("move %d is %q, want %q", i, got, w)
		}
	}
}

// wantIdle checks that nothing more comes up to the store's revision.
func (f *following) wantIdle() {
	f.s.t.Helper()
	f.wantNoMoves(f.s.revision())
	if len(f.pending) > 0 {
		f.s.t.Fatalf("unexpected move %q", moveText(f.pending[0]))
	}
}

// wantNoMoves reads up to a revision, and checks that no moves come.
func (f *following) wantNoMoves(until int64) {
	f.s.t.Helper()
	for f.reached < until {
		f.RequestProgress()
		f.fill()
	}
}

func moveText(m storage.Move) string {
	if m.Deleted {
		text := "delete " + entryText(m.Entry)
		if len(m.Record.Body.Bytes()) > 0 || m.Record.Labels != nil || m.Record.Fields != nil {
			text += " with a body"
		}
		return text
	}
	return "put " + entryText(m.Entry)
}
