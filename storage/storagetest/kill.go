package storagetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// Killed is a durable store that survives the end of its process at any time.
type Killed struct {
	// Open opens, or creates, the store whose data is under dir. It is called in the child processes and in the parent, but
	// never in two processes at once.
	Open func(dir string) (storage.Backend, error)
	// Weaker means that the last acknowledged commits may be lost. Then all later commits are lost too, their revisions are
	// given to no other state, and reads at these revisions fail with ErrCompacted.
	Weaker bool
}

// Kill tests that the store with this name in stores keeps what it acknowledged when its process is killed. The test binary
// runs itself as a child, in which concurrent clients commit, read and watch. The parent kills the child (SIGKILL) at random
// times, also while it opens the store. Then the parent opens the store and checks that each acknowledged commit is there,
// and that no revision was given twice. A [Killed] that is Weaker may lack acknowledged commits, but only the last ones.
// Every state that was shown to a reader or watcher must be unchanged or ErrCompacted, and the history must lead to the state
// found. Kill runs for some seconds, or KEELSON_SOAK=duration. The package's TestMain must call [Child].
func Kill(t *testing.T, stores map[string]Killed, name string) {
	t.Helper()
	store, ok := stores[name]
	switch {
	case os.Getenv(childStore) != "":
		t.Fatal("this is a child of storagetest.Kill: TestMain must call storagetest.Child")
	case !ok:
		t.Fatalf("there is no store %q", name)
	}
	l := &ledger{t: t, store: store, begun: map[string]string{}, given: map[int64]version{}}
	dir := t.TempDir()
	for end, round := killEnd(t), 0; (round < 3 || time.Now().Before(end)) && !t.Failed(); round++ {
		l.from, l.done, l.shown, l.gaps, l.last = 0, nil, nil, map[string][]int64{}, map[int]report{}
		l.run(dir, name, round)
		l.verify(dir)
	}
	t.Logf("%d rounds, %d acknowledged commits, %d of them lost", l.rounds, l.commits, l.lost)
	if l.commits == 0 && !t.Failed() {
		t.Error("no child has come to commit anything")
	}
}

func killEnd(t *testing.T) time.Time {
	t.Helper()
	switch end := soakEnd(t); {
	case end.After(time.Now()):
		return end
	case testing.Short():
		return end.Add(time.Second)
	default:
		return end.Add(6 * time.Second)
	}
}

// ledger has the reports of the children of all rounds, and of the last one.
type ledger struct {
	t     *testing.T
	store Killed

	begun map[string]string // the key of each value that was about to be committed
	given map[int64]version // the change that each known revision was given to
	top   int64             // the greatest revision ever seen

	from  int64              // the store's revision when the last child opened it; 0: it did not
	done  []version          // its acknowledged commits
	shown []report           // some of the states it has seen
	gaps  map[string][]int64 // revisions at which a key was absent or was deleted
	last  map[int]report     // the last commit of each client that is not known to be done

	rounds, commits, lost int
}

// version is the result of a commit for a key.
type version struct {
	key, value string
	deleted    bool
	revision   int64
}

func (v version) String() string {
	if v.deleted {
		return fmt.Sprintf("delete %s@%d", v.key, v.revision)
	}
	return fmt.Sprintf("put %s=%s@%d", v.key, v.value, v.revision)
}

// run starts a child, kills it at a random time and records its reports.
func (l *ledger) run(dir, name string, round int) {
	l.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childStore+"="+name, childDir+"="+dir, childRound+"="+strconv.Itoa(round))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // the pipe is open as long as this process lives
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	life, reports := time.Duration(rand.IntN(120))*time.Millisecond, 0
	if rand.IntN(3) > 0 { // the time is counted from the first commit
		life, reports = Timeout, 1+rand.IntN(2000)
	}
	death := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	defer death.Stop()
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // the last line may be incomplete: it does not count
		}
		var r report
		if err := json.Unmarshal(line, &r); err != nil {
			l.t.Errorf("a child says %q: TestMain must call storagetest.Child before all else", line)
			break
		}
		if l.note(r); n == reports && reports > 0 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	l.rounds++
}

// note records a report of a child.
func (l *ledger) note(r report) {
	l.t.Helper()
	v := version{key: r.Key, value: r.Value, deleted: r.Deleted, revision: r.Revision}
	l.top = max(l.top, r.At, r.Revision)
	if r.At > 0 && (r.Deleted || r.Revision == 0) {
		l.gaps[r.Key] = append(l.gaps[r.Key], r.At)
	}
	switch r.Kind {
	case reportError:
		l.t.Errorf("a child says: %s", r.Value)
	case reportOpen:
		l.from = r.At
	case reportBegin:
		l.begun[r.Value] = r.Key
		l.last[r.Client] = r
	case reportDone:
		l.commits++
		delete(l.last, r.Client)
		l.done = append(l.done, v)
		l.give(v)
	case reportChange:
		l.give(v)
	case reportShown:
		if r.Revision > 0 {
			l.give(v)
		}
		if len(l.shown) < 300 || rand.IntN(10) == 0 {
			l.shown = append(l.shown, r)
		}
	}
}

// give records the change that a revision was given to, and checks that a child has committed it.
func (l *ledger) give(v version) {
	l.t.Helper()
	l.top = max(l.top, v.revision)
	if other, known := l.given[v.revision]; known && other != v {
		l.t.Errorf("revision %d was given to %q and to %q", v.revision, other, v)
	}
	if l.begun[v.value] != v.key && !v.deleted {
		l.t.Errorf("%q was never committed", v)
	}
	l.given[v.revision] = v
}

// verify opens and checks the store that the child has left.
func (l *ledger) verify(dir string) {
	l.t.Helper()
	opened, err := l.store.Open(dir)
	if err != nil {
		l.t.Errorf("opening the store after a kill: %v", err)
		return
	}
	b := newBackend(l.t, opened)
	now := b.list(storage.Range{From: "k", To: "l"}) // the keys of the children
	if now.Revision < l.top {
		l.t.Errorf("the store is at revision %d; revision %d was shown before the kill", now.Revision, l.top)
	}
	for _, kv := range now.KVs {
		l.give(version{key: kv.Key, value: unfilled(kv.Value), revision: kv.Revision})
	}
	last := l.kept(b, now)
	l.acknowledged(b, now, last)
	l.remembered(b)
	if r := b.put("after", "x"); r <= l.top {
		l.t.Errorf("a commit after the kill has revision %d; revision %d was shown before", r, l.top)
	} else {
		l.top = r
	}
	if err := b.Close(); err != nil {
		l.t.Errorf("Close: %v", err)
	}
}

// kept follows the history since the child opened the store, checks that it leads to the state found and returns the last
// change of each key. If the history was compacted, it returns the state only.
func (l *ledger) kept(b *backend, now storage.RangeResult) map[string]version {
	l.t.Helper()
	last := map[string]version{}
	f, err := b.Watch(b.ctx, storage.WatchRange{From: l.from, Prev: true})
	before, gone := b.Range(b.ctx, storage.Range{From: "k", To: "l", At: l.from})
	if l.from == 0 || errors.Is(err, storage.ErrCompacted) || errors.Is(gone, storage.ErrCompacted) {
		if err == nil {
			f.Close()
		}
		for _, kv := range now.KVs {
			last[kv.Key] = version{key: kv.Key, value: unfilled(kv.Value), revision: kv.Revision}
		}
		return last
	}
	if err != nil || gone != nil {
		l.t.Fatalf("from revision %d: Watch: %v; Range: %v", l.from, err, gone)
	}
	defer f.Close()
	for _, kv := range before.KVs {
		last[kv.Key] = version{key: kv.Key, value: unfilled(kv.Value), revision: kv.Revision}
	}
	history := &feed{Feed: f, b: b}
	for history.last < now.Revision {
		history.RequestProgress()
		history.fill()
		for _, c := range history.pending {
			v := version{key: c.Key, value: unfilled(c.Value), deleted: c.Deleted, revision: c.Revision}
			l.give(v)
			was, known := last[c.Key]
			known = known && !was.deleted
			if known != (c.Prev != nil) || known && (c.Prev.Revision != was.revision || unfilled(c.Prev.Value) != was.value) {
				l.t.Errorf("the history has %q after %q", text(c), was)
			}
			last[c.Key] = v
		}
		history.pending = nil
	}
	found := 0
	for _, kv := range now.KVs {
		if v := last[kv.Key]; v.revision != kv.Revision || v.deleted {
			l.t.Errorf("found %s@%d, the history leads to %q", kv.Key, kv.Revision, v)
		}
	}
	for _, v := range last {
		if !v.deleted {
			found++
		}
	}
	if found != len(now.KVs) {
		l.t.Errorf("found %d keys, the history leads to %d", len(now.KVs), found)
	}
	return last
}

// acknowledged checks the child's acknowledged commits: each is there, or a later change of its key is. In a weaker store the
// commits after some revision may be missing.
func (l *ledger) acknowledged(b *backend, now storage.RangeResult, last map[string]version) {
	l.t.Helper()
	survivor, end := version{}, now.Revision
	for _, v := range last {
		if v.revision > survivor.revision {
			survivor = v
		}
	}
	if l.store.Weaker {
		end = survivor.revision
	}
	for _, v := range l.done {
		switch {
		case last[v.key].revision >= v.revision || l.atItsRevision(b, v):
		case v.revision > end:
			l.lost++
		case last[v.key].revision > 0 || !l.deleted(v):
			l.t.Errorf("%q was acknowledged and is lost; found is %q, and %q as the last of all", v, last[v.key], survivor)
			return
		}
	}
}

// deleted reports whether an absent key without history may have been deleted after a version.
func (l *ledger) deleted(v version) bool {
	for _, at := range l.gaps[v.key] {
		if at >= v.revision {
			return true
		}
	}
	for _, begun := range l.last {
		if begun.Deleted && begun.Key == v.key {
			return true
		}
	}
	return false
}

// atItsRevision checks the result of a read at a commit's revision, and returns whether it has the commit.
func (l *ledger) atItsRevision(b *backend, v version) bool {
	l.t.Helper()
	res, err := b.Get(b.ctx, v.key, v.revision)
	switch {
	case errors.Is(err, storage.ErrCompacted):
		return false
	case err != nil:
		l.t.Errorf("%q was acknowledged: Get at its revision: %v", v, err)
		return true
	case res.Found == v.deleted, res.Found && res.KV.Revision != v.revision:
		l.t.Errorf("%q was acknowledged: Get at its revision shows %s", v, shown(res.KV, res.Found))
	}
	return true
}

// remembered checks that the states that the child has seen are unchanged, or have been compacted.
func (l *ledger) remembered(b *backend) {
	l.t.Helper()
	for _, r := range l.shown {
		res, err := b.Get(b.ctx, r.Key, r.At)
		if errors.Is(err, storage.ErrCompacted) {
			continue
		}
		if err != nil {
			l.t.Errorf("%s was read at revision %d: Get says now %v", r.Key, r.At, err)
			continue
		}
		if res.Found != (r.Revision > 0) || res.Found && (res.KV.Revision != r.Revision || unfilled(res.KV.Value) != r.Value) {
			l.t.Errorf("at revision %d %s was %s@%d, and is %.80s now", r.At, r.Key, r.Value, r.Revision, shown(res.KV, res.Found))
		}
		if l.t.Failed() {
			return
		}
	}
}
