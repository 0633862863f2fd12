package cacher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// labelled is an entry with labels.
func labelled(t testing.TB, m *entries, key, labels string) *entry {
	t.Helper()
	d, err := codec.ParseDocument([]byte(`{"kind":"K","apiVersion":"v1","metadata":{"name":"n"` + labels + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return m.entry(storage.Entry{Record: storage.Record{Key: key, Revision: 1, Body: d}})
}

// A list by labels has the same result as the selector applied to each entry: with more label sets than remembered verdicts,
// with sets without an id, with unreadable entries, and after changes.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		sets := []int{1, 3, 100, 3 * knownVerdicts, 10_000, 300}[seed]
		m := &entries{}
		if seed == 5 {
			m.made = maxSetID - 100
		}
		random := func(key string) *entry {
			if r.IntN(50) == 0 {
				return m.entry(storage.Entry{Record: storage.Record{Key: key, Revision: 1}, Unreadable: &storage.UnreadableError{Key: key}})
			}
			n := r.IntN(sets)
			return labelled(t, m, key, fmt.Sprintf(`,"labels":{"a":"%d","b":"%d"}`, n, n%7))
		}
		var all []*entry
		const n = 5000
		for i := range n {
			all = append(all, random(fmt.Sprintf("k%05d", i)))
		}
		tr := build(byKey, new(edition), slices.Values(all))
		for round := range 40 {
			r1, err := labels.NewRequirement("b", selection.In, []string{fmt.Sprint(r.IntN(7)), "9"})
			if err != nil {
				t.Fatal(err)
			}
			selector := labels.NewSelector().Add(*r1)
			if round%2 == 0 {
				selector = labels.SelectorFromSet(labels.Set{"a": fmt.Sprint(r.IntN(sets))})
			}
			l := &listing{opts: storage.ListOptions{Selection: storage.Selection{Labels: selector}}, indexes: &Options{}}
			l.state = &snapshot{state: state{records: tr}}
			l.scope = l.opts.Scope(true)
			if l.from = ""; round%5 == 0 {
				l.from = fmt.Sprintf("k%05d", r.IntN(n))
			}
			rows := l.rows()
			var got, want []string
			rows.chosen(func(e *entry, looked int) bool {
				got = append(got, fmt.Sprint(e.Key, " ", looked))
				return true
			})
			looked := 0
			tr.walk(tr.rank(before(l.from)), n, func(e *entry) bool {
				if looked++; e.unreadable == nil && selector.Matches(e.Record.Body.Labels()) {
					want = append(want, fmt.Sprint(e.Key, " ", looked))
				}
				return true
			})
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d: %s from %q chooses %d entries, want %d\n%v\n%v", seed, round, selector, l.from, len(got), len(want), got, want)
			}
			ed := new(edition)
			for range r.IntN(200) {
				tr.set(ed, random(fmt.Sprintf("k%05d", r.IntN(n))))
			}
		}
		if seed == 5 && m.made != maxSetID {
			t.Errorf("%d sets have ids", m.made)
		}
	}
}
