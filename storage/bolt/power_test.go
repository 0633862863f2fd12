package bolt_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// powerLives is how many processes use the file one after the other; each but the last one is killed.
const powerLives = 6

const powerWriters = 3

// power commits at once from several goroutines, and small and large ones, while other things are asked for.
func power(path string) error {
	life, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	ctx := context.Background()
	last := life == powerLives-1
	o := bolt.Options{WindowChanges: 60}.WithJournal(32<<10, 1).WithSyncing(func(changes int) error {
		if changes > powerWriters {
			time.Sleep(20 * time.Millisecond) // in a flush: the journal fills up meanwhile
		}
		return nil
	})
	b, err := bolt.Open(path, o)
	if err != nil {
		return err
	}
	res, err := b.Range(ctx, storage.Range{})
	if err != nil {
		return err
	}
	for _, kv := range res.KVs {
		fmt.Println("ack", kv.Revision, kv.Key, string(kv.Value))
	}
	errs := make([]error, powerWriters)
	var all sync.WaitGroup
	for w := range powerWriters {
		all.Go(func() {
			for i := range 60 {
				c := storage.Commit{Key: fmt.Sprint("w", w, "k", i%4), Expect: storage.AnyRevision}
				text := fmt.Sprint(c.Key, "#", life, "#", i, ".")
				switch {
				case last && i%7 == 5:
					c.Delete, text = true, "-"
				case i%11 == 10:
					text += strings.Repeat("l", 9000)
				case i%37 == 36:
					text += strings.Repeat("h", 40000) // no journal takes it
				default:
					text += strings.Repeat("s", i*97%2500)
				}
				if !c.Delete {
					c.Value = []byte(text)
				}
				res, err := b.Commit(ctx, c)
				if err == nil && w == 1 && i%20 == 19 {
					err = b.Flush(ctx)
				}
				if err != nil {
					errs[w] = err
					return
				}
				fmt.Println("ack", res.Revision, c.Key, text)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, b.Close())...)
}

// fileEvent is one thing that happened to a file: a write of data, a truncation to a size, a flush, or an
// acknowledgement. began and ended are places in the order of all.
type fileEvent struct {
	kind         string // pwrite64, ftruncate, fdatasync, ack
	began, ended int
	fd           string // of the file
	at           int64  // of data; the size for ftruncate
	data         []byte
	ack          acknowledged
}

// never is when a call ends in which the process was killed.
const never = 1 << 60

type acknowledged struct {
	revision   int64
	key, value string // "-" is a deletion
}

var (
	calls  = regexp.MustCompile(`^(\d+) +(pwrite64|ftruncate|fdatasync|fsync|write)\((\d+)<([^>]*)>(?:, )?(.*)$`)
	resume = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>.*= (-?\d+)`)
)

// recorded runs a process under strace, and returns what it did to the file at path. points counts what was traced, which
// the places of events are of.
func recorded(t *testing.T, path string, life int, points *int) (events []*fileEvent) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-y", "-xx", "-s", "10000000", "-o", trace, "-e", "signal=none",
		"-e", "trace=pwrite64,ftruncate,fdatasync,fsync,write", "--seccomp-bpf", os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"=power", childFile+"="+path, fmt.Sprint(childSync, "=", life))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out[max(len(out)-2000, 0):])
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	under := map[string]*fileEvent{} // by thread
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 100<<20)
	for lines.Scan() {
		*points++
		line := lines.Text()
		if m := resume.FindStringSubmatch(line); m != nil {
			if e := under[m[1]]; e != nil {
				e.ended = *points
			}
			delete(under, m[1])
			continue
		}
		m := calls.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, _ := unhex(m[4])
		e := &fileEvent{kind: m[2], fd: m[3], began: *points, ended: never}
		switch {
		case e.kind == "write":
			text, _ := unhex(strings.SplitN(m[5], "\"", 3)[1])
			for part := range strings.Lines(string(text)) {
				if w := strings.Fields(part); len(w) == 4 && w[0] == "ack" {
					r, _ := strconv.ParseInt(w[1], 10, 64)
					events = append(events, &fileEvent{kind: "ack", began: *points, ack: acknowledged{r, w[2], w[3]}})
				}
			}
			continue
		case string(name) != path:
			continue
		case e.kind == "pwrite64":
			parts := strings.SplitN(m[5], "\"", 3)
			e.data, err = unhex(parts[1])
			numbers := strings.FieldsFunc(parts[2], func(r rune) bool { return strings.ContainsRune(", )<=", r) })
			if n, _ := strconv.Atoi(numbers[0]); err != nil || n != len(e.data) {
				t.Fatalf("a write of %d bytes, %d traced: %v", n, len(e.data), err)
			}
			e.at, err = strconv.ParseInt(numbers[1], 10, 64)
		case e.kind == "ftruncate":
			e.at, err = strconv.ParseInt(strings.FieldsFunc(m[5], func(r rune) bool { return r == ' ' || r == ')' })[0], 10, 64)
		default:
			e.kind = "fdatasync"
		}
		if err != nil {
			t.Fatal(line[:min(len(line), 100)], err)
		}
		if strings.HasSuffix(line, "<unfinished ...>") {
			under[m[1]] = e
		} else {
			e.ended = *points
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

func unhex(s string) ([]byte, error) {
	if !strings.Contains(s, `\x`) {
		return []byte(s), nil
	}
	return hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
}

// kill returns the events up to some place, where the process is killed that made them: most often when the last page of a
// transaction was written, and not flushed.
func kill(events []*fileEvent, r *rand.Rand) (done []*fileEvent) {
	var metas []int // such places
	for _, e := range events {
		if e.kind == "pwrite64" && e.at < 2*4096 { // bbolt's meta pages
			metas = append(metas, e.ended+1)
		}
	}
	at := metas[len(metas)/2+r.IntN(len(metas)/2-1)] // the last one is Close's
	if r.IntN(4) == 0 {
		at = events[len(events)/3+r.IntN(len(events)/3)].began
	}
	for _, e := range events {
		switch {
		case e.began >= at:
			continue
		case e.ended >= at && e.kind == "fdatasync":
			e.ended = never
		case e.ended >= at:
			e.ended = at
		}
		done = append(done, e)
	}
	return done
}

// written returns the content of a file that was base, after the events up to a point. A write has sectors, of each of which
// kept says whether it is there.
func written(base []byte, events []*fileEvent, point int, sector int, kept func(*fileEvent) bool) []byte {
	disk := bytes.Clone(base)
	for _, e := range events {
		n := e.at + int64(len(e.data))
		switch {
		case e.began >= point:
			return disk
		case e.kind != "pwrite64" && e.kind != "ftruncate":
			continue
		case n > int64(len(disk)):
			disk = append(disk, make([]byte, n-int64(len(disk)))...)
		}
		for i := 0; i < len(e.data); i += sector {
			if kept(e) {
				copy(disk[e.at+int64(i):], e.data[i:min(i+sector, len(e.data))])
			}
		}
	}
	return disk
}

// cutPower returns what is on the disk when the power fails at a point: all that was flushed, and of the rest what chance
// lets be there, whole writes, or sectors of them.
func cutPower(base []byte, events []*fileEvent, point int, r *rand.Rand) []byte {
	flushed := 0 // what was written before is
	for _, e := range events {
		if e.kind == "fdatasync" && e.ended < point {
			flushed = max(flushed, e.began)
		}
	}
	sector, likely := []int{512, 4096, 1 << 30}[r.IntN(3)], []float64{0, 0.1, 0.5, 0.9, 1}[r.IntN(5)]
	return written(base, events, point, sector, func(e *fileEvent) bool { return e.ended < flushed || r.Float64() < likely })
}

// TestPowerFailures records all writes and flushes that processes do to a file, one killed after the other, and lets the
// power fail at random points: of what was not flushed then, any part may be on the disk. What is left must be sound, and
// have all that was acknowledged before that point, and nothing else.
func TestPowerFailures(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("there is no strace, or it may trace nothing: %v: %s", err, out)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test.db")
	closed(t, open(t, path, bolt.Options{}), path)
	base := readFile(t, path)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	var events []*fileEvent
	var begins []int // of the processes, in events
	points := 0
	for life := range powerLives {
		begins = append(begins, len(events))
		done := recorded(t, path, life, &points)
		if life < powerLives-1 {
			done = kill(done, r)
		}
		events = append(events, done...)
		writeFile(t, path, written(base, events, never, 1<<30, func(*fileEvent) bool { return true }))
	}
	made := map[int64]acknowledged{}
	for _, e := range events {
		if e.kind != "ack" {
			continue
		}
		if was, ok := made[e.ack.revision]; ok && was != e.ack {
			t.Fatalf("revision %d was acknowledged for %q and %q", e.ack.revision, was.value, e.ack.value)
		}
		made[e.ack.revision] = e.ack
	}
	// A system says once for each open file that something could not be written: to one of two that flush it.
	for _, e := range events {
		for _, s := range events {
			if s.kind == "fdatasync" && s.ended < never && e.fd == s.fd && e.began > s.began && e.began < s.ended {
				t.Fatalf("file %s has a %s while it is flushed for somebody else", e.fd, e.kind)
			}
		}
	}
	failures := 200
	if testing.Short() {
		failures = 40
	}
	if os.Getenv("KEELSON_SOAK") != "" {
		failures = 5000
	}
	left, journals := filepath.Join(dir, "left.db"), 0
	for n := range failures {
		k := r.IntN(len(events))
		if n%2 == 0 { // while a file is opened
			k = min(begins[r.IntN(len(begins))]+r.IntN(40), len(events)-1)
		}
		point := events[k].began + r.IntN(2)
		writeFile(t, left, cutPower(base, events, point, r))
		if err := survives(t.Context(), left, events, point, made, &journals); err != nil {
			t.Fatalf("seed %d: power fails at point %d of %d: %v", seed, point, points, err)
		}
	}
	t.Logf("%d events, %d revisions, %d failures, %d with records in the journal", len(events), len(made), failures, journals)
	if journals < failures/4 {
		t.Errorf("%d of %d failures left something in the journal", journals, failures)
	}
}

// survives checks what the power has left, and counts in journals whether records are in its journal.
func survives(
	ctx context.Context, left string, events []*fileEvent, point int, made map[int64]acknowledged, journals *int,
) error {
	if err := bolt.Verify(left); err != nil {
		return err
	}
	if records, _, _, err := bolt.Journal(left); err != nil {
		return err
	} else if len(records) > 0 {
		*journals++
	}
	b, err := bolt.Open(left, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	defer b.Close()
	res, err := b.Range(ctx, storage.Range{})
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.kind == "ack" && e.began < point && e.ack.revision > res.Revision {
			return fmt.Errorf("revision %d is lost, the file opens at %d", e.ack.revision, res.Revision)
		}
	}
	want, found := map[string]acknowledged{}, map[string]bool{}
	for i := int64(2); i <= res.Revision; i++ {
		if a, ok := made[i]; ok {
			want[a.key] = a
		}
	}
	for _, kv := range res.KVs {
		found[kv.Key] = true
		if w, ok := want[kv.Key]; (ok || made[kv.Revision].key != "") && w != (acknowledged{kv.Revision, kv.Key, string(kv.Value)}) {
			return fmt.Errorf("key %s is %.20q of revision %d, want %.20q of %d", kv.Key, kv.Value, kv.Revision, w.value, w.revision)
		}
	}
	for key, w := range want {
		if w.value != "-" && !found[key] {
			return fmt.Errorf("key %s, %.20q of revision %d, is missing", key, w.value, w.revision)
		}
	}
	return nil
}
