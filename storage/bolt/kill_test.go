package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// A test that needs another process starts the test binary with these variables: the action, and the file.
const (
	childRole = "KEELSON_BOLT_CHILD"
	childFile = "KEELSON_BOLT_FILE"
	childSync = "KEELSON_BOLT_SYNC" // the mode, as a number
)

func TestMain(m *testing.M) {
	if storagetest.Child(killed()) {
		return
	}
	roles := map[string]func(path string) error{
		"storm": storm, "hold": hold, "fill": fill, "fillInterval": fillInterval, "fillJournal": fillJournal, "fillCopies": fillCopies,
		"shrink": shrinkForEver, "load": loadForEver, "expire": expireForEver,
		"power": power, "leave": leaveFile, "full": fillAndLeave,
	}
	if role := os.Getenv(childRole); role != "" {
		if err := roles[role](os.Getenv(childFile)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts this test binary as another process.
func child(t *testing.T, role, path string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childRole+"="+role, childFile+"="+path), env...)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // stays open as long as this process lives
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// value returns what the storm writes under a key the nth time. A whole value can be distinguished from a damaged one.
func value(key string, n int) string {
	s := fmt.Sprintf("%s#%d ", key, n)
	return s + strings.Repeat(s, (n*7919+len(key))%400) + "."
}

// Every writer of a storm has its own keys, and does one action after the other.
const (
	stormWriters = 8
	stormKeys    = 5
)

// stormStep returns what a writer does the ith time. n is negative for a deletion. base makes numbers that no earlier round
// has used.
func stormStep(writer, base, i int) (key string, n int) {
	key, n = fmt.Sprintf("w%d/%d", writer, i%stormKeys), base+i
	if i%7 == 6 {
		n = -n
	}
	return key, n
}

// storm writes until it is killed, and prints after each commit what is acknowledged: "writer i n revision".
func storm(path string) error {
	mode, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	o := inMode(mode)
	o.WindowChanges = 300
	if o.Sync == bolt.SyncInterval {
		o.Interval = 20 * time.Millisecond
	}
	b, err := bolt.Open(path, o)
	if err != nil {
		return err
	}
	start, err := b.Range(context.Background(), storage.Range{CountOnly: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%d\n", start.Revision)
	var all sync.WaitGroup
	for w := range stormWriters {
		all.Go(func() {
			for i := 0; ; i++ {
				key, n := stormStep(w, int(start.Revision)*1000, i)
				c := storage.Commit{Key: key, Expect: storage.AnyRevision, Delete: n < 0, TTL: time.Duration(i%2) * 1000 * time.Hour}
				if !c.Delete {
					c.Value = []byte(value(key, n))
				}
				res, err := b.Commit(context.Background(), c)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				fmt.Fprintf(os.Stdout, "%d %d %d %d\n", w, i, n, res.Revision) // one write: lines are whole
			}
		})
	}
	all.Wait()
	return nil
}

// ack is a line that a storm has printed.
type ack struct {
	writer, i, n int
	revision     int64
}

// history has what all storms over a file have shown.
type history struct {
	o     bolt.Options
	owner map[int64]string // the change of every revision that was ever shown
	last  int64            // the greatest of them
	base  int              // of the last storm
	acks  []ack            // of the last storm
	state map[string]int   // n by key, as the file was before it
}

func TestKill(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		h := &history{o: o, owner: map[int64]string{}, state: map[string]int{}}
		rounds, commits := 0, 0
		for end := time.Now().Add(killTime(t, o.Sync)); time.Now().Before(end) || rounds < 3; rounds++ {
			h.storm(t, path)
			commits += len(h.acks)
			h.verify(t, path)
			if t.Failed() {
				break
			}
		}
		t.Logf("%d rounds, %d commits", rounds, commits)
	})
}

func killTime(t *testing.T, mode bolt.Sync) time.Duration {
	switch {
	case testing.Short():
		return soak(t, time.Second)
	case mode == bolt.SyncAlways:
		return soak(t, 30*time.Second)
	}
	return soak(t, 5*time.Second) // storagetest kills these stores too
}

// storm runs a storm for a moment, kills it and collects what it has acknowledged.
func (h *history) storm(t *testing.T, path string) {
	t.Helper()
	cmd, out := child(t, "storm", path, fmt.Sprint(childSync, "=", modeNumber(h.o)))
	go func() {
		time.Sleep(time.Duration(10+rand.IntN(150)) * time.Millisecond)
		_ = cmd.Process.Kill()
	}()
	h.acks, h.base = nil, 0
	if line, err := out.ReadString('\n'); err == nil {
		start, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		h.base = int(start) * 1000
	}
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break // killed; an incomplete line was not acknowledged
		}
		var a ack
		if _, err := fmt.Sscan(line, &a.writer, &a.i, &a.n, &a.revision); err != nil {
			t.Fatalf("the storm says %q", line)
		}
		key, _ := stormStep(a.writer, h.base, a.i)
		h.own(t, a.revision, key, a.n)
		h.last = max(h.last, a.revision)
		h.acks = append(h.acks, a)
	}
	_ = cmd.Wait()
}

// own records that a revision was shown with a change.
func (h *history) own(t *testing.T, revision int64, key string, n int) {
	what := fmt.Sprint(key, " ", n)
	if other, used := h.owner[revision]; used && other != what {
		t.Errorf("revision %d is that of %q and of %q", revision, other, what)
	}
	h.owner[revision] = what
}

// verify checks the file that a storm has left.
func (h *history) verify(t *testing.T, path string) {
	t.Helper()
	kept := int64(1) // nothing is lost up to here
	if _, err := os.Stat(path); err == nil {
		if kept, err = bolt.FileRevision(path); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bolt.Open(path, bolt.Options{WindowChanges: 300})
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	defer func() {
		if err := errors.Join(b.Close(), bolt.Verify(path)); err != nil {
			t.Error(err)
		}
	}()
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if h.o.Sync != bolt.SyncInterval && kept < h.last || res.Revision < h.last {
		t.Errorf("revision %d was acknowledged, the file is at %d and opens at %d", h.last, kept, res.Revision)
	}
	h.last = max(h.last, res.Revision)
	found := map[string]int{}
	for _, kv := range res.KVs {
		_, number, _ := strings.Cut(string(kv.Value), "#")
		number, _, _ = strings.Cut(number, " ")
		n, _ := strconv.Atoi(number)
		if string(kv.Value) != value(kv.Key, n) {
			t.Errorf("%s holds half a value: %.100q", kv.Key, kv.Value)
		}
		// Changes that were never acknowledged may be there; all changes in the file count as shown from now on.
		h.own(t, kv.Revision, kv.Key, n)
		found[kv.Key] = n
	}
	h.replay(t, found, kept)
	h.look(t, b)
	if h.o.Sync == bolt.SyncAlways {
		verifyHistory(t, b, res)
	}
}

// replay checks that the content is the result of everything acknowledged up to revision kept. Nothing later may be in it,
// except what a writer was doing when it was killed.
func (h *history) replay(t *testing.T, found map[string]int, kept int64) {
	t.Helper()
	next := [stormWriters]int{}
	whole := [stormWriters]bool{}
	for w := range whole {
		whole[w] = true
	}
	set := func(state map[string]int, key string, n int) {
		if delete(state, key); n > 0 {
			state[key] = n
		}
	}
	for _, a := range h.acks { // those of one writer come in order
		if a.revision > kept {
			whole[a.writer] = false
			continue
		}
		key, n := stormStep(a.writer, h.base, a.i)
		set(h.state, key, n)
		next[a.writer] = a.i + 1
	}
	for w := range stormWriters {
		if !whole[w] || h.base == 0 {
			continue
		}
		if key, n := stormStep(w, h.base, next[w]); found[key] != h.state[key] {
			set(h.state, key, n)
		}
	}
	for w := range stormWriters {
		for k := range stormKeys {
			if key := fmt.Sprintf("w%d/%d", w, k); found[key] != h.state[key] {
				t.Errorf("%s is number %d after the kill, want %d: the file has everything up to revision %d",
					key, found[key], h.state[key], kept)
			}
		}
	}
}

// look reads at revisions that were shown and checks that the result is what was shown.
func (h *history) look(t *testing.T, b *bolt.Backend) {
	t.Helper()
	for _, a := range h.acks[max(0, len(h.acks)-50):] {
		key, n := stormStep(a.writer, h.base, a.i)
		res, err := b.Get(t.Context(), key, a.revision)
		switch {
		case errors.Is(err, storage.ErrCompacted):
		case err != nil, res.Found != (n > 0), n > 0 && (res.KV.Revision != a.revision || string(res.KV.Value) != value(key, n)):
			t.Errorf("%s was shown as number %d at revision %d; it is %.100v now, %v", key, n, a.revision, res, err)
		}
	}
}

// verifyHistory checks that the changes in the window have each revision once, and lead to the state found.
func verifyHistory(t *testing.T, b *bolt.Backend, now storage.RangeResult) {
	t.Helper()
	from := max(now.Revision-250, 1)
	old, err := b.Range(t.Context(), storage.Range{At: from})
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, kv := range old.KVs {
		state[kv.Key] = string(kv.Value)
	}
	feed := watch(t, b, storage.WatchRange{From: from, Prev: true})
	for at := from; at < now.Revision; {
		got, err := feed.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Changes {
			if at++; c.Revision != at {
				t.Fatalf("the change after revision %d has revision %d", at-1, c.Revision)
			}
			before, there := state[c.Key]
			if there != (c.Prev != nil) || there && string(c.Prev.Value) != before {
				t.Fatalf("the change of revision %d has the wrong previous value", at)
			}
			if delete(state, c.Key); !c.Deleted {
				state[c.Key] = string(c.Value)
			}
		}
	}
	if len(state) != len(now.KVs) {
		t.Errorf("the history leads to %d keys, found are %d", len(state), len(now.KVs))
	}
	for _, kv := range now.KVs {
		if state[kv.Key] != string(kv.Value) {
			t.Errorf("the history leads to another value of %s", kv.Key)
		}
	}
}

func TestKillDuringCreation(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	for i := range rounds {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		cmd, out := child(t, "storm", path, childSync+"=0")
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		b := open(t, path, bolt.Options{})
		put(t, b, "k", "v")
	}
	for _, e := range entries(t, dir) {
		if !strings.HasSuffix(e, ".db") {
			t.Errorf("%s is left over", e)
		}
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}
