package cacher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// scripted is a storage.Source that is empty at revision 1 and then delivers what a test sets.
type scripted struct {
	*storage.Store
	moves     chan storage.Moves
	asked     chan struct{}
	now       atomic.Int64
	delivered int64 // the progress that Next has delivered; used by Next only
}

func (s *scripted) Oldest(context.Context) (int64, error)   { return 1, nil }
func (s *scripted) Revision(context.Context) (int64, error) { return s.now.Load(), nil }
func (s *scripted) Known() (revision int64, ok bool)        { return s.now.Load(), true }

func (s *scripted) State(context.Context, int64) (storage.State, error) {
	return storage.State{Revision: 1, Entries: func(func(storage.Entry, error) bool) {}}, nil
}

func (s *scripted) Follow(context.Context, int64) (storage.Following, error) { return s, nil }

func (s *scripted) Next(ctx context.Context) (storage.Moves, error) {
	select {
	case m := <-s.moves:
		s.delivered = m.Progress
		return m, nil
	case <-s.asked: // not s.now: the changes up to that may not be delivered yet
		return storage.Moves{Progress: s.delivered}, nil
	case <-ctx.Done():
		return storage.Moves{}, ctx.Err()
	}
}

func (s *scripted) RequestProgress() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

func (s *scripted) Close() {}

// tell changes keys, all at one revision.
func (s *scripted) tell(t *testing.T, revision int64, deleted bool, keys []string) {
	t.Helper()
	m := storage.Moves{Progress: revision}
	for _, key := range keys {
		r := storage.Record{Key: key}
		if !deleted {
			var err error
			o := &storagetest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			if r, err = s.Create(t.Context(), key, o, storage.WriteOptions{DryRun: true}); err != nil {
				t.Fatal(err)
			}
		}
		r.Revision = revision
		m.Moves = append(m.Moves, storage.Move{Entry: storage.Entry{Record: r}, Deleted: deleted})
	}
	s.now.Store(revision)
	s.moves <- m
}

// An etcd transaction of another client, or the end of a lease, changes many keys at one revision. These changes are seen
// together or not at all, in states, in watches and when the log is trimmed.
func TestManyChangesAtOneRevision(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	so, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.NewStore(b, so)
	if err != nil {
		t.Fatal(err)
	}
	below := &scripted{Store: store, moves: make(chan storage.Moves), asked: make(chan struct{}, 1), delivered: 1}
	below.now.Store(1)
	c, err := New(below, Options{Namespaced: true, WindowBytes: 3 << 20, ReadWait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list := func(at storage.Read) storage.Page {
		t.Helper()
		p, err := c.List(ctx, storage.ListOptions{At: at})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	list(storage.Read{})
	var keys []string
	for i := range 3 * segmentChanges {
		keys = append(keys, fmt.Sprintf("n%d/k%03d", i%2, i))
	}
	from := int64(1)
	for round := range int64(3) {
		at := from + 10
		for i, step := range []struct {
			deleted bool
			keys    []string
			left    int
		}{{false, keys, len(keys)}, {true, keys[50:], 50}, {false, keys[:1], 50}, {true, keys[:50], 0}} {
			revision := at + int64(i)
			behind, err := c.Watch(ctx, storage.WatchOptions{From: revision - 1})
			if err != nil {
				t.Fatal(err)
			}
			below.tell(t, revision, step.deleted, step.keys)
			if p := list(storage.Read{}); p.Count != step.left || p.Revision != revision {
				t.Errorf("round %d: %d records at %d, want %d at %d", round, p.Count, p.Revision, step.left, revision)
			}
			events, err := behind.Next(ctx)
			if err != nil || len(events) != len(step.keys) {
				t.Errorf("round %d: %d events of revision %d, %v; want %d", round, len(events), revision, err, len(step.keys))
			}
			for _, e := range events {
				if e.Record.Revision != revision || (e.Type == watch.Deleted) != step.deleted {
					t.Fatalf("%s at %d, want revision %d", e.Type, e.Record.Revision, revision)
				}
			}
			behind.Close()
		}
		for i, left := range []int{0, len(keys), 50, 50, 0} {
			if p := list(storage.Read{Match: storage.Exact, Revision: at - 1 + int64(i)}); p.Count != left {
				t.Errorf("round %d: %d records at %d, want %d", round, p.Count, p.Revision, left)
			}
		}
		from = at
	}
	c.mu.Lock()
	for i, s := range c.log.segments {
		if s.base.changed >= s.changes[0].revision || i > 0 && s.base.changed != c.log.segments[i-1].changes[len(c.log.segments[i-1].changes)-1].revision {
			t.Errorf("a segment begins at %d after a state of %d", s.changes[0].revision, s.base.changed)
		}
	}
	floor := c.log.floor
	c.mu.Unlock()
	if floor == 1 {
		t.Error("nothing was dropped")
	}
	var expired *storage.ExpiredError
	if _, err := c.Watch(ctx, storage.WatchOptions{From: floor - 1}); !errors.As(err, &expired) || expired.Oldest != floor {
		t.Errorf("a watch from before %d: %v", floor, err)
	}
}
