package cacher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// churned returns a cache over a store, and a function that creates or changes a gadget with a label and waits until the
// cache has the change; without a label it deletes the gadget.
func churned(t *testing.T, o Options) (c *Cacher, write func(key, label string)) {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	so, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.NewStore(b, so)
	if err != nil {
		t.Fatal(err)
	}
	o.Namespaced = true
	if c, err = New(s, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.List(t.Context(), storage.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	return c, func(key, label string) {
		t.Helper()
		commit := storage.Commit{Key: so.Prefix + "/" + key, Expect: storage.AnyRevision, Delete: label == ""}
		if label != "" {
			commit.Value = fmt.Appendf(nil, `{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"x","labels":{"l":%q}},"spec":{"size":1}}`, label)
		}
		done, err := b.Commit(context.Background(), commit)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); c.Stats().Revision < done.Revision; time.Sleep(10 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("the cache does not reach %d", done.Revision)
			}
		}
	}
}

// Label sets that no entry has any more are removed.
func TestLabelSetsAreForgotten(t *testing.T) {
	c, write := churned(t, Options{WindowBytes: 32 << 10, IndexLabels: []string{"l"}})
	const keys = 10
	for i := range 1000 {
		key := fmt.Sprintf("a/k%d", i%keys)
		switch i % 50 {
		case 7:
			write(key, "")
			continue
		case 8:
			write(key, strings.Repeat("same", i%3))
			continue
		}
		write(key, fmt.Sprint("v", i))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, most := len(c.entries.sets), keys+c.log.count; n > most {
		t.Errorf("%d sets of labels are kept for %d records and %d changes", n, c.state.records.len(), c.log.count)
	}
	uses := 0
	for text, s := range c.entries.sets {
		if s.uses <= 0 {
			t.Errorf("%s is kept for %d uses", text, s.uses)
		}
		uses += int(s.uses)
	}
	want := c.state.records.len()
	for _, s := range c.log.segments {
		for _, ch := range s.changes {
			if ch.was != nil {
				want++
			}
		}
	}
	if uses != want {
		t.Errorf("the sets have %d uses, want %d", uses, want)
	}
}

// Without a reader no state from before the window is kept.
func TestOldStatesAreForgotten(t *testing.T) {
	c, write := churned(t, Options{WindowBytes: 32 << 10})
	for i := range 300 {
		write(fmt.Sprintf("a/k%d", i%10), "x")
		if i == 100 {
			if _, err := c.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: c.Stats().Revision - 3}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.published.Load(); s.revision < c.log.floor {
		t.Errorf("the state at %d is kept; the window begins at %d", s.revision, c.log.floor)
	}
	if len(c.recent) > 0 {
		t.Errorf("%d states that were asked for are kept", len(c.recent))
	}
}

// A state that the cache has not reached, for example after it was filled anew at a lower revision, is not found.
func TestNoStateBeyondReach(t *testing.T) {
	c, write := churned(t, Options{ReadWait: time.Millisecond})
	write("a/x", "x")
	if s := c.older(c.Stats().Revision + 5); s != nil {
		t.Errorf("the state five revisions ahead is that of %d", s.revision)
	}
	var future *storage.FutureError
	if _, err := c.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: c.Stats().Revision + 5}}); !errors.As(err, &future) {
		t.Errorf("a list of it: %v", err)
	}
}

// Changes that a watch has read are not kept in memory for the next one.
func TestBatchesAreEmptied(t *testing.T) {
	c, write := churned(t, Options{})
	from := c.Stats().Revision
	for i := range maxBatch + 10 {
		write(fmt.Sprintf("a/k%d", i%10), "x")
	}
	w, err := c.Watch(t.Context(), storage.WatchOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if events, err := w.Next(t.Context()); err != nil || len(events) != maxBatch+10 {
		t.Fatal(len(events), err)
	}
	for range 10 { // the pool has a few
		b := c.batch()
		for _, ch := range (*b)[:cap(*b)] {
			if ch != nil {
				t.Fatalf("a batch of the pool has %q at %d", ch.key(), ch.revision)
			}
		}
	}
}
