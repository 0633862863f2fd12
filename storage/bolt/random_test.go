package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// TestRandomHistories runs random histories: commits, reads and watches at all revisions, failing disks, failed last steps,
// compaction, snapshots and TTLs that end. Then comes a normal end or a crash, after which the file is opened in some other
// way. After each step everything must match a model, and each file that is left must pass Verify.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	histories := 24
	if testing.Short() {
		histories = 6
	}
	first := uint64(1)
	if os.Getenv("KEELSON_SOAK") != "" {
		first = rand.Uint64()
	}
	end, gone := time.Now().Add(soak(t, 0)), 0
	for i := uint64(0); i < uint64(histories) || time.Now().Before(end); i++ {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			l := newLife(t, first+i)
			for range 6 {
				l.live()
				l.end()
				l.begin()
			}
			l.check()
			gone += l.gone
		})
		if t.Failed() {
			return
		}
	}
	if gone == 0 {
		t.Error("no key has expired")
	}
}

const lifeWindow = 40

// life is a store under test and its model.
type life struct {
	model
	t     *testing.T
	r     *rand.Rand
	path  string
	files int
	o     bolt.Options
	disk  *broken
	b     *bolt.Backend
	ahead atomic.Int64 // of the wall clock
	gone  int          // keys that have expired
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{t: t, r: rand.New(rand.NewPCG(seed, 1)), path: filepath.Join(t.TempDir(), "0.db")}
	l.model = model{versions: map[string][]storage.Change{}, owner: map[int64]string{}, ends: map[int64]int64{}, head: 1, floor: 0}
	l.begin()
	return l
}

// begin opens the file in some way.
func (l *life) begin() {
	l.disk = newBroken()
	l.o = bolt.Options{WindowChanges: lifeWindow, Sync: bolt.Sync(l.r.IntN(3)), Shrink: l.r.IntN(3) == 0}
	if l.o.Sync == bolt.SyncAlways && l.r.IntN(3) > 0 {
		l.o = l.o.WithJournal(int64(4096<<l.r.IntN(5)), int64(l.r.IntN(10)))
	}
	if l.o.Sync == bolt.SyncInterval {
		l.o.Interval = []time.Duration{time.Millisecond, time.Hour}[l.r.IntN(2)]
	}
	l.pass()
	b, err := bolt.Open(l.path, l.o.WithSyncing(l.disk.sync).WithBlock([]int64{10 + l.r.Int64N(100), 5000}[l.r.IntN(2)]).WithWall(l.wall))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = b.Close() })
	l.b = b
	n := int64(len(l.due()))
	if now := revision(l.t, b); now < l.head || now > l.head+n {
		l.t.Fatalf("opened at revision %d, want %d, and %d deletions are due", now, l.head, n)
	}
	l.expire()
}

func (l *life) live() {
	stop := l.readers()
	defer stop()
	for range 30 + l.r.IntN(120) {
		switch n := l.r.IntN(100); {
		case n < 60:
			l.commit()
		case n < 85:
			l.check()
		case n < 88:
			l.compact()
		case n < 91 && l.disk.ok.Load():
			flush(l.t, l.b)
		case n < 93:
			l.disk.ok.Store(!l.disk.ok.Load())
		case n < 95 && l.o.Sync == bolt.SyncInterval && l.o.Interval == time.Hour:
			if err := l.b.WriteUnflushed(l.r.IntN(20)); err != nil {
				l.t.Fatal(err)
			}
		case n < 97 && l.disk.ok.Load():
			l.pass()
			l.expire()
		case n < 98:
			if err := l.b.Verify(l.t.Context()); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	l.check()
}

// readers read the newest state, and then the same one again, which must never change.
func (l *life) readers() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	b, t := l.b, l.t
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(100 * time.Microsecond):
				}
				first, err := b.Range(t.Context(), storage.Range{})
				if err != nil {
					t.Error(err)
					return
				}
				again, err := b.Range(t.Context(), storage.Range{At: first.Revision})
				if errors.Is(err, storage.ErrCompacted) {
					continue
				}
				if err != nil || text(first.KVs) != text(again.KVs) {
					t.Errorf("at revision %d: %s, and then %s, %v", first.Revision, text(first.KVs), text(again.KVs), err)
					return
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}

func (l *life) key() string { return fmt.Sprint("k", l.r.IntN(12)) }

func (l *life) commit() {
	c := storage.Commit{Key: l.key(), Expect: storage.AnyRevision, Delete: l.r.IntN(4) == 0}
	now, live := l.at(c.Key, l.head)
	switch l.r.IntN(4) {
	case 0:
		c.Expect = 0
	case 1:
		c.Expect = now.Revision
	}
	if !c.Delete {
		c.Value = []byte(fmt.Sprint(l.head, strings.Repeat("x", l.r.IntN(20)*l.r.IntN(2000)*l.r.IntN(2))))
	}
	epochs := int64(0)
	if l.r.IntN(3) == 0 {
		epochs = 1 + l.r.Int64N(4)
		c.TTL = time.Duration(epochs)*epoch - epoch/2
	}
	res, err := l.b.Commit(l.t.Context(), c)
	expected := now.Revision
	if !live {
		expected = 0
	}
	switch {
	case c.Expect != storage.AnyRevision && (c.Expect != expected || c.Delete && !live):
		if !errors.Is(err, storage.ErrConflict) || res.Found != live || res.Revision != l.head ||
			live && !same(res.Current, now) {
			l.t.Fatalf("%s: %v of %s at %d, want a conflict with %s", c.Key, err, text([]storage.KV{res.Current}), res.Revision, changeText(now))
		}
	case errors.Is(err, storage.ErrNoSpace) && !l.disk.ok.Load(), l.o.Sync == bolt.SyncInterval && errors.Is(err, storage.ErrNoSpace):
	case err != nil:
		l.t.Fatal(err)
	case c.Delete && !live:
		if res.Revision != l.head {
			l.t.Fatalf("nothing was deleted, at revision %d; want %d", res.Revision, l.head)
		}
	default:
		l.ends[res.Revision] = l.epoch + epochs
		l.add(l.t, storage.Change{
			Key: c.Key, Value: c.Value, Revision: res.Revision, Deleted: c.Delete, Expiring: c.TTL > 0 && !c.Delete,
		})
	}
}

func same(kv storage.KV, c storage.Change) bool {
	return kv.Revision == c.Revision && kv.Expiring == c.Expiring && bytes.Equal(kv.Value, c.Value)
}

func (l *life) compact() {
	at := l.head - int64(l.r.IntN(lifeWindow))
	err := l.b.Compact(l.t.Context(), at)
	switch {
	case err == nil && at <= l.floor:
		l.t.Fatalf("compacted at %d, and it was at %d", at, l.floor)
	case err == nil:
		l.floor = at
	case errors.Is(err, storage.ErrNoSpace), errors.Is(err, storage.ErrCompacted) && at <= max(l.floor, l.head-lifeWindow):
	default:
		l.t.Fatalf("compact at %d (of %d to %d): %v", at, l.floor, l.head, err)
	}
}

// expired checks the error of a read at a revision, and reports whether it is the right one.
func (l *life) expired(what string, at int64, err error) bool {
	l.t.Helper()
	switch expired := errors.Is(err, storage.ErrCompacted); {
	case err != nil && !expired:
		l.t.Fatalf("%s at %d: %v", what, at, err)
	case expired && at >= max(l.floor, l.head-lifeWindow), !expired && at < l.floor:
		l.t.Fatalf("%s at %d (of %d to %d): %v", what, at, l.floor, l.head, err)
	}
	return err != nil
}

// check reads at a random revision.
func (l *life) check() {
	at := max(l.head-int64(l.r.IntN(2*lifeWindow)), 1)
	key := l.key()
	want, live := l.at(key, at)
	got, err := l.b.Get(l.t.Context(), key, at)
	if !l.expired("Get", at, err) && (got.Found != live || live && !same(got.KV, want)) {
		l.t.Fatalf("Get of %s at %d: %s, want %s", key, at, text([]storage.KV{got.KV}), changeText(want))
	}
	r := storage.Range{At: at, Limit: l.r.IntN(5), CountOnly: l.r.IntN(5) == 0}
	if l.r.IntN(2) == 0 {
		r.From = l.key()
	}
	if l.r.IntN(2) == 0 {
		r.To = l.key()
	}
	var kvs []storage.KV
	count := int64(0)
	for _, key := range []string{"k0", "k1", "k10", "k11", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"} {
		c, live := l.at(key, at)
		if !live || key < r.From || r.To != "" && key >= r.To {
			continue
		}
		if count++; !r.CountOnly && (r.Limit == 0 || len(kvs) < r.Limit) {
			kvs = append(kvs, storage.KV{Key: key, Value: c.Value, Revision: c.Revision, Expiring: c.Expiring})
		}
	}
	res, err := l.b.Range(l.t.Context(), r)
	if !l.expired("Range", at, err) && (res.Count != count || text(res.KVs) != text(kvs) || res.Revision != at) {
		l.t.Fatalf("%+v: %d %s, want %d %s", r, res.Count, text(res.KVs), count, text(kvs))
	}
	l.follow(at)
}

func text(kvs []storage.KV) string {
	var s strings.Builder
	for _, kv := range kvs {
		fmt.Fprintf(&s, "%s=%.10s(%d)@%d ", kv.Key, kv.Value, len(kv.Value), kv.Revision)
		if kv.Expiring {
			s.WriteString("* ")
		}
	}
	return s.String()
}

// follow compares all changes after a revision.
func (l *life) follow(from int64) {
	f, err := l.b.Watch(l.t.Context(), storage.WatchRange{From: from, Prev: true})
	if l.expired("Watch", from, err) {
		return
	}
	defer f.Close()
	f.RequestProgress()
	for pos := from; pos < l.head; {
		got, err := f.Next(l.t.Context())
		if l.expired("Next", pos, err) {
			return
		}
		for _, c := range got.Changes {
			pos++
			i := slices.IndexFunc(l.log, func(c storage.Change) bool { return c.Revision == pos })
			if i < 0 || changeText(c) != changeText(l.log[i]) {
				l.t.Fatalf("the change after %d is %s", pos-1, changeText(c))
			}
		}
		if got.Progress > pos {
			l.t.Fatalf("progress %d, and the last change was %d", got.Progress, pos)
		}
	}
}

func changeText(c storage.Change) string {
	s := fmt.Sprintf("%s %v %d %.10s(%d) %v", c.Key, c.Deleted, c.Revision, c.Value, len(c.Value), c.Expiring)
	if c.Prev != nil {
		s += " was " + text([]storage.KV{*c.Prev})
	}
	return s
}

// end closes or leaves a file in some way.
func (l *life) end() {
	l.files++
	next := filepath.Join(filepath.Dir(l.path), fmt.Sprint(l.files, ".db"))
	switch n := l.r.IntN(4); {
	case n == 0 && l.disk.ok.Load():
		var content bytes.Buffer
		if _, err := l.b.Snapshot(l.t.Context(), &content); err != nil {
			if l.o.Sync == bolt.SyncInterval && errors.Is(err, storage.ErrNoSpace) {
				break // a later write has failed
			}
			l.t.Fatal(err)
		}
		bump := int64(-1)
		if l.r.IntN(2) == 0 {
			bump = 1 + int64(l.r.IntN(1000))
			l.head += bump
			l.floor = l.head
		}
		if err := bolt.Restore(next, &content, bolt.RestoreOptions{RevisionBump: bump}); err != nil {
			l.t.Fatal(err)
		}
		l.path = next
	case n == 1:
		err := l.b.Close()
		switch {
		case err == nil && (l.disk.ok.Load() || l.o.Sync == bolt.SyncInterval):
		case err == nil: // SyncAlways and NoSync cannot lose anything
		case errors.Is(err, storage.ErrNoSpace) && l.o.Sync == bolt.SyncInterval:
			l.crashed()
		default:
			l.t.Fatal(err)
		}
		if err == nil && !l.disk.ok.Load() {
			l.crashed() // not marked as closed
		}
	default:
		if err := l.b.AtRest(func() error { return copyFile(next, l.path) }); err != nil {
			l.t.Fatal(err)
		}
		l.path = next
		l.crashed()
	}
	_ = l.b.Close()
	if err := bolt.Verify(l.path); err != nil {
		l.t.Fatal(err)
	}
}

// crashed finds out what is left of the store after an unclean stop.
func (l *life) crashed() {
	kept, err := bolt.FileRevision(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.o.Sync != bolt.SyncInterval && kept < l.head && l.floor != l.head {
		l.t.Fatalf("the file is at revision %d, acknowledged was %d", kept, l.head)
	}
	now, err := bolt.OpenedRevision(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	if now < l.head {
		l.t.Fatalf("opened at revision %d, %d was shown", now, l.head)
	}
	if now > kept && now > l.head {
		l.lose(kept)
		l.head, l.floor = now, now
	}
	if now == l.head && kept < l.head && l.floor != l.head {
		l.t.Fatalf("revision %d was shown, and the file has only %d", l.head, kept)
	}
	if len(l.due()) > 0 {
		return // opening the file would delete them
	}
	b, err := bolt.Open(l.path, bolt.Options{Sync: bolt.Sync(l.r.IntN(3)), WindowChanges: lifeWindow})
	if err != nil {
		l.t.Fatal(err)
	}
	if got := revision(l.t, b); got != now {
		l.t.Fatalf("opened at revision %d, want %d", got, now)
	}
	if err := b.Close(); err != nil {
		l.t.Fatal(err)
	}
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// soak is KEELSON_SOAK, or d.
func soak(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv("KEELSON_SOAK")
	if s == "" {
		return d
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("KEELSON_SOAK: %v", err)
	}
	return d
}
