package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/audit"
)

// deliveries is a Sink that notes what it receives, and when.
type deliveries struct {
	begun time.Time
	takes time.Duration // how long a delivery takes
	err   error

	mu     sync.Mutex // guards the fields below
	of     []string   // "2s: a b"
	ids    []string
	now    int
	most   int // deliveries at the same time
	cancel int // deliveries whose context ended
}

func (d *deliveries) Record(ctx context.Context, events ...*audit.Event) error {
	text := fmt.Sprint(time.Since(d.begun), ":")
	var ids []string
	for _, e := range events {
		text += " " + e.AuditID
		ids = append(ids, e.AuditID)
	}
	d.mu.Lock()
	d.of, d.ids = append(d.of, text), append(d.ids, ids...)
	d.now++
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now--
	if ctx.Err() != nil {
		d.cancel++
		return ctx.Err()
	}
	return d.err
}

func newBatch(t *testing.T, sink audit.Sink, o audit.BatchOptions) *audit.Batch {
	t.Helper()
	b, err := audit.NewBatch(sink, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func record(t *testing.T, s audit.Sink, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := s.Record(t.Context(), &audit.Event{AuditID: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v\nwant %v", what, got, want)
	}
}

func TestBatchesAreFullOrOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begun: time.Now()}
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 3, MaxWait: 10 * time.Second})
		time.Sleep(time.Second)
		record(t, b, "a")
		time.Sleep(4 * time.Second)
		record(t, b, "b")
		time.Sleep(10 * time.Second) // at 11 s a has waited long enough
		record(t, b, "c", "d", "e", "f", "g")
		time.Sleep(time.Second)
		record(t, b, "h", "i")
		time.Sleep(time.Second)
		record(t, b, "j")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "deliveries", d.of, []string{"11s: a b", "15s: c d e", "16s: f g h", "17s: i j"})
		if err := b.Record(t.Context(), &audit.Event{}); !errors.Is(err, audit.ErrDropped) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestBatchesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{begun: time.Now()}
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 1, QPS: 0.5, Burst: 2})
		record(t, b, "a", "b", "c", "d")
		time.Sleep(time.Minute)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "deliveries", d.of, []string{"0s: a", "0s: b", "2s: c", "4s: d"})
		d = &deliveries{begun: time.Now()}
		b = newBatch(t, d, audit.BatchOptions{MaxSize: 1, QPS: -1})
		for i := range 100 {
			record(t, b, fmt.Sprint(i))
		}
		synctest.Wait()
		if len(d.of) != 100 {
			t.Errorf("%d deliveries without a bound", len(d.of))
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{takes: time.Minute, begun: time.Now()}
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 2, Buffer: 3})
		record(t, b, "a", "b")
		synctest.Wait() // they are being delivered
		record(t, b, "c", "d", "e")
		if err := b.Record(t.Context(), &audit.Event{}, &audit.Event{}); !errors.Is(err, audit.ErrDropped) || err.Error() != "audit buffer is full: 2 events are lost" {
			t.Error(err)
		}
		time.Sleep(61 * time.Second)
		record(t, b, "f")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "events", d.ids, []string{"a", "b", "c", "d", "e", "f"})

		large := func(n int) *audit.Event { return &audit.Event{ResponseObject: make([]byte, n)} }
		b = newBatch(t, d, audit.BatchOptions{MaxSize: 1, BufferBytes: 15_000}) // an event counts in memory, and encoded
		for _, e := range []*audit.Event{large(3000), {ImpersonatedUser: &audit.UserInfo{Groups: []string{strings.Repeat("g", 3000)}}}} {
			if err := b.Record(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait() // the first one is being delivered, and counts
		if err := b.Record(t.Context(), large(3000)); !errors.Is(err, audit.ErrDropped) {
			t.Errorf("more bytes: %v", err)
		}
		time.Sleep(61 * time.Second)
		if err := b.Record(t.Context(), large(3000)); err != nil {
			t.Errorf("after a delivery: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A delivery of large events has few of them.
func TestDeliveriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		sink := sinkFunc(func(events []*audit.Event) { most = max(most, len(events)) })
		b := newBatch(t, sink, audit.BatchOptions{})
		for range 20 {
			if err := b.Record(t.Context(), &audit.Event{ResponseObject: make([]byte, 1<<20)}); err != nil {
				t.Error(err)
			}
		}
		if err := b.Close(t.Context()); err != nil || most == 0 || most > 4 {
			t.Errorf("%d events of 1 MiB are delivered together, %v", most, err)
		}
	})
}

type sinkFunc func(events []*audit.Event)

// Record implements audit.Sink.
func (f sinkFunc) Record(_ context.Context, events ...*audit.Event) error {
	f(events)
	return nil
}

func TestBatchesInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{takes: time.Minute, begun: time.Now()}
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 1, Parallel: 3})
		record(t, b, "a", "b", "c", "d", "e")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d.most != 3 || time.Since(d.begun) != 2*time.Minute {
			t.Errorf("%d at the same time, %v", d.most, time.Since(d.begun))
		}
	})
}

func TestBatchesOfASinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{err: errors.New("no"), begun: time.Now()}
		var failed []string
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 2, Failed: func(err error, n int) { failed = append(failed, fmt.Sprint(n, " ", err)) }})
		record(t, b, "a", "b", "c")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "failures", failed, []string{"2 no", "1 no"})
	})
}

func TestBatchesOfASinkThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{takes: time.Hour, begun: time.Now()}
		b := newBatch(t, d, audit.BatchOptions{MaxSize: 1})
		record(t, b, "a", "b", "c")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "audit: 2 events are lost: context deadline exceeded" {
			t.Error(err)
		}
		if d.cancel != 1 || time.Since(d.begun) != time.Second {
			t.Errorf("%d deliveries were stopped, %v", d.cancel, time.Since(d.begun))
		}
		if err := b.Close(t.Context()); err != nil { // again
			t.Error(err)
		}
	})
}

func TestBatchOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []audit.BatchOptions{{Buffer: -1}, {BufferBytes: -1}, {MaxSize: -1}, {MaxWait: -1}, {Burst: -1}, {Parallel: -1}} {
		if _, err := audit.NewBatch(&deliveries{}, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, err := audit.NewBatch(nil, audit.BatchOptions{}); err == nil {
		t.Error("a Batch without a Sink")
	}
}
