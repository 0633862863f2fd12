package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/labels"
)

// A random history. All results of a cache are compared with a replay of the backend's log. KEELSON_SEED repeats the history
// that a failure names, as far as the scheduling of goroutines allows.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		rounds, steps int
		open          func(t *testing.T) storage.Backend
	}{
		{"memory", 6, 1200, func(t *testing.T) storage.Backend {
			b := memory.New(memory.Options{})
			t.Cleanup(func() { b.Close() })
			return b
		}},
		{"bare", 2, 1200, func(t *testing.T) storage.Backend {
			b := memory.New(memory.Options{})
			t.Cleanup(func() { b.Close() })
			return struct { // without optional abilities
				sleepless
				storage.Compactor
			}{sleepless{b}, b}
		}},
		{"bolt", 2, 600, func(t *testing.T) storage.Backend {
			b, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{Sync: bolt.SyncInterval})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			return b
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rounds, seed, again := c.rounds, rand.Uint64(), os.Getenv("KEELSON_SEED")
			if testing.Short() {
				rounds = 1
			}
			for n, end := 0, time.Now().Add(soak(t)); (n < rounds || time.Now().Before(end)) && !t.Failed(); n++ {
				if again != "" {
					var err error
					if seed, err = strconv.ParseUint(again, 10, 64); err != nil {
						t.Fatalf("KEELSON_SEED: %v", err)
					}
				}
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newModel(t, c.open(t), seed).run(c.steps) })
				seed++
			}
		})
	}
}

// model uses a cache at random, from one goroutine.
type model struct {
	*rig
	test     *testing.T
	rnd      *rand.Rand
	h        *truth
	opts     cacher.Options
	wishes   []wish
	voids    atomic.Int64
	held     bool
	any      int64 // the last revision at which a cache has shown any state
	anyVoids int64 // the voids of that cache then
	lists    []*paging
	views    []*viewer
	trail    []string // the last steps
	counts   map[string]int
}

func newModel(t *testing.T, b storage.Backend, seed uint64) *model {
	t.Helper()
	m := &model{test: t, rnd: rand.New(rand.NewPCG(seed, 7)), wishes: wishes(t), counts: map[string]int{}}
	m.opts = cacher.Options{
		WindowBytes: int64(32+m.rnd.IntN(96)) << 10,
		ReadWait:    10 * time.Millisecond,
		Forms:       storage.NewFormCache(1 << 20),
		Hooks:       cacher.Hooks{Void: func(error) { m.voids.Add(1) }},
	}
	if m.rnd.IntN(4) > 0 {
		m.opts.IndexFields, m.opts.IndexLabels = []string{"spec.color"}, []string{"app"}
	}
	m.rig = newRig(t, b, m.opts)
	m.h = newTruth(t, b, m.root)
	return m
}

// fatal fails the test and prints the last steps.
func (m *model) fatal(format string, args ...any) {
	m.test.Helper()
	st := m.Stats()
	m.test.Fatalf("%s\nthe store is at %d, the cache is %+v, its feed is held: %v\n%s",
		fmt.Sprintf(format, args...), m.h.now, st, m.held, strings.Join(m.trail, "\n"))
}

// note records a step.
func (m *model) note(format string, args ...any) {
	m.trail = append(m.trail, fmt.Sprintf(format, args...))
	if len(m.trail) > 40 {
		m.trail = m.trail[1:]
	}
}

func (m *model) run(steps int) {
	m.test.Helper()
	for range steps {
		m.step()
	}
	m.source.release()
	m.held = false
	for behind := true; behind; {
		behind = false
		for _, v := range slices.Clone(m.views) {
			behind = behind || v.from < m.h.now
			m.drain(v)
		}
	}
	m.eventually("the cache is ready", func() bool { return m.Ready(m.ctx) == nil && m.Stats().Filled })
	m.seen(m.h.now)
	for _, w := range m.wishes {
		m.listAt(w, storage.Read{})
		m.listAt(w, storage.Read{Match: storage.Any})
	}
	m.test.Logf("%d changes: %v", len(m.h.turns), m.counts)
}

func (m *model) step() {
	m.test.Helper()
	switch n := m.rnd.IntN(1000); {
	case n < 380:
		m.write()
	case n < 400:
		m.note("a burst of writes")
		for range 10 + m.rnd.IntN(60) {
			m.write()
		}
	case n < 520:
		m.listAt(m.wish(), m.moment())
	case n < 600:
		m.getAt(m.key(), m.moment())
	case n < 640:
		m.beginPages()
	case n < 720 && len(m.lists) > 0:
		m.nextPage(m.rnd.IntN(len(m.lists)))
	case n < 770:
		m.beginWatch(m.wish(), -1)
	case n < 930 && len(m.views) > 0:
		m.readWatch(m.views[m.rnd.IntN(len(m.views))], 1+m.rnd.IntN(20))
	case n < 940 && len(m.views) > 0:
		i := m.rnd.IntN(len(m.views))
		m.views[i].Close()
		m.lose(m.views[i])
	case n < 960:
		m.note("the feed is held")
		m.source.hold()
		m.held = true
	case n < 980:
		m.note("the feed goes on")
		m.source.release()
		m.held = false
	case n < 986:
		m.note("the feed fails")
		m.source.fail(errOut)
	case n < 988:
		m.note("the feed expires")
		m.source.fail(&storage.ExpiredError{Revision: 1})
	case n < 994:
		m.compactSome()
	case n < 997:
		m.restart()
	default:
		m.seenIfHeard()
	}
}

func (m *model) wish() wish { return m.wishes[m.rnd.IntN(len(m.wishes))] }

func (m *model) key() string { return fmt.Sprintf("n%d/k%d", m.rnd.IntN(3), m.rnd.IntN(5)) }

// seenIfHeard waits until the cache has received all changes, if it can.
func (m *model) seenIfHeard() {
	m.test.Helper()
	if !m.held && m.Stats().Filled {
		m.note("wait for %d", m.h.now)
		m.listAt(m.wishes[0], storage.Read{})
	}
}

// moment returns a random state to read: past, present, or future.
func (m *model) moment() storage.Read {
	at := storage.Read{Match: []storage.Match{storage.Latest, storage.Any, storage.NotOlderThan, storage.Exact}[m.rnd.IntN(4)]}
	if at.Match != storage.NotOlderThan && at.Match != storage.Exact {
		return at
	}
	switch back := m.h.now - m.h.first; m.rnd.IntN(10) {
	case 0:
		at.Revision = m.h.now + 1 + m.rnd.Int64N(3)
	case 1, 2:
		at.Revision = m.h.now
	case 3, 4:
		at.Revision = m.h.first + m.rnd.Int64N(back+1)
	default:
		at.Revision = m.h.now - m.rnd.Int64N(min(back, 40)+1)
	}
	return at
}

// floor returns the oldest revision that the backend or the cache retains.
func (m *model) floor() int64 {
	m.test.Helper()
	oldest, err := m.store.Oldest(m.ctx)
	if err != nil {
		m.fatal("Oldest: %v", err)
	}
	return oldest
}

// dress gives a gadget random labels and a random color.
func (m *model) dress(g *storagetest.Gadget) {
	pick := func(of ...string) string { return of[m.rnd.IntN(len(of))] }
	g.Spec.Color, g.Labels = pick("", "red", "red", "blue"), labels.Set{}
	if app := pick("", "x", "x", "y"); app != "" {
		g.Labels["app"] = app
	}
	if tier := pick("", "", "gold", "tin"); tier != "" {
		g.Labels["tier"] = tier
	}
	g.Spec.Size++
}

// write makes one change, or tries to.
func (m *model) write() {
	m.test.Helper()
	key := m.key()
	is := m.h.latest()[key]
	var err, want error
	var revision int64
	unreadable := is != nil && is.broken
	kind := m.rnd.IntN(20)
	switch {
	case kind == 0 && m.rnd.IntN(3) == 0:
		revision = m.plant(key, broken)
	case kind == 1:
		revision = m.plant(key, `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"k"},"spec":{"color":"red","size":7}}`)
	case kind == 2:
		revision = m.aside()
	case kind == 3 || unreadable && kind < 12:
		switch {
		case is == nil:
			want = storage.ErrNotFound
		case !is.broken:
			want = storage.ErrReadable
		}
		revision, err = m.DeleteUnreadable(m.ctx, key, storage.WriteOptions{})
	case is == nil && kind < 18:
		var r storage.Record
		g := gadgetOf(key, "", nil)
		m.dress(g)
		r, err = m.Create(m.ctx, key, g, storage.WriteOptions{})
		revision = r.Revision
	default:
		revision, err, want = m.update(key, is, kind)
	}
	m.h.read()
	m.note("write %d of %q: %d, %v", kind, key, revision, err)
	if !errors.Is(err, want) || want == nil && err != nil {
		m.fatal("writing %q, which is %+v: %v, want %v", key, is, err, want)
	}
	now := m.h.latest()[key]
	if err == nil && kind > 3 && now != nil && now.revision != revision {
		m.fatal("%q is written at %d, and found at %d", key, revision, now.revision)
	}
}

// errUnreadable stands for any UnreadableError.
var errUnreadable = errors.New("unreadable")

// update changes an object, deletes it, or leaves it unchanged.
func (m *model) update(key string, is *thing, kind int) (revision int64, err, want error) {
	change := changed(m.dress)
	switch {
	case kind < 10:
		change = dropped
	case kind == 10:
		change = func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{}, nil
		}
	case kind == 11:
		want = errOut
		change = func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{}, errOut
		}
	}
	switch {
	case is == nil:
		want = storage.ErrNotFound
	case is.broken:
		want = errUnreadable
	}
	r, err := m.Update(m.ctx, key, storage.WriteOptions{}, change)
	var unreadable *storage.UnreadableError
	if errors.As(err, &unreadable) {
		err = errUnreadable
	}
	return r.Revision, err, want
}

// compactSome compacts some of the backend's history.
func (m *model) compactSome() {
	m.test.Helper()
	c, ok := m.backend.(storage.Compactor)
	if !ok {
		m.fatal("a %T does not compact", m.backend)
	}
	floor := m.floor()
	at := floor + m.rnd.Int64N(m.h.now-floor+1)
	m.note("compaction at %d", at)
	if err := c.Compact(m.ctx, at); err != nil && !errors.Is(err, storage.ErrCompacted) {
		m.fatal("Compact(%d): %v", at, err)
	}
}

// restart closes the cache and makes another one, with which watches continue where they were.
func (m *model) restart() {
	m.test.Helper()
	m.note("the cache is closed, and a new one made")
	floor := max(m.Stats().Oldest, m.floor())
	m.Close()
	m.any = 0
	views := m.views
	m.views = nil
	for _, v := range views {
		events, err := v.Next(m.patiently())
		var expired *storage.ExpiredError
		var unreadable *storage.UnreadableError
		switch c := m.due(v); {
		case errors.Is(err, storage.ErrClosed):
		case errors.As(err, &expired) && v.from < floor && strings.HasSuffix(fmt.Sprintf("%T", v.Watch), ".lentWatch"):
		case errors.As(err, &expired) && (v.voids != m.voids.Load() || c != nil && c.revision <= floor):
		case errors.As(err, &unreadable) && (v.initial || c != nil && v.mustEnd(*c)): // it had ended before
		default:
			m.fatal("a watch of %s shows %d events and %v, want ErrClosed", v.name, len(events), err)
		}
	}
	m.open(m.opts)
	if m.rnd.IntN(3) > 0 {
		m.source.release()
		m.held = false
	}
	for _, v := range views {
		if !v.initial {
			m.beginWatch(v.wish, v.from)
		}
	}
}
