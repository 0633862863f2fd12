package bolt_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// late is how long after its time a key may still be there.
const late = 2 * time.Second

// inEveryMode runs a test in a bubble with each Sync, and with one that keeps everything in memory.
func inEveryMode(t *testing.T, test func(t *testing.T, o bolt.Options)) {
	t.Helper()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		synctest.Test(t, func(t *testing.T) { test(t, o) })
	})
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, bolt.Options{Sync: bolt.SyncInterval, Interval: 1000 * time.Hour}) })
	})
}

func putFor(t testing.TB, b *bolt.Backend, key, value string, ttl time.Duration) int64 {
	t.Helper()
	res, err := b.Commit(t.Context(), storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(value), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

// keys returns the existing keys, with a star after those that expire.
func keys(t *testing.T, b *bolt.Backend) string {
	t.Helper()
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, kv := range res.KVs {
		key := kv.Key
		if kv.Expiring {
			key += "*"
		}
		s = append(s, key)
	}
	return strings.Join(s, " ")
}

func wantKeys(t *testing.T, b *bolt.Backend, want string) {
	t.Helper()
	synctest.Wait()
	if got := keys(t, b); got != want {
		t.Errorf("at %s the keys are %q, want %q", time.Now().Format("15:04:05.000"), got, want)
	}
}

func closed(t *testing.T, b *bolt.Backend, path string) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bolt.Verify(path); err != nil {
		t.Error(err)
	}
}

func TestAKeyIsDeletedAfterItsTTL(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, o bolt.Options) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, o)
		time.Sleep(300 * time.Millisecond) // the middle of a second
		stays := put(t, b, "stays", "s")
		live := watch(t, b, storage.WatchRange{From: stays, Prev: true})
		r1 := putFor(t, b, "a", "1", 10*time.Second)
		r2 := putFor(t, b, "large", strings.Repeat("v", 100_000), time.Minute)
		r3 := putFor(t, b, "centuries", "c", math.MaxInt64)
		time.Sleep(10*time.Second - 1)
		wantKeys(t, b, "a* centuries* large* stays")
		time.Sleep(1 + late)
		wantKeys(t, b, "centuries* large* stays")
		time.Sleep(50*time.Second - late - 1)
		wantKeys(t, b, "centuries* large* stays")
		time.Sleep(1 + late)
		wantKeys(t, b, "centuries* stays")
		if res := mustGet(t, b, "a", r3); !res.Found || !res.KV.Expiring || res.KV.Revision != r1 {
			t.Errorf("Get at %d = %+v", r3, res)
		}
		gone := fmt.Sprintf("-a@%d was 1@%d", r3+1, r1)
		again := watch(t, b, storage.WatchRange{From: stays, Prev: true, Prefix: "a"})
		wantChanges(t, again, fmt.Sprintf("a=1@%d", r1), gone)
		var seen []string
		for len(seen) < 5 {
			got, err := live.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Changes {
				seen = append(seen, fmt.Sprint(c.Key, c.Revision, c.Deleted, c.Expiring, c.Prev != nil && c.Prev.Expiring))
			}
		}
		want := []string{
			fmt.Sprint("a", r1, false, true, false), fmt.Sprint("large", r2, false, true, false), fmt.Sprint("centuries", r3, false, true, false),
			fmt.Sprint("a", r3+1, true, false, true), fmt.Sprint("large", r3+2, true, false, true),
		}
		if !slices.Equal(seen, want) {
			t.Errorf("the watch shows %q, want %q", seen, want)
		}
		closed(t, b, path)
		if v, err := bolt.FileVersion(path); err != nil || v != 2 {
			t.Errorf("the file has format version %d, %v; want 2", v, err)
		}
	})
}

func TestTheLastCommitSaysHowLongAKeyLives(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, o bolt.Options) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, o)
		for _, key := range []string{"deleted", "longer", "made anew", "made to expire", "permanent", "renewed", "shorter"} {
			ttl := 10 * time.Second
			if key == "made to expire" {
				ttl = 0
			}
			putFor(t, b, key, "1", ttl)
		}
		time.Sleep(5 * time.Second)
		for round := range 2 { // first the replaced values may be in the file, then in memory
			del(t, b, "deleted")
			putFor(t, b, "longer", "2", time.Hour)
			del(t, b, "made anew")
			put(t, b, "made anew", "2")
			putFor(t, b, "made to expire", "2", 10*time.Second)
			put(t, b, "permanent", "2")
			putFor(t, b, "renewed", "2", 10*time.Second)
			putFor(t, b, "shorter", "2", time.Second)
			if round == 0 {
				flush(t, b)
				putFor(t, b, "deleted", "3", 10*time.Second)
				putFor(t, b, "made anew", "3", 10*time.Second)
			}
		}
		flush(t, b)
		if n, err := b.Scheduled(); n != 4 || err != nil {
			t.Errorf("%d keys are to expire, %v; want 4", n, err)
		}
		wantKeys(t, b, "longer* made anew made to expire* permanent renewed* shorter*")
		time.Sleep(1 + late)
		wantKeys(t, b, "longer* made anew made to expire* permanent renewed*")
		time.Sleep(10*time.Second - late - 1 - 1)
		wantKeys(t, b, "longer* made anew made to expire* permanent renewed*")
		time.Sleep(1 + late)
		wantKeys(t, b, "longer* made anew permanent")
		time.Sleep(time.Hour)
		wantKeys(t, b, "made anew permanent")
		closed(t, b, path)
	})
}

// A change that is only in memory determines how long a key in the file lives.
func TestTheLastCommitCountsBeforeItIsInTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: 1000 * time.Hour})
		for _, key := range []string{"deleted", "goes", "longer", "made anew", "permanent"} {
			putFor(t, b, key, "1", 10*time.Second)
		}
		flush(t, b)
		del(t, b, "deleted")
		putFor(t, b, "longer", "2", time.Minute)
		del(t, b, "made anew")
		putFor(t, b, "made anew", "2", time.Minute)
		last := put(t, b, "permanent", "2")
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "longer* made anew* permanent")
		if n := b.Unflushed(); n != 6 || revision(t, b) != last+1 {
			t.Errorf("%d changes are in memory, and the revision is %d, want 6 and %d", n, revision(t, b), last+1)
		}
		time.Sleep(time.Minute)
		wantKeys(t, b, "permanent")
		closed(t, b, path)
		b = open(t, path, bolt.Options{})
		wantKeys(t, b, "permanent")
		if got := revision(t, b); got != last+3 {
			t.Errorf("the revision is %d, want %d", got, last+3)
		}
	})
}

func TestTheWriterSleepsUntilAKeyExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Window: time.Minute})
		rest := func() (time.Duration, bool) {
			t.Helper()
			synctest.Wait()
			d, wakes, err := b.Rest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return d, wakes
		}
		put(t, b, "a", "1")
		time.Sleep(time.Hour) // its history is removed
		if d, wakes := rest(); wakes {
			t.Errorf("without a TTL it wakes after %v, want never", d)
		}
		putFor(t, b, "b", "1", 24*time.Hour)
		time.Sleep(time.Hour)
		if d, wakes := rest(); !wakes || d < 22*time.Hour || d > 23*time.Hour+late {
			t.Errorf("it wakes after %v (%v), want 23 hours", d, wakes)
		}
		put(t, b, "b", "2")
		time.Sleep(25 * time.Hour)
		if d, wakes := rest(); wakes {
			t.Errorf("without a TTL any more it wakes after %v, want never", d)
		}
	})
}

// wall is a wall clock that can be set.
type wall struct{ offset atomic.Int64 }

func (w *wall) now() time.Time { return time.Now().Round(0).Add(time.Duration(w.offset.Load())) }

func (w *wall) set(offset time.Duration) { w.offset.Store(int64(offset)) }

func TestAWallClockThatIsSet(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	inEveryMode(t, func(t *testing.T, o bolt.Options) {
		path := filepath.Join(t.TempDir(), "test.db")
		w := &wall{}
		b := open(t, path, o.WithWall(w.now))
		putFor(t, b, "a", "1", 10*time.Second)
		putFor(t, b, "b", "1", time.Minute)
		putFor(t, b, "c", "1", 2*time.Hour)
		synctest.Wait()
		w.set(-year) // no key lives longer
		putFor(t, b, "d", "1", 10*time.Second)
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "b* c*")
		closed(t, b, path)
		b = open(t, path, o.WithWall(w.now)) // also not after a restart
		wantKeys(t, b, "b* c*")
		putFor(t, b, "e", "1", 10*time.Second)
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "b* c*")
		time.Sleep(40*time.Second + late)
		wantKeys(t, b, "c*")

		w.set(time.Hour) // keys that are now due are deleted soon after the next commit
		putFor(t, b, "f", "1", 10*time.Second)
		putFor(t, b, "g", "1", 3*time.Hour)
		wantKeys(t, b, "c* f* g*")
		w.set(0)
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "c* g*")
		w.set(3 * time.Hour)
		put(t, b, "h", "1")
		wantKeys(t, b, "g* h")
		w.set(100 * year)
		put(t, b, "i", "1")
		wantKeys(t, b, "h i")
		w.set(-100 * year) // before 1970
		putFor(t, b, "j", "1", 10*time.Second)
		time.Sleep(10*time.Second - 1)
		wantKeys(t, b, "h i j*")
		time.Sleep(1 + late)
		wantKeys(t, b, "h i")
		closed(t, b, path)
		b = open(t, filepath.Join(t.TempDir(), "new.db"), o.WithWall(w.now))
		putFor(t, b, "j", "1", 10*time.Second)
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "")
	})
}

// On a full disk an expired key stays, and is deleted when there is room, without another commit.
func TestExpiryWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, o bolt.Options) {
		disk := newBroken()
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, o.WithSyncing(disk.sync))
		putFor(t, b, "a", "1", 10*time.Second)
		flush(t, b)
		disk.ok.Store(false)
		if o.Sync == bolt.SyncInterval { // the writer has to notice the room
			if err := b.Flush(t.Context()); !errors.Is(err, storage.ErrNoSpace) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		wantKeys(t, b, "a*")
		if err := b.Health(t.Context()); !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("Health: %v, want ErrNoSpace", err)
		}
		tries := disk.flushes.Load()
		time.Sleep(time.Minute)
		if n := disk.flushes.Load() - tries; n > 90 { // one each second, and the attempts to make room
			t.Errorf("it has tried %d times in a minute", n)
		}
		disk.ok.Store(true)
		time.Sleep(max(2*time.Second, o.Interval))
		wantKeys(t, b, "")
		closed(t, b, path)
	})
}
