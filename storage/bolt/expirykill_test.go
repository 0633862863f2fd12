package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// shortTTL is the TTL of the keys that expireForEver commits.
const shortTTL = time.Second

// expireForEver commits keys, every other one with a TTL, until it is killed. It prints "put key revision nanosecond" for an
// acknowledged commit, where the nanosecond is from before the commit, and "gone key revision nanosecond" for a deletion.
func expireForEver(path string) error {
	mode, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	b, err := bolt.Open(path, inMode(mode))
	if err != nil {
		return err
	}
	ctx := context.Background()
	start, _ := b.Known()
	f, err := b.Watch(ctx, storage.WatchRange{From: start})
	if err != nil {
		return err
	}
	go func() {
		for {
			got, err := f.Next(ctx)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			for _, c := range got.Changes {
				if c.Deleted {
					fmt.Printf("gone %s %d %d\n", c.Key, c.Revision, time.Now().UnixNano())
				}
			}
		}
	}()
	for i := 0; ; i++ {
		began := time.Now()
		c := storage.Commit{Key: fmt.Sprintf("stays/%d/%d", start, i), Value: []byte("v")}
		if i%2 == 0 {
			c.Key, c.TTL = fmt.Sprintf("goes/%d/%d", start, i), shortTTL
		}
		res, err := b.Commit(ctx, c)
		if err != nil {
			return err
		}
		fmt.Printf("put %s %d %d\n", c.Key, res.Revision, began.UnixNano())
		time.Sleep(time.Millisecond)
	}
}

// expiries has what expireForEver has printed, in all rounds, by key.
type expiries struct {
	committed map[string]int64     // revision
	began     map[string]time.Time // before the commit
	gone      map[string]int64     // revision
	last      int64                // the greatest revision that the last child has printed
	killed    time.Time            // when the child was killed
}

// deleted records a deletion.
func (e *expiries) deleted(t *testing.T, key string, revision int64, at time.Time) {
	t.Helper()
	began, known := e.began[key]
	if before := e.gone[key]; before != 0 && before != revision {
		t.Errorf("%s was deleted at revision %d, and again at %d", key, before, revision)
	}
	if known && at.Before(began.Add(shortTTL)) {
		t.Errorf("%s was deleted after %v", key, at.Sub(began))
	}
	e.gone[key] = revision
}

// run has a child commit for a while, and kills it.
func (e *expiries) run(t *testing.T, path string, o bolt.Options) {
	t.Helper()
	cmd, out := child(t, "expire", path, fmt.Sprint(childSync, "=", modeNumber(o)))
	life := time.Duration(300+rand.IntN(2500)) * time.Millisecond
	death := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	defer death.Stop()
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break
		}
		var what, key string
		var revision, at int64
		if _, err := fmt.Sscan(line, &what, &key, &revision, &at); err != nil {
			t.Fatalf("the child says %q", line)
		}
		e.last = max(e.last, revision)
		if what == "gone" {
			e.deleted(t, key, revision, time.Unix(0, at))
		} else {
			e.committed[key], e.began[key] = revision, time.Unix(0, at)
		}
	}
	_ = cmd.Wait()
	e.killed = time.Now()
}

// lost removes the commits that the file does not have.
func (e *expiries) lost(kept int64) {
	for key, revision := range e.gone {
		if revision > kept {
			delete(e.gone, key)
		}
	}
	for key, revision := range e.committed {
		if revision > kept {
			delete(e.committed, key)
		}
	}
}

// verify opens the file of a child, and waits until all keys are deleted that have to be.
func (e *expiries) verify(t *testing.T, path string, mode bolt.Sync) {
	t.Helper()
	kept, err := bolt.FileRevision(path)
	if err != nil {
		t.Fatal(err)
	}
	opens, err := bolt.OpenedRevision(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode == bolt.SyncInterval {
		e.lost(kept)
	}
	b := open(t, path, bolt.Options{Sync: mode})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	from := opens
	if opens == kept { // there is no gap: the child was killed before it could print some of the changes
		from = min(e.last, kept)
	}
	f := watch(t, b, storage.WatchRange{From: from})
	var end int64
	for {
		left, err := b.Range(ctx, storage.Range{From: "goes/", To: "goes0"})
		if err != nil {
			t.Fatal(err)
		}
		if left.Count == 0 {
			end = left.Revision
			break
		}
		got, err := f.Next(ctx)
		if err != nil {
			t.Fatalf("%d keys do not expire: %v", left.Count, err)
		}
		e.take(t, got, kept)
	}
	f.RequestProgress()
	for done := from; done < end; {
		got, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		e.take(t, got, kept)
		done = got.Progress
	}
	stays, err := b.Range(ctx, storage.Range{From: "stays/", To: "stays0"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, kv := range stays.KVs {
		found[kv.Key] = kv.Revision
	}
	for key, revision := range e.committed {
		switch got, there := found[key]; {
		case key[0] == 's' && (!there || got != revision):
			t.Errorf("%s was acknowledged at revision %d, and is at %d", key, revision, got)
		case key[0] == 'g' && e.gone[key] <= revision && (opens == kept || e.began[key].Add(shortTTL).After(e.killed)):
			t.Errorf("%s of revision %d is gone, and nobody has seen that", key, revision)
		}
		if t.Failed() {
			break
		}
	}
	if err := errors.Join(b.Close(), bolt.Verify(path)); err != nil {
		t.Error(err)
	}
}

// take records what a watch delivers from a file that had everything up to a revision.
func (e *expiries) take(t *testing.T, got storage.Changes, kept int64) {
	t.Helper()
	for _, c := range got.Changes {
		switch {
		case c.Deleted && c.Key[0] == 'g':
			e.deleted(t, c.Key, c.Revision, time.Now())
		case c.Deleted || c.Revision > kept:
			t.Errorf("%s has changed at revision %d", c.Key, c.Revision)
		}
	}
}

// A process is killed before, while and after keys expire. Keys that expire meanwhile are deleted after the restart, once,
// and no other keys are.
func TestKillWhileKeysExpire(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		e := &expiries{committed: map[string]int64{}, began: map[string]time.Time{}, gone: map[string]int64{}}
		end := time.Now().Add(soak(t, 0))
		for round := 0; (round < rounds || time.Now().Before(end)) && !t.Failed(); round++ {
			e.run(t, path, o)
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			e.verify(t, path, o.Sync)
		}
		t.Logf("%d commits, %d deletions", len(e.committed), len(e.gone))
	})
}
