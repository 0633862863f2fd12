package storagetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// sourceHistory makes a history of objects, some of which are unreadable or stale, and compares every state and the moves
// from every revision with a model.
func sourceHistory(t *testing.T, s *objects) {
	s.source()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &sourceModel{s: s, rnd: rand.New(rand.NewPCG(seed, 3))}
	h.revisions, h.states = []int64{s.revision()}, []map[string]string{{}}
	beside := s.follow(h.revisions[0])
	for range 120 {
		h.step()
	}
	beside.want(h.moves...)
	beside.wantIdle()
	order := h.rnd.Perm(len(h.states))
	for n, end := 0, time.Now().Add(budget()); n < len(order) && (n < 10 || time.Now().Before(end)); n++ {
		h.compareState(order[n])
	}
	for n, end := 0, time.Now().Add(budget()); n < len(order)/2 && (n < 5 || time.Now().Before(end)); n++ {
		f := s.follow(h.revisions[order[n]])
		f.want(h.moves[order[n]:]...)
		f.wantIdle()
		f.Close()
	}
}

// sourceModel is the expected history of a Source.
type sourceModel struct {
	s         *objects
	rnd       *rand.Rand
	revisions []int64
	states    []map[string]string // the value of each key, as entryText
	moves     []string            // each leads to the state after it
}

// step makes one change.
func (h *sourceModel) step() {
	h.s.t.Helper()
	key := fmt.Sprintf("n%d/k%d", h.rnd.IntN(2), h.rnd.IntN(5))
	next := maps.Clone(h.states[len(h.states)-1])
	was, found := next[key]
	broken := strings.HasSuffix(was, " broken")
	var revision int64
	text, kind := "", h.rnd.IntN(10)
	switch {
	case h.s.backend != nil && kind == 0:
		revision, text = h.s.plant(key, notJSON), " broken"
	case h.s.backend != nil && (kind == 1 || broken && kind < 6):
		revision = h.s.plant(key, older)
	case found && (broken || kind < 4):
		revision = h.delete(key, broken)
		delete(next, key)
		h.add(revision, fmt.Sprintf("delete %s@%d", key, revision), next)
		return
	case found:
		revision = h.s.resize(key).Revision
	default:
		revision = h.s.create(key, "color:red", "on=").Revision
	}
	next[key] = fmt.Sprintf("%s@%d%s", key, revision, text)
	h.add(revision, "put "+next[key], next)
}

func (h *sourceModel) add(revision int64, move string, state map[string]string) {
	h.revisions, h.moves, h.states = append(h.revisions, revision), append(h.moves, move), append(h.states, state)
}

// delete deletes an object, or the value that was planted in its place.
func (h *sourceModel) delete(key string, broken bool) int64 {
	h.s.t.Helper()
	if !broken {
		return h.s.remove(key).Revision
	}
	res, err := h.s.behind().Commit(h.s.ctx, storage.Commit{Key: h.s.prefix + key, Expect: storage.AnyRevision, Delete: true})
	if err != nil {
		h.s.t.Fatal(err)
	}
	return res.Revision
}

// compareState checks one state, and that its records are those of Get and List.
func (h *sourceModel) compareState(i int) {
	h.s.t.Helper()
	at := storage.Read{Match: storage.Exact, Revision: h.revisions[i]}
	state := h.s.state(at.Revision)
	read, err := entries(state)
	if err != nil || state.Revision != at.Revision {
		h.s.t.Fatalf("the state at %d is at %d: %v", at.Revision, state.Revision, err)
	}
	var got, broken []string
	for _, e := range read {
		got = append(got, entryText(e))
		if e.Unreadable == nil {
			h.sameRecord(e.Record, h.s.get(e.Record.Key, at))
			continue
		}
		broken = append(broken, e.Record.Key)
		if u := e.Unreadable; u.Key != e.Record.Key || u.Err == nil || len(u.More) > 0 || u.Truncated || len(e.Record.Body.Bytes()) > 0 {
			h.s.t.Fatalf("%q cannot be read, and the entry is %+v", e.Record.Key, e)
		}
	}
	var want []string
	for _, key := range slices.Sorted(maps.Keys(h.states[i])) {
		want = append(want, h.states[i][key])
	}
	if !slices.Equal(got, want) {
		h.s.t.Fatalf("the state at %d is %q, want %q", at.Revision, got, want)
	}
	page, err := h.s.List(h.s.ctx, storage.ListOptions{At: at})
	if len(broken) > 0 {
		wantUnreadable(h.s.t, err, broken...)
	} else if err != nil || page.Count != len(read) {
		h.s.t.Fatalf("List at %d: %d records, %v; the state has %d", at.Revision, page.Count, err, len(read))
	}
}

func (h *sourceModel) sameRecord(a, b storage.Record) {
	h.s.t.Helper()
	color := "spec.color"
	if a.Key != b.Key || a.Revision != b.Revision || a.Stale != b.Stale || string(a.Body.Bytes()) != string(b.Body.Bytes()) ||
		a.Labels.Has("on") != b.Labels.Has("on") || a.Fields.Get(color) != b.Fields.Get(color) || a.Fields.Get("metadata.name") != b.Fields.Get("metadata.name") {
		h.s.t.Fatalf("the state has %+v, and Get returns %+v", a, b)
	}
}
