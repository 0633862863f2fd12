package bolt_test

import (
	"bufio"
	"context"
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
)

// A test that needs another process starts the test binary with these variables: what to do, and on which file.
const (
	childRole = "KEELSON_BOLT_CHILD"
	childFile = "KEELSON_BOLT_FILE"
)

func TestMain(m *testing.M) {
	roles := map[string]func(path string) error{"storm": storm, "hold": hold, "fill": fill}
	if role := os.Getenv(childRole); role != "" {
		if err := roles[role](os.Getenv(childFile)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a process that this test binary plays.
func child(t *testing.T, role, path string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childFile+"="+path)
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

// value is what the storm writes under a key the nth time: whole values can be told from damaged ones.
func value(key string, n int) string {
	s := fmt.Sprintf("%s#%d ", key, n)
	return s + strings.Repeat(s, (n*7919+len(key))%400) + "."
}

// storm writes until it is killed, and says after each commit what is durable now: "key n revision", with n
// negative for a deletion.
func storm(path string) error {
	b, err := bolt.Open(path, bolt.Options{WindowChanges: 300})
	if err != nil {
		return err
	}
	start, err := b.Range(context.Background(), storage.Range{CountOnly: true})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				// The revision of the start makes numbers that no earlier round has used.
				n := int(start.Revision)*1000 + i
				c := storage.Commit{Key: fmt.Sprintf("w%d/%d", w, i%5), Expect: storage.AnyRevision}
				c.Delete = i%7 == 6
				c.Value = []byte(value(c.Key, n))
				res, err := b.Commit(context.Background(), c)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				if c.Delete {
					n = -n
				}
				fmt.Fprintf(os.Stdout, "%s %d %d\n", c.Key, n, res.Revision) // one write: lines are whole
			}
		})
	}
	all.Wait()
	return nil
}

// acknowledged is the last thing a storm has said about a key.
type acknowledged struct {
	n        int
	revision int64
}

func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	last := map[string]acknowledged{}
	owner := map[int64]string{} // of every revision ever shown
	rounds, commits := 0, 0
	for end := time.Now().Add(killTime(t)); time.Now().Before(end) || rounds < 3; rounds++ {
		commits += killStorm(t, path, last, owner)
		verify(t, path, last, owner)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d rounds, %d commits", rounds, commits)
}

func killTime(t *testing.T) time.Duration {
	if s := os.Getenv("KEELSON_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("KEELSON_SOAK: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 2 * time.Second
	}
	return 30 * time.Second
}

// killStorm lets a storm rage for a moment, kills it and collects what it has acknowledged.
func killStorm(t *testing.T, path string, last map[string]acknowledged, owner map[int64]string) (commits int) {
	t.Helper()
	cmd, out := child(t, "storm", path)
	go func() {
		time.Sleep(time.Duration(10+rand.IntN(150)) * time.Millisecond)
		_ = cmd.Process.Kill()
	}()
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break // killed; a line cut short was not acknowledged
		}
		f := strings.Fields(line)
		n, _ := strconv.Atoi(f[1])
		revision, _ := strconv.ParseInt(f[2], 10, 64)
		what := f[0] + " " + f[1]
		if other, used := owner[revision]; used {
			t.Errorf("revision %d is that of %q and of %q", revision, other, what)
		}
		owner[revision] = what
		last[f[0]] = acknowledged{n, revision}
		commits++
	}
	_ = cmd.Wait()
	return commits
}

// verify opens the file that a storm has left.
func verify(t *testing.T, path string, last map[string]acknowledged, owner map[int64]string) {
	t.Helper()
	b, err := bolt.Open(path, bolt.Options{WindowChanges: 300})
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]storage.KV{}
	for _, kv := range res.KVs {
		found[kv.Key] = kv
		_, number, _ := strings.Cut(string(kv.Value), "#")
		number, _, _ = strings.Cut(number, " ")
		n, _ := strconv.Atoi(number)
		if string(kv.Value) != value(kv.Key, n) {
			t.Errorf("%s holds half a value: %.100q", kv.Key, kv.Value)
		}
		// What was never acknowledged may be there; whatever is there is shown from now on.
		what := fmt.Sprintf("%s %d", kv.Key, n)
		if other, used := owner[kv.Revision]; used && other != what {
			t.Errorf("revision %d is that of %q and of %q", kv.Revision, other, what)
		}
		owner[kv.Revision] = what
	}
	for key, ack := range last {
		kv, there := found[key]
		switch {
		case ack.revision > res.Revision:
			t.Errorf("revision %d was acknowledged, the file is at %d", ack.revision, res.Revision)
		case ack.n >= 0 && !there:
			// A later deletion may have happened without an answer. The history tells.
			wantDeletedAfter(t, b, key, ack.revision)
		case there && kv.Revision < ack.revision:
			t.Errorf("%s is at revision %d, acknowledged was %d", key, kv.Revision, ack.revision)
		case there && kv.Revision == ack.revision && string(kv.Value) != value(key, ack.n):
			t.Errorf("%s at revision %d is not what was acknowledged", key, kv.Revision)
		}
	}
	verifyHistory(t, b, res)
}

func wantDeletedAfter(t *testing.T, b *bolt.Backend, key string, revision int64) {
	t.Helper()
	res, err := b.Get(t.Context(), key, revision)
	if err != nil || !res.Found || res.KV.Revision != revision {
		t.Errorf("%s was acknowledged at revision %d: Get = %.100v, %v", key, revision, res, err)
	}
}

// verifyHistory checks that the changes in the window have every revision once, and lead to the state found.
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
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	for i := range rounds {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		cmd, out := child(t, "storm", path)
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
