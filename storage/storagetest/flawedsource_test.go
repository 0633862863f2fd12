package storagetest_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// sourceFlaw is a promise that a Source breaks.
type sourceFlaw struct {
	name string
	red  string // the subtest that must fail, as a pattern for -test.run
	// Each of these funcs, unless nil, is called instead of the sound storage's method.
	oldest func(s *flawedSource, ctx context.Context) (int64, error)
	state  func(s *flawedSource, ctx context.Context, at int64) (storage.State, error)
	follow func(s *flawedSource, ctx context.Context, from int64) (storage.Following, error)
	next   func(f *flawedFollowing, got storage.Moves) storage.Moves
	stat   func(s *flawedSource, ctx context.Context, key string) (storage.Stat, error)
	update func(s *flawedSource, ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error)
}

// flawedSource is a sound storage with one flaw.
type flawedSource struct {
	*storage.Store
	flaw sourceFlaw
}

func (s *flawedSource) Oldest(ctx context.Context) (int64, error) {
	if s.flaw.oldest != nil {
		return s.flaw.oldest(s, ctx)
	}
	return s.Store.Oldest(ctx)
}

func (s *flawedSource) State(ctx context.Context, at int64) (storage.State, error) {
	if s.flaw.state != nil {
		return s.flaw.state(s, ctx, at)
	}
	return s.Store.State(ctx, at)
}

func (s *flawedSource) Follow(ctx context.Context, from int64) (storage.Following, error) {
	follow := s.Store.Follow
	if s.flaw.follow != nil {
		follow = func(ctx context.Context, from int64) (storage.Following, error) { return s.flaw.follow(s, ctx, from) }
	}
	f, err := follow(ctx, from)
	if err != nil {
		return nil, err
	}
	return &flawedFollowing{Following: f, s: s}, nil
}

func (s *flawedSource) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if s.flaw.stat != nil {
		return s.flaw.stat(s, ctx, key)
	}
	return s.Store.Stat(ctx, key)
}

func (s *flawedSource) UpdateFrom(ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	if s.flaw.update != nil {
		return s.flaw.update(s, ctx, from, opts, change)
	}
	return s.Store.UpdateFrom(ctx, from, opts, change)
}

type flawedFollowing struct {
	storage.Following
	s *flawedSource
}

func (f *flawedFollowing) Next(ctx context.Context) (storage.Moves, error) {
	got, err := f.Following.Next(ctx)
	if err == nil && f.s.flaw.next != nil {
		got = f.s.flaw.next(f, got)
	}
	return got, err
}

// alter changes the entries of states; a false result leaves one out.
func alter(change func(e *storage.Entry) bool) func(*flawedSource, context.Context, int64) (storage.State, error) {
	return func(s *flawedSource, ctx context.Context, at int64) (storage.State, error) {
		state, err := s.Store.State(ctx, at)
		entries := state.Entries
		state.Entries = func(yield func(storage.Entry, error) bool) {
			for e, err := range entries {
				if (err != nil || change(&e)) && !yield(e, err) {
					return
				}
			}
		}
		return state, err
	}
}

// believing returns an UpdateFrom that calls change with the given state, and then decides only by its outcome whether to use
// the outcome.
func believing(believed func(out storage.Outcome, opts storage.WriteOptions, err error) bool) func(*flawedSource, context.Context, storage.Record, storage.WriteOptions, storage.ChangeFunc) (storage.Record, error) {
	return func(s *flawedSource, ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
		obj, err := s.Decode(from)
		if err != nil || from.Revision == 0 {
			return s.Store.UpdateFrom(ctx, from, opts, change)
		}
		out, err := change(ctx, obj, from)
		if believed(out, opts, err) {
			return from, err
		}
		first := true
		return s.Store.UpdateFrom(ctx, from, opts, func(ctx context.Context, obj runtime.Object, r storage.Record) (storage.Outcome, error) {
			if first {
				first = false
				return out, err
			}
			return change(ctx, obj, r)
		})
	}
}

// sourceFlaws are the promises of a Source, each broken in some way.
var sourceFlaws = []sourceFlaw{
	{name: "broken values are left out", red: "Source/every state", state: alter(func(e *storage.Entry) bool { return e.Unreadable == nil })},
	{name: "stale records are not stale", red: "Source/every state", state: alter(func(e *storage.Entry) bool { e.Record.Stale = false; return true })},
	{name: "entries are at the revision of the state", red: "Source/every state", state: func(s *flawedSource, ctx context.Context, at int64) (storage.State, error) {
		state, err := s.Store.State(ctx, at)
		entries := state.Entries
		state.Entries = func(yield func(storage.Entry, error) bool) {
			for e, err := range entries {
				e.Record.Revision = state.Revision
				if !yield(e, err) {
					return
				}
			}
		}
		return state, err
	}},
	{name: "a state is always the latest", red: "Source/every state", state: func(s *flawedSource, ctx context.Context, _ int64) (storage.State, error) {
		return s.Store.State(ctx, 0)
	}},
	{name: "a state goes on at the latest", red: "Source/a state stays", state: func(s *flawedSource, ctx context.Context, at int64) (storage.State, error) {
		state, err := s.Store.State(ctx, at)
		entries := state.Entries
		state.Entries = func(yield func(storage.Entry, error) bool) {
			n, last := 0, ""
			for e, err := range entries {
				if n++; n > 50 || !yield(e, err) {
					break
				}
				last = e.Record.Key
			}
			rest, err := s.Store.State(ctx, 0)
			if n <= 50 || err != nil {
				return
			}
			for e, err := range rest.Entries {
				if e.Record.Key > last && !yield(e, err) {
					return
				}
			}
		}
		return state, err
	}},
	{name: "a forgotten state just ends", red: "Source/a state that is forgotten", state: func(s *flawedSource, ctx context.Context, at int64) (storage.State, error) {
		state, err := s.Store.State(ctx, at)
		entries := state.Entries
		state.Entries = func(yield func(storage.Entry, error) bool) {
			for e, err := range entries {
				if err != nil || !yield(e, nil) {
					return
				}
			}
		}
		return state, err
	}},
	{name: "the future is the present", red: "Source/no such state", state: func(s *flawedSource, ctx context.Context, at int64) (storage.State, error) {
		state, err := s.Store.State(ctx, at)
		if errors.Is(err, storage.ErrFuture) {
			return s.Store.State(ctx, 0)
		}
		return state, err
	}},
	{name: "moves leave deletions out", red: "Source/every state", next: func(_ *flawedFollowing, got storage.Moves) storage.Moves {
		var kept []storage.Move
		for _, m := range got.Moves {
			if !m.Deleted {
				kept = append(kept, m)
			}
		}
		got.Moves = kept
		return got
	}},
	{name: "moves call broken values deleted", red: "Source/every state", next: func(_ *flawedFollowing, got storage.Moves) storage.Moves {
		for i := range got.Moves {
			m := &got.Moves[i]
			m.Deleted, m.Unreadable = m.Deleted || m.Unreadable != nil, nil
		}
		return got
	}},
	{name: "moves begin too late", red: "Source/every state", follow: func(s *flawedSource, ctx context.Context, from int64) (storage.Following, error) {
		return s.Store.Follow(ctx, from+1)
	}},
	{name: "progress is that of the start", red: "Source/moves from the future", next: func(f *flawedFollowing, got storage.Moves) storage.Moves {
		got.Progress += 2
		return got
	}},
	{name: "the oldest state is the first", red: "Source/the oldest", oldest: func(*flawedSource, context.Context) (int64, error) { return 1, nil }},
	{name: "a stat without the store's revision", red: "Source/what is current", stat: func(s *flawedSource, ctx context.Context, key string) (storage.Stat, error) {
		now, err := s.Store.Stat(ctx, key)
		now.At = now.Revision
		return now, err
	}},
	{name: "a stat does not see what cannot be read", red: "Source/what is current", stat: func(s *flawedSource, ctx context.Context, key string) (storage.Stat, error) {
		now, err := s.Store.Stat(ctx, key)
		if _, missing := s.Get(ctx, key, storage.Read{}); missing != nil {
			now.Revision = 0
		}
		return now, err
	}},
	{name: "errors are believed", red: "UpdateFrom/from what was", update: believing(func(_ storage.Outcome, _ storage.WriteOptions, err error) bool { return err != nil })},
	{name: "no change is believed", red: "UpdateFrom/from what was", update: believing(func(out storage.Outcome, _ storage.WriteOptions, err error) bool {
		return err == nil && out.Object == nil && !out.Delete
	})},
	{name: "dry runs are believed", red: "UpdateFrom/from what was", update: believing(func(_ storage.Outcome, opts storage.WriteOptions, err error) bool { return err == nil && opts.DryRun })},
	{name: "errors about what was deleted are believed", red: "UpdateFrom/from what was deleted", update: believing(func(_ storage.Outcome, _ storage.WriteOptions, err error) bool { return err != nil })},
	{name: "change is asked again about what is current", red: "UpdateFrom/from what is current", update: func(s *flawedSource, ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
		if obj, err := s.Decode(from); err == nil {
			_, _ = change(ctx, obj, from)
		}
		return s.Store.Update(ctx, from.Key, opts, change)
	}},
	{name: "the state given is not asked about", red: "UpdateFrom/from what was", update: func(s *flawedSource, ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
		return s.Store.Update(ctx, from.Key, opts, change)
	}},
	{name: "what was is written over what is", red: "UpdateFrom/many at the same time", update: func(s *flawedSource, ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
		return s.Store.UpdateFrom(ctx, from, opts, func(ctx context.Context, _ runtime.Object, _ storage.Record) (storage.Outcome, error) {
			obj, err := s.Decode(from)
			if err != nil {
				return storage.Outcome{}, err
			}
			return change(ctx, obj, from)
		})
	}},
}

// TestSourceFlaws shows that the tests of a Source can fail: for each flaw the test named with it does.
func TestSourceFlaws(t *testing.T) {
	t.Parallel()
	for _, f := range sourceFlaws {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			red(t, "^TestFlawedSource$/"+f.red, flawVariable+"="+f.name)
		})
	}
}

// TestFlawedSource is the test that fails: it is run by TestSourceFlaws.
func TestFlawedSource(t *testing.T) {
	name := os.Getenv(flawVariable)
	if name == "" {
		t.Skip("TestSourceFlaws runs it")
	}
	for _, f := range sourceFlaws {
		if f.name == name {
			storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
				b := memory.New(memory.Options{})
				t.Cleanup(func() { b.Close() })
				s, err := storage.NewStore(b, o)
				if err != nil {
					t.Fatal(err)
				}
				return &flawedSource{s, f}, b
			})
			return
		}
	}
	t.Fatalf("there is no flaw %q", name)
}
