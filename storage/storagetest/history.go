package storagetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

var historyTests = []backendTest{
	{"a random history", func(t *testing.T, b *backend) { randomHistory(t, b, false) }},
	{"a random history with compactions", func(t *testing.T, b *backend) {
		b.compactor()
		randomHistory(t, b, true)
	}},
}

// model is the expected content of a backend: every state, as a plain map.
type model struct {
	revisions []int64                         // of the states, ascending; the first is the empty store
	states    map[int64]map[string]storage.KV // by revision
	changes   []string                        // as text, one for each state after the first
	floor     int                             // index of the oldest state not compacted
}

func (m *model) now() map[string]storage.KV { return m.states[m.revisions[len(m.revisions)-1]] }

func (m *model) add(revision int64, change string, state map[string]storage.KV) {
	m.revisions = append(m.revisions, revision)
	m.states[revision] = state
	m.changes = append(m.changes, change)
}

func newModel(b *backend) *model {
	first := b.revision()
	return &model{revisions: []int64{first}, states: map[int64]map[string]storage.KV{first: {}}}
}

// seeded returns a source of random numbers, whose seed the test logs.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// randomHistory makes random commits, with right and wrong expectations, and compares every state and the watches from every
// revision with a model.
func randomHistory(t *testing.T, b *backend, compact bool) {
	rnd := seeded(t)
	m := newModel(b)
	var feeds []*followed
	for step := range 400 {
		m.step(t, b, rnd, step)
		switch {
		case step%40 == 10:
			feeds = append(feeds, newFollowed(b, m, rnd))
		case compact && step%60 == 50:
			at := m.floor + 1 + rnd.IntN(len(m.revisions)-m.floor-1)
			for _, f := range feeds {
				f.catchUp(t, m)
			}
			b.compact(m.revisions[at])
			m.floor = at
		case step%7 == 0 && len(feeds) > 0:
			feeds[rnd.IntN(len(feeds))].catchUp(t, m)
		}
	}
	for _, f := range feeds {
		f.catchUp(t, m)
		f.feed.wantIdle()
	}
	for _, revision := range m.revisions[m.floor:] {
		m.compare(t, b, revision, rnd)
	}
	for i := m.floor; i < len(m.revisions); i += 1 + rnd.IntN(20) {
		f := b.watch(storage.WatchRange{From: m.revisions[i], Prev: true})
		f.want(m.changes[i:]...)
		f.wantIdle()
		f.Close()
	}
}

// step makes one random commit, in the backend and in the model.
func (m *model) step(t *testing.T, b *backend, rnd *rand.Rand, step int) {
	t.Helper()
	key := fmt.Sprintf("p%d/k%d", rnd.IntN(3), rnd.IntN(6))
	current, found := m.now()[key]
	c := storage.Commit{Key: key, Value: []byte(fmt.Sprint("v", step)), Delete: rnd.IntN(3) == 0}
	switch rnd.IntN(5) {
	case 0:
		c.Expect = 0
	case 1:
		c.Expect = m.revisions[rnd.IntN(len(m.revisions))]
	case 2:
		c.Expect = storage.AnyRevision
	default:
		c.Expect = current.Revision
	}
	met := c.Expect == storage.AnyRevision || found && c.Expect == current.Revision || !found && c.Expect == 0 && !c.Delete
	if !met {
		res := b.refused(c)
		if res.Found != found || found && (string(res.Current.Value) != string(current.Value) || res.Current.Revision != current.Revision) {
			t.Fatalf("step %d: Commit(%s) found %+v, want %+v", step, describe(c), res, current)
		}
		return
	}
	revision := b.commit(c)
	if c.Delete && !found {
		return
	}
	if last := m.revisions[len(m.revisions)-1]; revision <= last {
		t.Fatalf("step %d: revision %d after %d", step, revision, last)
	}
	state := maps.Clone(m.now())
	change := storage.Change{Key: key, Value: c.Value, Revision: revision, Deleted: c.Delete}
	if c.Delete {
		change.Value = nil
		delete(state, key)
	} else {
		state[key] = storage.KV{Key: key, Value: c.Value, Revision: revision}
	}
	if found {
		change.Prev = &current
	}
	m.add(revision, text(change), state)
}

// compare checks one state: whole, in parts, and key by key.
func (m *model) compare(t *testing.T, b *backend, revision int64, rnd *rand.Rand) {
	t.Helper()
	m.compareRange(t, b, storage.Range{At: revision})
	bounds := []string{"", "p0/", "p0/k3", "p1", "p1/k2\x00", "p1/k9", "p2/", "p2/k5", "q", "\xff"}
	for range 2 {
		m.compareRange(t, b, storage.Range{
			From: bounds[rnd.IntN(len(bounds))], To: bounds[rnd.IntN(len(bounds))], At: revision,
			Limit: rnd.IntN(5), CountOnly: rnd.IntN(5) == 0, Uncounted: rnd.IntN(2) == 0,
		})
	}
	key := fmt.Sprintf("p%d/k%d", rnd.IntN(3), rnd.IntN(6))
	if kv, found := m.states[revision][key]; found {
		b.wantGet(key, revision, string(kv.Value), kv.Revision)
	} else {
		b.wantMissing(key, revision)
	}
}

// compareRange checks one Range at a revision.
func (m *model) compareRange(t *testing.T, b *backend, r storage.Range) {
	t.Helper()
	state := m.states[r.At]
	var want []storage.KV
	count := 0
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if key < r.From || r.To != "" && key >= r.To {
			continue
		}
		if count++; !r.CountOnly && (r.Limit == 0 || count <= r.Limit) {
			want = append(want, state[key])
		}
	}
	res := b.list(r)
	if versions(res.KVs) != versions(want) || !counted(r, res.Count, int64(count)) || res.Revision != r.At {
		t.Fatalf("Range(%+v) = %s, count %d, revision %d; want %s, count %d", r, versions(res.KVs), res.Count, res.Revision, versions(want), count)
	}
}

// followed is a watch that is read from time to time.
type followed struct {
	feed *feed
	next int // index of the next change in the model
}

func newFollowed(b *backend, m *model, rnd *rand.Rand) *followed {
	at := m.floor + rnd.IntN(len(m.revisions)-m.floor)
	return &followed{feed: b.watch(storage.WatchRange{From: m.revisions[at], Prev: true}), next: at}
}

func (f *followed) catchUp(t *testing.T, m *model) {
	t.Helper()
	f.feed.want(m.changes[f.next:]...)
	f.next = len(m.changes)
}
