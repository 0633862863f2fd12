package background_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/watch"
)

// scriptedWatch is a watch that has some events, and then fails or waits until ctx ends.
type scriptedWatch struct {
	batches [][]storage.Event
	err     error
}

func (w *scriptedWatch) Next(ctx context.Context) ([]storage.Event, error) {
	if len(w.batches) > 0 {
		next := w.batches[0]
		w.batches = w.batches[1:]
		return next, nil
	}
	if w.err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, w.err
}

func (w *scriptedWatch) RequestProgress() {}
func (w *scriptedWatch) Close()           {}

func event(kind watch.EventType, key string) storage.Event {
	return storage.Event{Type: kind, Record: storage.Record{Key: key}, InitialEnd: kind == watch.Bookmark && key == "end"}
}

// The keys of all records come with the last of the initial events, also if later events come together with it. A watch that has
// ended begins again after a pause. The pauses are short again after all records were seen.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := event(watch.Bookmark, "end")
		watches := []*scriptedWatch{
			{err: errors.New("one")},
			{err: errors.New("two")},
			{batches: [][]storage.Event{{event(watch.Added, "a")}, {event(watch.Added, "b"), end, event(watch.Added, "c")}, {event(watch.Deleted, "a")}}, err: errors.New("three")},
			{batches: [][]storage.Event{{end}}},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		began := time.Now()
		note := func(format string, args ...any) {
			got = append(got, fmt.Sprintf("%v: ", time.Since(began))+fmt.Sprintf(format, args...))
		}
		open := func(context.Context) (storage.Watch, error) {
			w := watches[0]
			if watches = watches[1:]; w.batches == nil && w.err != nil {
				return nil, w.err
			}
			return w, nil
		}
		background.Follow(ctx, background.Doubling(time.Second, time.Minute), open, func(b background.Batch) {
			var keys []string
			for _, e := range b.Events {
				keys = append(keys, e.Record.Key)
			}
			note("%v %v", keys, b.Present)
			if len(watches) == 0 {
				cancel()
			}
		}, func(err error) { note("%v", err) })
		want := []string{
			"0s: one", "1s: two",
			"3s: [a] map[]", "3s: [b end] map[a:true b:true]", "3s: [c] map[]", "3s: [a] map[]", "3s: three",
			"4s: [end] map[]",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// A panic becomes an error with only its value. It is logged with the stack, as an error at most once a minute.
func TestPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		panics := background.NewPanics(zap.New(core), "work panicked")
		work := func(v any) (err error) {
			defer panics.Caught(&err)
			if v != nil {
				panic(v)
			}
			return errors.New("its own")
		}
		for v, want := range map[any]string{nil: "its own", "a mistake": "panic: a mistake"} {
			if err := work(v); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		_ = work(1)
		time.Sleep(time.Minute)
		_ = work(2)
		var levels []zapcore.Level
		for _, l := range logs.All() {
			levels = append(levels, l.Level)
			if l.Message != "work panicked" || l.ContextMap()["stack"] == nil {
				t.Errorf("%+v", l)
			}
		}
		if want := []zapcore.Level{zap.ErrorLevel, zap.DebugLevel, zap.ErrorLevel}; !slices.Equal(levels, want) {
			t.Errorf("logged as %v, want %v", levels, want)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if !background.Pause(ctx, time.Millisecond) || background.Pause(ctx, time.Minute) {
			t.Error("it does not tell whether ctx has ended")
		}
	})
}
