package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

func TestConcurrentCommitsShareOneFlush(t *testing.T) {
	const creators, each = 64, 20
	var flushes, committed atomic.Int64
	o := bolt.Options{Hooks: bolt.Hooks{Committed: func(changes int, _ time.Duration) { committed.Add(int64(changes)) }}}
	b := open(t, filepath.Join(t.TempDir(), "test.db"), o.WithSyncing(func(changes int) error {
		if changes > 0 {
			flushes.Add(1)
		}
		time.Sleep(5 * time.Millisecond)
		return nil
	}))
	var all sync.WaitGroup
	for c := range creators {
		all.Go(func() {
			for i := range each {
				if _, err := b.Commit(t.Context(), create(fmt.Sprintf("%d/%d", c, i), "v")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := b.Close(); err != nil { // the hook is called after the commit is answered
		t.Error(err)
	}
	t.Logf("%d commits with %d flushes", committed.Load(), flushes.Load())
	if committed.Load() != creators*each {
		t.Errorf("the hook counted %d changes, want %d", committed.Load(), creators*each)
	}
	if flushes.Load()*20 > creators*each {
		t.Errorf("%d flushes for %d commits, want at least 20 commits in each", flushes.Load(), creators*each)
	}
}

// gate is a flush that waits until its test lets it continue.
type gate struct {
	reached, open chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) sync(int) error {
	g.reached <- struct{}{}
	<-g.open
	return nil
}

func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	g := newGate()
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{}.WithSyncing(g.sync))
	start := revision(t, b)
	feed := watch(t, b, storage.WatchRange{From: start, Prev: true})
	done := make(chan storage.CommitResult, 1)
	go func() {
		res, err := b.Commit(t.Context(), create("a", "1"))
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	<-g.reached
	if res, err := b.Get(t.Context(), "a", 0); err != nil || res.Found || res.Revision != start {
		t.Errorf("Get = %+v, %v before the flush, want nothing at revision %d", res, err, start)
	}
	if _, err := b.Get(t.Context(), "a", start+1); !errors.Is(err, storage.ErrFuture) {
		t.Errorf("Get at the coming revision: %v, want ErrFuture", err)
	}
	feed.RequestProgress()
	if got, err := feed.Next(t.Context()); err != nil || len(got.Changes) > 0 || got.Progress != start {
		t.Errorf("Next = %+v, %v before the flush, want progress %d", got, err, start)
	}
	select {
	case res := <-done:
		t.Errorf("the commit was answered before the flush: %+v", res)
	default:
	}
	close(g.open)
	if res := <-done; res.Revision != start+1 {
		t.Errorf("the commit has revision %d, want %d", res.Revision, start+1)
	}
	wantGet(t, b, "a", 0, "1", start+1)
}

// A transaction may fail in its last flush. Then everything is in the file already and every read transaction sees it, but a
// power failure could still remove it.
func TestAChangeWhoseFlushFailedIsSeenWithTheNextOne(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	start := revision(t, b)
	feed := watch(t, b, storage.WatchRange{From: start})
	unseen, err := b.WriteUnseen("a", "1")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := b.Get(t.Context(), "a", 0); err != nil || res.Found || res.Revision != start {
		t.Errorf("Get = %+v, %v, want nothing at revision %d", res, err, start)
	}
	if res, err := b.Range(t.Context(), storage.Range{}); err != nil || res.Count != 0 || res.Revision != start {
		t.Errorf("Range = %+v, %v, want nothing at revision %d", res, err, start)
	}
	// The commit conflicts with a change that is not durable, and may fail only when that change is durable.
	res, err := b.Commit(t.Context(), create("a", "2"))
	if !errors.Is(err, storage.ErrConflict) || !res.Found || res.Current.Revision != unseen {
		t.Errorf("Commit = %+v, %v, want a conflict with revision %d", res, err, unseen)
	}
	wantGet(t, b, "a", 0, "1", unseen)
	next := put(t, b, "b", "1")
	if next != unseen+1 {
		t.Errorf("the next revision is %d, want %d", next, unseen+1)
	}
	wantChanges(t, feed, fmt.Sprintf("a=1@%d", unseen), fmt.Sprintf("b=1@%d", next))
}

func TestAFailedFlushFailsItsCommits(t *testing.T) {
	broken := errors.New("broken disk")
	var fail atomic.Bool
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{}.WithSyncing(func(int) error {
		if fail.Load() {
			return broken
		}
		return nil
	}))
	r := put(t, b, "a", "1")
	fail.Store(true)
	if _, err := b.Commit(t.Context(), create("b", "1")); !errors.Is(err, broken) {
		t.Errorf("Commit: %v, want the disk's error", err)
	}
	if res, err := b.Commit(t.Context(), create("a", "2")); !errors.Is(err, storage.ErrConflict) || res.Current.Revision != r {
		t.Errorf("Commit = %+v, %v, want a conflict although the disk is broken", res, err)
	}
	if err := b.Health(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Health: %v, want the disk's error", err)
	}
	wantGet(t, b, "a", 0, "1", r)
	fail.Store(false)
	if err := b.Health(t.Context()); err != nil {
		t.Errorf("Health: %v although the disk works again", err)
	}
	if got := put(t, b, "b", "2"); got != r+1 {
		t.Errorf("revision %d after %d", got, r)
	}
}

func TestACommitThatIsGivenUpWhileItWaitsNeverHappens(t *testing.T) {
	g := newGate()
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{}.WithSyncing(g.sync))
	first := make(chan error, 1)
	go func() {
		_, err := b.Commit(t.Context(), create("first", "1"))
		first <- err
	}()
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := b.Commit(ctx, create("second", "1"))
		second <- err
	}()
	for b.Pending() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v, want context.Canceled", err)
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
	put(t, b, "third", "1")
	if res, err := b.Get(t.Context(), "second", 0); err != nil || res.Found {
		t.Errorf("Get = %+v, %v, want nothing", res, err)
	}
}

func TestConflictsInsideOneTransaction(t *testing.T) {
	g := newGate()
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{}.WithSyncing(g.sync))
	go func() { _, _ = b.Commit(t.Context(), create("first", "1")) }()
	<-g.reached
	type outcome struct {
		storage.CommitResult
		err error
	}
	outcomes := make(chan outcome, 10)
	for i := range 10 {
		go func() {
			res, err := b.Commit(t.Context(), create("k", fmt.Sprint(i)))
			outcomes <- outcome{res, err}
		}()
	}
	close(g.open)
	won := int64(0)
	var lost []outcome
	for range 10 {
		switch o := <-outcomes; {
		case o.err == nil && won == 0:
			won = o.Revision
		case errors.Is(o.err, storage.ErrConflict):
			lost = append(lost, o)
		default:
			t.Errorf("unexpected: %+v", o)
		}
	}
	for _, o := range lost {
		if !o.Found || o.Current.Revision != won || o.Revision < won {
			t.Errorf("a conflict shows %+v, want the value of revision %d", o.CommitResult, won)
		}
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	for name, key := range map[string]string{"empty": "", "NUL": "a\x00b", "too long": strings.Repeat("k", 1<<16)} {
		if _, err := b.Commit(t.Context(), create(key, "v")); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("%s: Commit: %v, want ErrBadKey", name, err)
		}
		got, err := b.Get(t.Context(), key, 0)
		stat, statErr := b.Stat(t.Context(), key)
		if name == "too long" {
			if err != nil || got.Found || statErr != nil || stat.Revision != 0 {
				t.Errorf("%s: Get: %+v, %v; Stat: %+v, %v; want nothing", name, got, err, stat, statErr)
			}
		} else if err == nil || statErr == nil {
			t.Errorf("%s: Get or Stat accepts the key", name)
		}
	}
	if got := revision(t, b); got != 1 {
		t.Errorf("the revision is %d, want 1: nothing was committed", got)
	}
}

func create(key, value string) storage.Commit {
	return storage.Commit{Key: key, Value: []byte(value)}
}

func put(t *testing.T, b *bolt.Backend, key, value string) int64 {
	t.Helper()
	res, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(value)})
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

// putAll writes the keys k00000, k00001, ... in random order.
func putAll(t testing.TB, b *bolt.Backend, n int, value string) {
	t.Helper()
	const writers = 64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				c := storage.Commit{Key: fmt.Sprintf("k%05d", i), Expect: storage.AnyRevision, Value: []byte(value)}
				if _, err := b.Commit(t.Context(), c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func del(t *testing.T, b *bolt.Backend, key string) int64 {
	t.Helper()
	res, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func revision(t *testing.T, b *bolt.Backend) int64 {
	t.Helper()
	res, err := b.Range(t.Context(), storage.Range{CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func wantGet(t *testing.T, b *bolt.Backend, key string, at int64, value string, revision int64) {
	t.Helper()
	res, err := b.Get(t.Context(), key, at)
	if err != nil || !res.Found || string(res.KV.Value) != value || res.KV.Revision != revision {
		t.Errorf("Get(%q, %d) = %+v, %v; want %q of revision %d", key, at, res, err, value, revision)
	}
}

func watch(t *testing.T, b *bolt.Backend, w storage.WatchRange) storage.Feed {
	t.Helper()
	f, err := b.Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// wantChanges checks the next changes as text: k=v@revision, or -k@revision, and " was v@revision" for a watch with previous
// values.
func wantChanges(t *testing.T, f storage.Feed, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		next, err := f.Next(t.Context())
		if err != nil {
			t.Fatalf("Next after %q: %v", got, err)
		}
		for _, c := range next.Changes {
			s := fmt.Sprintf("%s=%s@%d", c.Key, c.Value, c.Revision)
			if c.Deleted {
				s = fmt.Sprintf("-%s@%d", c.Key, c.Revision)
			}
			if c.Prev != nil {
				s += fmt.Sprintf(" was %s@%d", c.Prev.Value, c.Prev.Revision)
			}
			got = append(got, s)
		}
	}
	for i := range got {
		if i >= len(want) || got[i] != want[i] {
			t.Fatalf("change %d is %q, want %q", i, got[i], want[min(i, len(want)-1)])
		}
	}
}
