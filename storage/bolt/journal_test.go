package bolt_test

import (
	"bytes"

	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"go.etcd.io/bbolt"
)

// leftJournal returns the file that a killed process leaves with n records in the journal that the trees do not have, and
// these records. Each record has one commit; the revision of record n also has a long value.
func leftJournal(t *testing.T, n int) (content []byte, records []bolt.JournalRecord) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	b, crash := opened(t, path, bolt.Options{}.WithJournal(48<<10, 0))
	put(t, b, "before", "v") // there is a journal then
	flush(t, b)
	for i := range n {
		put(t, b, fmt.Sprint("key", i%3), value("key", i))
	}
	left := crash()
	records, _, _, err := bolt.Journal(left)
	if err != nil || len(records) != n {
		t.Fatalf("%d records, %v; want %d", len(records), err, n)
	}
	return readFile(t, left), records
}

// wantJournaled opens, twice, a file that has the first n of the commits of leftJournal.
func wantJournaled(t *testing.T, path string, n int) {
	t.Helper()
	if err := bolt.Verify(path); err != nil {
		t.Errorf("with a journal: %v", err)
	}
	for range 2 {
		b, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantGet(t, b, "before", 0, "v", 2)
		if r := revision(t, b); r != int64(2+n) {
			t.Errorf("opened at revision %d, want %d", r, 2+n)
		}
		for i := range n {
			wantGet(t, b, fmt.Sprint("key", i%3), int64(3+i), value("key", i), int64(3+i))
		}
		closed(t, b, path)
	}
	if v, err := bolt.FileVersion(path); err != nil || v != 1 {
		t.Errorf("a file that was closed is of version %d, %v, want 1", v, err)
	}
}

func TestAKilledProcessLeavesAJournal(t *testing.T) {
	content, records := leftJournal(t, 9)
	path := filepath.Join(t.TempDir(), "left.db")
	writeFile(t, path, content)
	if v, err := bolt.FileVersion(path); err != nil || v != 3 {
		t.Errorf("a file with a journal is of version %d, %v, want 3", v, err)
	}
	wantJournaled(t, path, len(records))
	if _, from, to, err := bolt.Journal(path); err != nil || from != to {
		t.Errorf("after Close there is a journal from %d to %d, %v", from, to, err)
	}
}

// The last record may be cut off at any place, followed by zeros or by the earlier content: it was never finished, and
// everything before it is kept.
func TestTornJournal(t *testing.T) {
	content, records := leftJournal(t, 4)
	last := records[len(records)-1]
	path := filepath.Join(t.TempDir(), "torn.db")
	writeFile(t, path, content)
	opens, err := bolt.JournalReader(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Repeat([]byte("other"), int(last.Size)/5+1)
	for cut := range last.Size {
		for _, behind := range [][]byte{make([]byte, last.Size), other} {
			torn := bytes.Clone(content)
			rest := torn[last.At+cut : last.At+last.Size]
			if bytes.Equal(rest, behind[:len(rest)]) {
				continue
			}
			copy(rest, behind)
			if got, err := opens(torn); err != nil || got != last.First-1 {
				t.Fatalf("cut off after %d of %d bytes, the file opens at revision %d, %v, want %d", cut, last.Size, got, err, last.First-1)
			}
			if cut%997 == 0 {
				writeFile(t, path, torn)
				wantJournaled(t, path, len(records)-1)
			}
		}
	}
}

// A record before the last one was finished: if it is damaged, an acknowledged commit is lost.
func TestDamagedJournal(t *testing.T) {
	content, records := leftJournal(t, 5)
	path := filepath.Join(t.TempDir(), "damaged.db")
	writeFile(t, path, content)
	opens, err := bolt.JournalReader(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records[:len(records)-1] {
		for i := range r.Size {
			damaged := bytes.Clone(content)
			damaged[r.At+i] ^= 1 << (i % 8)
			_, err := opens(damaged)
			wantError(t, err, "damaged")
			if i%499 > 0 {
				continue
			}
			writeFile(t, path, damaged)
			_, err = bolt.Open(path, bolt.Options{})
			wantError(t, err, path, "journal", "damaged", "restore it from a backup")
			wantError(t, bolt.Verify(path), path, "journal", "damaged")
			if !bytes.Equal(readFile(t, path), damaged) {
				t.Fatal("a file that was refused has changed")
			}
		}
	}
	// The random bytes that begin every record also stand before the journal, with their checksum.
	damaged := bytes.Clone(content)
	damaged[bytes.Index(content, content[records[0].At:records[0].At+8])] ^= 1
	writeFile(t, path, damaged)
	_, err = bolt.Open(path, bolt.Options{})
	wantError(t, err, path, "the journal is not what it should be", "damaged")
}

// A file that is cut off within the journal is truncated.
func TestTruncatedJournal(t *testing.T) {
	content, records := leftJournal(t, 5)
	path := filepath.Join(t.TempDir(), "truncated.db")
	for _, at := range []int64{records[0].At, records[2].At + 1, records[4].At + records[4].Size} {
		writeFile(t, path, content[:at])
		_, err := bolt.Open(path, bolt.Options{})
		wantError(t, err, path, "truncated", "restore it from a backup")
	}
}

// A copy of the file of a killed process can be restored like a snapshot, with the content of the journal.
func TestRestoreOfAJournal(t *testing.T) {
	content, records := leftJournal(t, 7)
	path := filepath.Join(t.TempDir(), "restored.db")
	if err := bolt.Restore(path, bytes.NewReader(content), bolt.RestoreOptions{RevisionBump: -1}); err != nil {
		t.Fatal(err)
	}
	wantJournaled(t, path, len(records))
}

// Other modes and Shrink also process a journal.
func TestOthersFindTheJournal(t *testing.T) {
	content, _ := leftJournal(t, 7)
	for _, o := range []bolt.Options{{Sync: bolt.SyncInterval}, {Sync: bolt.NoSync}, {Shrink: true}} {
		path := filepath.Join(t.TempDir(), "left.db")
		writeFile(t, path, content)
		b := open(t, path, o)
		wantGet(t, b, "key0", 0, value("key", 6), 9)
		put(t, b, "more", "v")
		closed(t, b, path)
		wantGet(t, open(t, path, bolt.Options{}), "key0", 0, value("key", 6), 9)
	}
}

// writing commits while a snapshot is written.
type writing struct {
	bytes.Buffer
	commit func()
}

func (w *writing) Write(b []byte) (int, error) {
	if w.commit != nil {
		w.commit()
		w.commit = nil
	}
	return w.Buffer.Write(b)
}

// Commits that are written to the journal while a snapshot is written are not in the snapshot, even if it is opened without
// Restore.
func TestASnapshotHasNoJournal(t *testing.T) {
	for _, small := range []bool{false, true} {
		b := open(t, filepath.Join(t.TempDir(), "test.db"), journaled())
		for i := range 40 {
			put(t, b, fmt.Sprint("key", i), strings.Repeat("v", 2000))
		}
		out := &writing{commit: func() {
			for i := range 10 {
				put(t, b, fmt.Sprint("later", i), "v")
			}
		}}
		var w io.Writer = out
		if small {
			w = &pieces{out}
		}
		at, err := b.Snapshot(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "snapshot.db")
		writeFile(t, path, out.Bytes())
		if records, from, to, err := bolt.Journal(path); err != nil || from == to || len(records) > 0 {
			t.Errorf("the snapshot has %d records from %d to %d, %v, want an empty journal", len(records), from, to, err)
		}
		if err := bolt.Verify(path); err != nil {
			t.Error(err)
		}
		s := open(t, path, bolt.Options{})
		if got := revision(t, s); got != at || at != 41 {
			t.Errorf("the snapshot of revision %d opens at %d, want 41", at, got)
		}
	}
}

// pieces accepts few bytes at a time.
type pieces struct{ io.Writer }

func (p *pieces) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		k := min(len(b), 1000)
		_, err = p.Writer.Write(b[:k])
		n, b = n+k, b[k:]
	}
	return n, err
}

// A TTL that is only in the journal is kept after a crash, and a key whose TTL a later commit has removed does not expire.
func TestTTLsInAJournal(t *testing.T) {
	start := time.Now()
	ahead := start.Add(hours(100))
	o := journaled().WithWall(func() time.Time { return ahead })
	b, crash := opened(t, filepath.Join(t.TempDir(), "test.db"), o)
	put(t, b, "a", "v")
	for i, ttl := range []int64{1000, 0, 500} {
		c := storage.Commit{Key: fmt.Sprint("ttl", i%2), Expect: storage.AnyRevision, Value: []byte("v"), TTL: hours(ttl)}
		if _, err := b.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	left := crash()
	b = open(t, left, bolt.Options{})
	if n, err := b.Scheduled(); err != nil || n != 1 {
		t.Errorf("%d keys will expire, %v; want 1", n, err)
	}
	closed(t, b, left)
	if v, err := bolt.FileVersion(left); err != nil || v != 2 {
		t.Errorf("a closed file with TTLs is of version %d, %v, want 2", v, err)
	}
	edit(t, left, func(tx *bbolt.Tx) error { // time continues from the stored time, if the clock has been set back since
		got, latest := int64(binary.BigEndian.Uint64(tx.Bucket([]byte("meta")).Get([]byte("clock")))), ahead.Add(time.Since(start))
		if got < ahead.Unix() || got > latest.Unix() { // by the seconds that this test has taken
			t.Errorf("the file was told %d, want %d to %d", got, ahead.Unix(), latest.Unix())
		}
		return nil
	})
}

// A file whose version does not fit its journal is refused.
func TestJournalVersion(t *testing.T) {
	content, _ := leftJournal(t, 1)
	path := filepath.Join(t.TempDir(), "test.db")
	for name, fn := range map[string]func(*bbolt.Tx) error{
		"version 1 with a journal": version(1),
		"version 3 without":        func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("journal")) },
		"a journal with two names": func(tx *bbolt.Tx) error { return tx.Bucket([]byte("journal")).Put([]byte("k"), nil) },
		"a journal without a name": func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("journal"))
			k, _ := b.Cursor().First()
			return b.Delete(k)
		},
		"a small journal": func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("journal"))
			k, _ := b.Cursor().First()
			return b.Put(bytes.Clone(k), binary.BigEndian.AppendUint64(nil, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			writeFile(t, path, content)
			edit(t, path, fn)
			_, err := bolt.Open(path, bolt.Options{})
			wantError(t, err, path, "damaged")
		})
	}
}

// A store that is seldom written has no journal, and its file stays small.
func TestFewCommitsMakeNoJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	b, crash := opened(t, path, bolt.Options{})
	for i := range 20 {
		put(t, b, fmt.Sprint("key", i), "v")
	}
	if n := len(readFile(t, crash())); n > 1<<20 {
		t.Errorf("the file has %d bytes", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func hours(n int64) time.Duration { return time.Duration(n) * time.Hour }

// A half of the journal is overwritten only when its content is durable in the trees. If the flush takes long, commits wait
// when both halves are full.
func TestAFullJournalWaitsForTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		b, crash := opened(t, filepath.Join(t.TempDir(), "test.db"), journaled().WithSyncing(func(changes int) error {
			if changes > 1 { // the flush: the commits come one by one
				<-open
			}
			return nil
		}))
		const all = 200 // each takes a block, and both halves have 32
		var answered atomic.Int64
		go func() {
			for i := range all {
				answered.Store(put(t, b, fmt.Sprint("key", i%7), value("key", 0)))
			}
		}()
		synctest.Wait()
		last := answered.Load()
		if last < 32 || last > 40 {
			t.Errorf("%d commits were answered while a flush could not end", last-1)
		}
		left := crash()
		if got, err := bolt.OpenedRevision(left); err != nil || got < last {
			t.Errorf("what is left opens at revision %d, %v; %d was acknowledged", got, err, last)
		}
		close(open)
		synctest.Wait()
		if got := answered.Load(); got != all+1 {
			t.Errorf("revision %d is the last, want %d", got, all+1)
		}
	})
}
