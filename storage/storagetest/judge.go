package storagetest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// judge compares all results of clients and watches with one log of changes, which the watches have delivered. It also checks
// whether a store that executes one call after the other could have returned them.
func (w *workload) judge() {
	w.t.Helper()
	j := &verdict{w: w, final: w.final.Load(), log: map[int64]storage.Change{}, made: map[int64]*call{}}
	for _, c := range w.clients {
		if c.bad != nil {
			w.t.Errorf("client %d: %v", c.id, c.bad)
		}
		for i := range c.calls {
			j.calls = append(j.calls, &c.calls[i])
		}
	}
	for _, f := range w.watchers {
		if f.bad != nil {
			w.t.Errorf("the watch %q: %v", f.name, f.bad)
		}
	}
	if w.t.Failed() {
		return // other failures would follow from it
	}
	for _, check := range []func(){j.gather, j.witness, j.acknowledge, j.explain, j.follow, j.compare, j.compareEnd, j.order} {
		check()
		if w.t.Failed() {
			break
		}
	}
	linearizable(w.t, j)
}

// verdict is a judgement in progress.
type verdict struct {
	w         *workload
	final     int64
	calls     []*call
	log       map[int64]storage.Change // the changes that the watches delivered, by revision
	revisions []int64                  // revisions of the log, ascending
	made      map[int64]*call          // the commit that made each change of the log
	shows     []showing                // in the order of their times
	failures  int
}

// fail reports a failure; of very many it reports only the first ones.
func (j *verdict) fail(format string, args ...any) {
	j.w.t.Helper()
	if j.failures++; j.failures <= 5 {
		j.w.t.Errorf(format, args...)
	}
}

// gather makes the log of all changes that the watches delivered, up to the final revision.
func (j *verdict) gather() {
	from := map[int64]string{}
	for _, f := range j.w.watchers {
		for _, c := range f.changes {
			if c.Revision > j.final || !strings.HasPrefix(c.Key, j.w.prefix) {
				continue
			}
			c.Prev = nil
			if other, ok := j.log[c.Revision]; ok && text(other) != text(c) {
				j.fail("the watch %q has %q, the watch %q has %q", from[c.Revision], text(other), f.name, text(c))
			}
			j.log[c.Revision], from[c.Revision] = c, f.name
		}
	}
	j.revisions = slices.Sorted(maps.Keys(j.log))
}

// acknowledge finds each acknowledged commit in the log, at its revision. An unconditional deletion may have found nothing to
// delete.
func (j *verdict) acknowledge() {
	var idle []*call
	for _, c := range j.calls {
		switch {
		case c.verb != verbCommit || c.outcome != answered:
		case c.revision > j.final:
			j.fail("%v: that is above the revision %d of a read afterwards", c, j.final)
		case c.idle() && (!j.logged(c) || j.made[c.revision] != nil || c.begun > j.shown(c.revision)):
			idle = append(idle, c) // another commit, with an unknown outcome, may have made the change
		case j.made[c.revision] != nil && !j.made[c.revision].idle():
			j.fail("two commits have one revision: %v; %v", j.made[c.revision], c)
		case !j.logged(c):
			j.fail("%v: the watches show %s", c, j.text(c.revision))
		default:
			if other := j.made[c.revision]; other != nil {
				idle = append(idle, other)
			}
			j.made[c.revision] = c
		}
	}
	for _, c := range idle {
		if before, found := j.at(c.key, c.revision); found {
			j.fail("%v: no watch has shown this deletion, and there is still %s", c, shown(before, found))
		}
	}
}

// logged reports whether the log has the change of a commit.
func (j *verdict) logged(c *call) bool {
	change, ok := j.log[c.revision]
	return ok && change.Key == c.key && change.Deleted == c.commit.Delete && string(change.Value) == string(c.commit.Value)
}

func (j *verdict) text(revision int64) string {
	if c, logged := j.log[revision]; logged {
		return fmt.Sprintf("%q", text(c))
	}
	return "no such change"
}

// explain finds a commit with an unknown outcome for each change of the log without an acknowledged commit.
func (j *verdict) explain() {
	for _, revision := range j.revisions {
		if j.made[revision] != nil {
			continue
		}
		change := j.log[revision]
		before, found := j.at(change.Key, revision-1)
		c := j.explanation(change, before, found)
		if c == nil {
			j.fail("the watches show %q, which no commit explains; before it there was %s", text(change), shown(before, found))
			continue
		}
		j.made[revision], c.revision = c, revision
	}
}

// explanation returns a commit that may have made a change. It began before the change was shown. A commit that could have
// made no other change is preferred.
func (j *verdict) explanation(change storage.Change, before storage.KV, found bool) (by *call) {
	shown := j.shown(change.Revision)
	for _, c := range j.calls {
		fits := c.begun <= shown && c.verb == verbCommit && c.outcome == unknown && c.revision == 0 && c.key == change.Key &&
			c.commit.Delete == change.Deleted && string(c.commit.Value) == string(change.Value) && c.met(found, before.Revision)
		if fits && (by == nil || by.idle()) {
			by = c
		}
	}
	return by
}

// at returns the value of a key in the log at a revision.
func (j *verdict) at(key string, revision int64) (kv storage.KV, found bool) {
	i, exact := slices.BinarySearch(j.revisions, revision)
	if exact {
		i++
	}
	for i--; i >= 0; i-- {
		if c := j.log[j.revisions[i]]; c.Key == key {
			return storage.KV{Key: key, Value: c.Value, Revision: c.Revision}, !c.Deleted
		}
	}
	return storage.KV{}, false
}

// state returns all values in the log at a revision.
func (j *verdict) state(revision int64) (kvs []storage.KV) {
	for i := range j.w.keys {
		if kv, found := j.at(j.w.key(i), revision); found {
			kvs = append(kvs, kv)
		}
	}
	return kvs
}

// follow compares each watch with the log: every change once, in order, with the previous value.
func (j *verdict) follow() {
	for _, f := range j.w.watchers {
		var want, got []string
		for _, revision := range j.revisions {
			c := j.log[revision]
			if revision <= f.from || !strings.HasPrefix(c.Key, f.prefix) {
				continue
			}
			if before, found := j.at(c.Key, revision-1); found && f.prev {
				c.Prev = &before
			}
			want = append(want, text(c))
		}
		for _, c := range f.changes {
			if c.Revision <= j.final && strings.HasPrefix(c.Key, j.w.prefix) {
				got = append(got, text(c))
			}
		}
		for i := range max(len(want), len(got)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				j.fail("the watch %q (of %q, from %d): change %d is %s, want %s", f.name, f.prefix, f.from, i, nth(got, i), nth(want, i))
				break
			}
		}
	}
}

func nth(list []string, i int) string {
	if i >= len(list) {
		return "none"
	}
	return fmt.Sprintf("%q", list[i])
}

// compare checks that each result is what the log has at the revision of the result.
func (j *verdict) compare() {
	for _, c := range j.calls {
		switch {
		case c.outcome == unknown || c.outcome == refused || c.revision > j.final:
		case c.revision == 0 && j.w.incomplete:
		case c.revision == 0:
			j.fail("%v: the answer has no revision", c)
		case c.at != 0 && c.revision != c.at:
			j.fail("%v: it was asked for %d", c, c.at)
		case c.verb == verbRange:
			want := j.state(c.revision)
			if versions(c.kvs) != versions(want) || c.count != int64(len(want)) {
				j.fail("%v: the watches say %s", c, versions(want))
			}
		case c.verb == verbGet || c.outcome == conflicted:
			want, found := j.at(c.key, c.revision)
			if shown(c.kv, c.found) != shown(want, found) {
				j.fail("%v: the watches say %s", c, shown(want, found))
			}
			if c.outcome == conflicted && c.met(found, want.Revision) {
				j.fail("%v: its condition holds", c)
			}
		}
	}
}

// compareEnd checks that the final state of the store is that of the log.
func (j *verdict) compareEnd() {
	for i, b := range j.w.backends {
		last := call{client: -1, verb: verbRange, at: j.final}
		if last.list(j.w.ctx, b, j.w.prefix); last.err != nil {
			j.fail("backend %d, at the end: %v", i, &last)
		} else if want := versions(j.state(j.final)); versions(last.kvs) != want {
			j.fail("backend %d, at the end: %v: the watches say %s", i, &last, want)
		}
	}
}

// showing records that a result or a watch showed a revision at a time.
type showing struct {
	at       time.Duration
	revision int64
	by       string
}

// witness collects the showings.
func (j *verdict) witness() {
	for _, c := range j.calls {
		if c.outcome == answered || c.outcome == conflicted {
			j.shows = append(j.shows, showing{c.ended, c.revision, fmt.Sprintf("client %d", c.client)})
		}
	}
	for _, f := range j.w.watchers {
		for _, m := range f.marks {
			j.shows = append(j.shows, showing{m.at, m.revision, fmt.Sprintf("the watch %q", f.name)})
		}
	}
	slices.SortFunc(j.shows, func(a, b showing) int { return cmp.Compare(a.at, b.at) })
}

// shown returns when a revision, or a later one, was first shown.
func (j *verdict) shown(revision int64) time.Duration {
	for _, s := range j.shows {
		if s.revision >= revision {
			return s.at
		}
	}
	return math.MaxInt64
}

// order checks the order of revisions in time. After a revision was shown, a commit that begins has a later revision, and a
// read of the latest state has no earlier one.
func (j *verdict) order() {
	calls := slices.SortedFunc(slices.Values(j.calls), func(a, b *call) int { return cmp.Compare(a.begun, b.begun) })
	shows, top := j.shows, showing{revision: math.MinInt64}
	for _, c := range calls {
		for len(shows) > 0 && shows[0].at < c.begun {
			if shows[0].revision > top.revision {
				top = shows[0]
			}
			shows = shows[1:]
		}
		if c.at != 0 || c.revision == 0 {
			continue
		}
		if c.revision < top.revision || c.revision == top.revision && j.made[c.revision] == c && !c.idle() {
			j.fail("%v: %s had shown revision %d before, at %v", c, top.by, top.revision, top.at)
		}
	}
}
