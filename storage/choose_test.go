package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// byColor chooses the records of a color. It fails for records of the color bad, and counts what it gets.
type byColor struct {
	color, bad     string
	calls, largest atomic.Int64
}

func (b *byColor) Choose(ctx context.Context, candidates []storage.Candidate, _ bool) ([]bool, error) {
	b.calls.Add(1)
	b.largest.Store(max(b.largest.Load(), int64(len(candidates))))
	var out []bool
	for _, c := range candidates {
		color := c.Record.Fields.Get("spec.color")
		if color == b.bad {
			return out, fmt.Errorf("no verdict on %s: %w", c.Record.Key, errBad)
		}
		out = append(out, color == b.color)
	}
	return out, ctx.Err()
}

var errBad = errors.New("a bad color")

// colored returns a selection of a color, in the way of a selector.
func colored(color string) storage.Selection {
	return storage.Selection{Fields: fields.OneTermEqualSelector("spec.color", color)}
}

// choosable returns storages, of which each has the objects of the first.
func choosable(t *testing.T) map[string]storage.Interface {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	store := newStore(t, b, gadgetOptions(t))
	c, err := cacher.New(store, cacher.Options{Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return map[string]storage.Interface{"store": store, "cache": c}
}

func recolor(color string) storage.ChangeFunc {
	return func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g := obj.(*storagetest.Gadget)
		g.Spec.Color = color
		g.Spec.Size++
		return storage.Outcome{Object: g}, nil
	}
}

// change makes a random change of one of a few objects.
func change(t *testing.T, s storage.Interface, r *rand.Rand) {
	t.Helper()
	key := fmt.Sprintf("%s/%02d", []string{"a", "b"}[r.IntN(2)], r.IntN(25))
	color := []string{"red", "blue", "green"}[r.IntN(3)]
	var err error
	switch _, found := s.Get(t.Context(), key, storage.Read{}); {
	case errors.Is(found, storage.ErrNotFound):
		g := gadget(key)
		g.Spec.Color = color
		_, err = s.Create(t.Context(), key, g, storage.WriteOptions{})
	case r.IntN(4) == 0:
		_, err = s.Update(t.Context(), key, storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
			return storage.Outcome{Delete: true}, nil
		})
	default:
		_, err = s.Update(t.Context(), key, storage.WriteOptions{}, recolor(color))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A Chooser that does what a selector does has the same lists, page by page, and the same watches.
func TestChoosersAndSelectorsAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	all := choosable(t)
	for range 60 {
		change(t, all["store"], r)
	}
	for step := range 200 {
		began, err := all["store"].Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range r.IntN(20) {
			change(t, all["store"], r)
		}
		now, err := all["store"].Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range all {
			if _, err := s.List(t.Context(), storage.ListOptions{}); err != nil { // a cache then has the changes, also for Any
				t.Fatal(err)
			}
			plain, chosen := colored("red"), storage.Selection{Chooser: &byColor{color: "red"}}
			if r.IntN(2) == 0 {
				plain.Namespace, chosen.Namespace = "a", "a"
			}
			o := storage.ListOptions{Limit: int64(r.IntN(6))}
			switch r.IntN(4) {
			case 0:
				o.At = storage.Read{Match: storage.Any}
			case 1:
				o.At = storage.Read{Match: storage.Exact, Revision: began}
			case 2:
				o.At = storage.Read{Match: storage.NotOlderThan, Revision: now}
			}
			if r.IntN(2) == 0 {
				o.Portion = 2000
			}
			if want, got := pagesOf(t, s.List, o, plain), pagesOf(t, listOf(s), o, chosen); got != want {
				t.Fatalf("step %d: %s: %+v:\n%s\nwant\n%s", step, name, o, got, want)
			}
			w := storage.WatchOptions{From: began}
			if r.IntN(2) == 0 {
				w = storage.WatchOptions{Initial: true}
			}
			if want, got := changes(t, s.Watch, w, plain, now), changes(t, watchOf(s), w, chosen, now); got != want {
				t.Fatalf("step %d: %s: %+v:\n%s\nwant\n%s", step, name, w, got, want)
			}
		}
	}
}

func listOf(s storage.Interface) func(context.Context, storage.ListOptions) (storage.Page, error) {
	return func(ctx context.Context, o storage.ListOptions) (storage.Page, error) {
		return storage.ListChosen(ctx, s, o, true)
	}
}

func watchOf(s storage.Interface) func(context.Context, storage.WatchOptions) (storage.Watch, error) {
	return func(ctx context.Context, o storage.WatchOptions) (storage.Watch, error) {
		return storage.WatchChosen(ctx, s, o)
	}
}

// pagesOf returns the pages of a list as text.
func pagesOf(t *testing.T, list func(context.Context, storage.ListOptions) (storage.Page, error), o storage.ListOptions, sel storage.Selection) string {
	t.Helper()
	o.Selection = sel
	var out strings.Builder
	for {
		count := 0
		page, err := list(t.Context(), o)
		for err == nil {
			n := 0
			for rec := range page.Records {
				fmt.Fprintf(&out, "%s@%d ", rec.Key, rec.Revision)
				n++
			}
			if n != page.Count {
				t.Errorf("%d records, and the count is %d", n, page.Count)
			}
			if count += n; page.Next == nil {
				break
			}
			page, err = page.Next(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "= %d of %d, more %t, remaining %t\n", count, page.Revision, page.Continue != "", page.Remaining != nil)
		if page.Continue == "" {
			return out.String()
		}
		o.Continue, o.At = page.Continue, storage.Read{}
	}
}

// changes returns the events of a watch up to a revision as text.
func changes(t *testing.T, begin func(context.Context, storage.WatchOptions) (storage.Watch, error), o storage.WatchOptions, sel storage.Selection, until int64) string {
	t.Helper()
	o.Selection = sel
	w, err := begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.RequestProgress()
	var out strings.Builder
	for {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type != watch.Bookmark || e.InitialEnd {
				fmt.Fprintf(&out, "%s %s@%d %s %t\n", e.Type, e.Record.Key, e.Record.Revision, e.Record.Body.Field("spec.color"), e.InitialEnd)
			}
			if e.Record.Revision >= until && e.Type == watch.Bookmark {
				return out.String()
			}
		}
		w.RequestProgress()
	}
}

// A record on which there is no verdict fails a list that comes to it, and ends a watch after the events before it.
func TestAChooserFails(t *testing.T) {
	t.Parallel()
	all := choosable(t)
	for i, color := range []string{"red", "red", "yellow", "red"} {
		g := gadget(fmt.Sprint("a/", i))
		g.Spec.Color = color
		if _, err := all["store"].Create(t.Context(), fmt.Sprint("a/", i), g, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sel := storage.Selection{Chooser: &byColor{color: "red", bad: "yellow"}}
	for name, s := range all {
		for limit, fails := range map[int64]bool{0: true, 1: false, 2: false, 3: true} {
			page, err := storage.ListChosen(t.Context(), s, storage.ListOptions{Selection: sel, Limit: limit}, true)
			if fails != errors.Is(err, errBad) || !fails && (err != nil || page.Count != int(limit) || page.Continue == "") {
				t.Errorf("%s: limit %d: %+v, %v", name, limit, page, err)
			}
		}
		w, err := storage.WatchChosen(t.Context(), s, storage.WatchOptions{Selection: sel, Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		var keys []string
		for err == nil {
			var events []storage.Event
			events, err = w.Next(t.Context())
			for _, e := range events {
				keys = append(keys, e.Record.Key)
			}
		}
		if !errors.Is(err, errBad) || fmt.Sprint(keys) != "[a/0 a/1]" {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
		if _, again := w.Next(t.Context()); !errors.Is(again, errBad) {
			t.Errorf("%s: %v", name, again)
		}
	}
}

// short has a verdict less than there are records, and no error.
type short struct{}

func (short) Choose(_ context.Context, candidates []storage.Candidate, _ bool) ([]bool, error) {
	return make([]bool, len(candidates)-1), nil
}

// A Chooser without a verdict on each record fails lists and watches: no record is left out silently.
func TestVerdictsAreMissing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watch that drops records would wait
	defer cancel()
	all := choosable(t)
	if _, err := all["store"].Create(ctx, "a/1", gadget("a/1"), storage.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, s := range all {
		sel := storage.Selection{Chooser: short{}}
		if page, err := storage.ListChosen(ctx, s, storage.ListOptions{Selection: sel}, true); err == nil {
			t.Errorf("%s: %+v", name, page)
		}
		w, err := storage.WatchChosen(ctx, s, storage.WatchOptions{Selection: sel, Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for err == nil {
			var events []storage.Event
			if events, err = w.Next(ctx); len(events) > 0 {
				t.Errorf("%s: %v", name, events)
			}
		}
		if ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A list chooses from many records at once, and from a bounded number of them. A short page looks at few.
func TestListsChooseFromManyRecords(t *testing.T) {
	t.Parallel()
	all := choosable(t)
	for i := range 1300 {
		g := gadget(fmt.Sprintf("a/%04d", i))
		g.Spec.Color = "red"
		if _, err := all["store"].Create(t.Context(), fmt.Sprintf("a/%04d", i), g, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range all {
		for _, c := range []struct {
			limit                   int64
			color                   string
			count, calls, atMostIn1 int64
		}{{0, "red", 1300, 3, 500}, {2, "red", 2, 1, 16}, {2, "blue", 0, 8, 500}} {
			by := &byColor{color: c.color}
			page, err := storage.ListChosen(t.Context(), s, storage.ListOptions{Selection: storage.Selection{Chooser: by}, Limit: c.limit}, true)
			if err != nil || int64(page.Count) != c.count || by.calls.Load() > c.calls || by.largest.Load() > c.atMostIn1 {
				t.Errorf("%s: %+v: %d records, %v; %d calls, at most %d records", name, c, page.Count, err, by.calls.Load(), by.largest.Load())
			}
		}
	}
}

// A storage refuses a Chooser that it does not apply.
func TestAStorageRefusesAChooser(t *testing.T) {
	t.Parallel()
	sel := storage.Selection{Chooser: &byColor{}}
	for name, s := range choosable(t) {
		if _, err := s.List(t.Context(), storage.ListOptions{Selection: sel}); !errors.Is(err, storage.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Watch(t.Context(), storage.WatchOptions{Selection: sel}); !errors.Is(err, storage.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
