package cacher_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// journal records the calls of hooks, one line for each.
type journal struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) hooks() cacher.Hooks {
	return cacher.Hooks{
		Listed:     func(l cacher.Listed) { j.add("listed %q evaluated %d returned %d", l.Index, l.Evaluated, l.Returned) },
		Waited:     func(took time.Duration) { j.add("waited %v", took) },
		Consistent: func(success, fallback bool) { j.add("consistent %t fallback %t", success, fallback) },
		Received:   func(n int) { j.add("received %d", n) },
		Initial:    func(n int) { j.add("initial %d", n) },
		Outrun:     func() { j.add("outrun") },
	}
}

// take returns what was recorded since its last call.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

// The costs of reads, watches and changes are reported.
func TestHooksOfReadsAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls journal
		r := newRig(t, nil, cacher.Options{Window: time.Minute, ReadWait: time.Second, IndexFields: []string{"spec.color"}, Hooks: calls.hooks()})
		want := func(what string, lines ...string) {
			t.Helper()
			if got := calls.take(); !slices.Equal(got, lines) {
				t.Errorf("%s: told %q, want %q", what, got, lines)
			}
		}
		for i := range 6 {
			r.put(fmt.Sprintf("a/%d", i), []string{"red", "blue"}[i%2])
		}
		r.fill()
		calls.take()

		r.list(storage.ListOptions{})
		want("a list", "consistent true fallback false", `listed "" evaluated 0 returned 6`)
		r.list(storage.ListOptions{Limit: 2})
		want("a page", "consistent true fallback false", `listed "" evaluated 0 returned 2`)
		r.list(storage.ListOptions{Selection: storage.Selection{Labels: labels.Everything(), Fields: fields.OneTermEqualSelector("spec.color", "red")}})
		want("an index", "consistent true fallback false", `listed "f:spec.color" evaluated 3 returned 3`)
		r.list(storage.ListOptions{At: storage.Read{Match: storage.Any}, Selection: storage.Selection{Fields: fields.OneTermNotEqualSelector("spec.color", "red")}})
		want("a selector", `listed "" evaluated 6 returned 3`)

		r.put("a/0", "red")
		want("a change", "received 1")

		r.source.hold()
		now := r.put("a/1", "blue")
		done := make(chan int64)
		go func() { done <- r.list(storage.ListOptions{}).Revision }()
		time.Sleep(300 * time.Millisecond)
		r.source.release()
		if at := <-done; at < now {
			t.Errorf("the list is at %d, want %d", at, now)
		}
		got := calls.take()
		slices.Sort(got)
		if line := []string{"consistent true fallback false", `listed "" evaluated 0 returned 6`, "received 1", "waited 300ms"}; !slices.Equal(got, line) {
			t.Errorf("a list that waits: told %q, want %q", got, line)
		}

		r.source.hold()
		r.put("a/1", "green")
		r.list(storage.ListOptions{})
		want("a list that waits too long", "waited 1s", "consistent false fallback true")
		r.source.release()
		want("later", "received 1")

		w := r.watch(storage.WatchOptions{Initial: true})
		for e, err := w.next(); !e.InitialEnd; e, err = w.next() {
			if err != nil {
				t.Fatal(err)
			}
		}
		want("a watch with the state", "consistent true fallback false", "initial 6")
		slow := r.watch(storage.WatchOptions{From: r.now()})
		r.put("a/2", "pink")
		time.Sleep(2 * time.Minute)
		r.seen(r.put("a/3", "pink"))
		var expired *storage.ExpiredError
		slow.ends(&expired)
		if got := calls.take(); !slices.Contains(got, "outrun") {
			t.Errorf("a slow watch: told %q", got)
		}
		if _, err := r.Watch(r.ctx, storage.WatchOptions{From: 1}); err == nil {
			t.Error("a watch from long ago has begun")
		}
		want("a watch that cannot begin")
	})
}
