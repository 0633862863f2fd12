package bolt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// model is the expected content of a store.
type model struct {
	versions map[string][]storage.Change // of each key, the oldest first
	log      []storage.Change            // since the last gap
	head     int64
	floor    int64 // below it, everything is compacted
	owner    map[int64]string
	ends     map[int64]int64 // the epoch in which the value of a revision is to be deleted
	epoch    int64           // now
}

// epoch is the length of an epoch: much longer than a test, whose own time counts too.
const epoch = 1000 * time.Second

func (m *model) at(key string, revision int64) (found storage.Change, ok bool) {
	for _, c := range m.versions[key] {
		if c.Revision <= revision {
			found = c
		}
	}
	return found, found.Revision > 0 && !found.Deleted
}

func (m *model) add(t *testing.T, c storage.Change) {
	t.Helper()
	if what, used := m.owner[c.Revision]; used || c.Revision != m.head+1 {
		t.Fatalf("revision %d (after %d) is given to %s: it was that of %q", c.Revision, m.head, c.Key, what)
	}
	if prev, ok := m.at(c.Key, m.head); ok {
		c.Prev = &storage.KV{Key: c.Key, Value: prev.Value, Revision: prev.Revision, Expiring: prev.Expiring}
	}
	m.owner[c.Revision] = c.Key
	m.versions[c.Key] = append(m.versions[c.Key], c)
	m.log = append(m.log, c)
	m.head = c.Revision
}

// lose removes what came after a revision.
func (m *model) lose(kept int64) {
	for key, versions := range m.versions {
		m.versions[key] = slices.DeleteFunc(versions, func(c storage.Change) bool { return c.Revision > kept })
	}
	m.log = slices.DeleteFunc(m.log, func(c storage.Change) bool { return c.Revision > kept })
}

// due returns the revisions of the values that are to be deleted, by key.
func (m *model) due() map[string]int64 {
	due := map[string]int64{}
	for key := range m.versions {
		if c, live := m.at(key, m.head); live && c.Expiring && m.ends[c.Revision] <= m.epoch {
			due[key] = c.Revision
		}
	}
	return due
}

func (l *life) wall() time.Time { return time.Now().Round(0).Add(time.Duration(l.ahead.Load())) }

// pass sets the time forward.
func (l *life) pass() {
	n := int64(l.r.IntN(3))
	l.epoch += n
	l.ahead.Add(n * int64(epoch))
}

// expire waits for all deletions that are due.
func (l *life) expire() {
	due := l.due()
	if len(due) == 0 {
		return
	}
	if l.r.IntN(2) == 0 {
		flush(l.t, l.b)
	}
	if err := l.b.Health(l.t.Context()); err != nil { // if the disk was broken, the writer tries it again now
		l.t.Fatal(err)
	}
	del(l.t, l.b, "nothing") // wakes the writer, which cannot know that the clock was set
	f, err := l.b.Watch(l.t.Context(), storage.WatchRange{From: l.head})
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	for len(due) > 0 {
		got, err := f.Next(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		for _, c := range got.Changes {
			if _, ok := due[c.Key]; !ok || !c.Deleted {
				l.t.Fatalf("%s, while %v are to expire", changeText(c), due)
			}
			delete(due, c.Key)
			l.add(l.t, c)
			l.gone++
		}
	}
}
