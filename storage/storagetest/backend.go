package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// Timeout is how long a test waits for something that should happen at once.
const Timeout = 30 * time.Second

// Backend tests that what open returns is a storage.Backend. open is called for every subtest, one after the other, and
// returns an empty backend, which the test closes.
func Backend(t *testing.T, open func(t *testing.T) storage.Backend) {
	for _, topic := range []struct {
		name  string
		tests []backendTest
	}{
		{"Commit", commitTests},
		{"Read", readTests},
		{"Watch", watchTests},
		{"Wake", wakeTests},
		{"Compact", compactTests},
		{"Known", knownTests},
		{"Oldest", oldestTests},
		{"Stat", statTests},
		{"Health", healthTests},
		{"Load", loadTests},
		{"Raise", raiseTests},
		{"Close", closeTests},
		{"History", historyTests},
		{"Concurrent", concurrentTests},
	} {
		t.Run(topic.name, func(t *testing.T) {
			for _, test := range topic.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, newBackend(t, open(t))) })
			}
		})
	}
	t.Run("TTL", func(t *testing.T) { expiries(t, newBackend(t, open(t))) })
}

type backendTest struct {
	name string
	run  func(*testing.T, *backend)
}

// budget is how long a test continues operations that are slow on some backends, such as thousands of commits.
func budget() time.Duration {
	if testing.Short() {
		return time.Second
	}
	return 5 * time.Second
}

// backend is the backend under test, with methods for the most frequent calls, which fail the test on an unexpected result.
type backend struct {
	storage.Backend
	t   *testing.T
	ctx context.Context // ends with the test, and before the binary's deadline
}

func newBackend(t *testing.T, b storage.Backend) *backend {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*Timeout)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		cancel()
	})
	return &backend{Backend: b, t: t, ctx: ctx}
}

// in returns the backend for a subtest.
func (b *backend) in(t *testing.T) *backend { return &backend{Backend: b.Backend, t: t, ctx: b.ctx} }

// timeoutContext returns a context for waiting for something that should happen at once.
func (b *backend) timeoutContext() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, Timeout)
	b.t.Cleanup(cancel)
	return ctx
}

// put writes a value unconditionally and returns the commit's revision.
func (b *backend) put(key, value string) int64 {
	b.t.Helper()
	return b.commit(storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(value)})
}

// del deletes an existing key.
func (b *backend) del(key string) int64 {
	b.t.Helper()
	return b.commit(storage.Commit{Key: key, Expect: b.get(key, 0).KV.Revision, Delete: true})
}

func (b *backend) commit(c storage.Commit) int64 {
	b.t.Helper()
	res, err := b.Commit(b.ctx, c)
	if err != nil {
		b.t.Fatalf("Commit(%s): %v", describe(c), err)
	}
	return res.Revision
}

// refused makes a commit which must fail with ErrConflict, and returns its result.
func (b *backend) refused(c storage.Commit) storage.CommitResult {
	b.t.Helper()
	res, err := b.Commit(b.ctx, c)
	if !errors.Is(err, storage.ErrConflict) {
		b.t.Fatalf("Commit(%s): error %v, want ErrConflict", describe(c), err)
	}
	if res.Found && res.Current.Key != c.Key {
		b.t.Fatalf("Commit(%s): ErrConflict, and what is there is %+v: another key", describe(c), res.Current)
	}
	return res
}

func (b *backend) get(key string, at int64) storage.GetResult {
	b.t.Helper()
	res, err := b.Get(b.ctx, key, at)
	if err != nil {
		b.t.Fatalf("Get(%q, %d): %v", key, at, err)
	}
	return res
}

// wantGet checks that a key has this value, written at this revision, in the state at a revision.
func (b *backend) wantGet(key string, at int64, want string, revision int64) {
	b.t.Helper()
	res := b.get(key, at)
	if !res.Found || string(res.KV.Value) != want || res.KV.Revision != revision || res.KV.Key != key {
		b.t.Fatalf("Get(%q, %d) = %+v, want %q of revision %d", key, at, res, want, revision)
	}
}

func (b *backend) wantMissing(key string, at int64) {
	b.t.Helper()
	if res := b.get(key, at); res.Found {
		b.t.Fatalf("Get(%q, %d) = %+v, want nothing", key, at, res)
	}
}

func (b *backend) list(r storage.Range) storage.RangeResult {
	b.t.Helper()
	res, err := b.Range(b.ctx, r)
	if err != nil {
		b.t.Fatalf("Range(%+v): %v", r, err)
	}
	return res
}

// revision returns the store's revision.
func (b *backend) revision() int64 {
	b.t.Helper()
	return b.get("no such key", 0).Revision
}

func (b *backend) watch(w storage.WatchRange) *feed {
	b.t.Helper()
	f, err := b.Watch(b.ctx, w)
	if err != nil {
		b.t.Fatalf("Watch(%+v): %v", w, err)
	}
	b.t.Cleanup(f.Close)
	return &feed{Feed: f, b: b}
}

// compactor returns the backend as a storage.Compactor, or skips the test.
func (b *backend) compactor() storage.Compactor {
	b.t.Helper()
	c, ok := b.Backend.(storage.Compactor)
	if !ok {
		b.t.Skip("the backend is no storage.Compactor")
	}
	return c
}

func (b *backend) compact(revision int64) {
	b.t.Helper()
	if err := b.compactor().Compact(b.ctx, revision); err != nil {
		b.t.Fatalf("Compact(%d): %v", revision, err)
	}
}

// wantCompacted checks that a revision can be neither read nor watched from.
func (b *backend) wantCompacted(at int64) {
	b.t.Helper()
	_, get := b.Get(b.ctx, "a", at)
	_, list := b.Range(b.ctx, storage.Range{At: at})
	_, part := b.Range(b.ctx, storage.Range{From: "a", To: "b", At: at, Limit: 1})
	_, count := b.Range(b.ctx, storage.Range{At: at, CountOnly: true})
	f, watch := b.Watch(b.ctx, storage.WatchRange{From: at})
	if watch == nil {
		f.Close()
	}
	for name, err := range map[string]error{"Get": get, "Range": list, "Range with a limit": part, "Range of a count": count, "Watch": watch} {
		if !errors.Is(err, storage.ErrCompacted) {
			b.t.Errorf("%s at %d: %v, want ErrCompacted", name, at, err)
		}
		var expired *storage.ExpiredError
		if errors.As(err, &expired) && (expired.Revision != at || expired.Oldest != 0 && expired.Oldest <= at) {
			b.t.Errorf("%s at %d: the error says that %d is asked for, and %d the oldest", name, at, expired.Revision, expired.Oldest)
		}
		if expired != nil && expired.Oldest > 0 {
			if _, err := b.Get(b.ctx, "a", expired.Oldest); err != nil {
				b.t.Errorf("%s at %d: the error says that revision %d is retained; Get: %v", name, at, expired.Oldest, err)
			}
		}
	}
}

func (b *backend) close() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatalf("Close: %v", err)
	}
}

func describe(c storage.Commit) string {
	verb := "put"
	if c.Delete {
		verb = "delete"
	}
	return fmt.Sprintf("%s %q, expecting %d", verb, c.Key, c.Expect)
}

// feed is a watch under test.
type feed struct {
	storage.Feed
	b       *backend
	pending []storage.Change
	last    int64 // the greatest progress seen
}

// next returns the next change, and checks the rules for every result of Next.
func (f *feed) next() storage.Change {
	f.b.t.Helper()
	for len(f.pending) == 0 {
		f.fill()
	}
	c := f.pending[0]
	f.pending = f.pending[1:]
	return c
}

func (f *feed) fill() {
	f.b.t.Helper()
	ctx, cancel := context.WithTimeout(f.b.ctx, Timeout)
	defer cancel()
	got, err := f.Next(ctx)
	if err != nil {
		f.b.t.Fatalf("Next: %v", err)
	}
	for i, c := range got.Changes {
		if i > 0 && c.Revision < got.Changes[i-1].Revision {
			f.b.t.Fatalf("Next: revision %d comes after %d", c.Revision, got.Changes[i-1].Revision)
		}
	}
	if n := len(got.Changes); n > 0 && got.Progress < got.Changes[n-1].Revision {
		f.b.t.Fatalf("Next: progress %d is below the last change's revision %d", got.Progress, got.Changes[n-1].Revision)
	}
	if got.Progress < f.last {
		f.b.t.Fatalf("Next: progress went back from %d to %d", f.last, got.Progress)
	}
	if len(got.Changes) > 0 && got.Changes[0].Revision <= f.last {
		f.b.t.Fatalf("Next: a change of revision %d after progress %d", got.Changes[0].Revision, f.last)
	}
	f.last = got.Progress
	f.pending = append(f.pending, got.Changes...)
}

// want checks that the next changes are exactly these, as text: "put k=v", "delete k", each with @revision; with previous
// values "put k=v@5 (was u@3)".
func (f *feed) want(changes ...string) {
	f.b.t.Helper()
	for i, want := range changes {
		if got := text(f.next()); got != want {
			f.b.t.Fatalf("change %d is %q, want %q", i, got, want)
		}
	}
}

// wantIdle checks that nothing more is delivered up to the store's revision.
func (f *feed) wantIdle() {
	f.b.t.Helper()
	now := f.b.revision()
	for f.last < now && len(f.pending) == 0 {
		f.RequestProgress()
		f.fill()
	}
	if len(f.pending) > 0 {
		f.b.t.Fatalf("unexpected change %q", text(f.pending[0]))
	}
}

// fails checks that Next returns the error.
func (f *feed) fails(want error) {
	f.b.t.Helper()
	ctx, cancel := context.WithTimeout(f.b.ctx, Timeout)
	defer cancel()
	got, err := f.Next(ctx)
	if !errors.Is(err, want) {
		f.b.t.Fatalf("Next: %+v, %v; want %v", got, err, want)
	}
}

func text(c storage.Change) string {
	s := fmt.Sprintf("put %s=%s@%d", c.Key, c.Value, c.Revision)
	if c.Deleted {
		s = fmt.Sprintf("delete %s@%d", c.Key, c.Revision)
		if c.Value != nil {
			s += " with a value"
		}
	}
	if c.Prev != nil {
		s += fmt.Sprintf(" (was %s@%d)", c.Prev.Value, c.Prev.Revision)
		if c.Prev.Key != c.Key {
			s += " of key " + c.Prev.Key
		}
	}
	return s
}
