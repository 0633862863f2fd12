package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/goleak"
)

// loaders open the backends that keep revisions.
var loaders = map[string]func(t *testing.T) storage.Backend{
	"memory": func(*testing.T) storage.Backend { return memory.New(memory.Options{}) },
	"bolt": func(t *testing.T) storage.Backend {
		b, err := bolt.At(filepath.Join(t.TempDir(), "copy.db"))(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	},
}

// inMemory returns an empty backend that is closed with the test.
func inMemory(t *testing.T) *memory.Backend {
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	return b
}

// history makes n random changes of a backend.
func history(t *testing.T, b storage.Backend, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for range n {
		c := storage.Commit{Key: fmt.Sprintf("/registry/%c/%d", 'a'+rune(random.IntN(3)), random.IntN(n)), Expect: storage.AnyRevision}
		switch random.IntN(10) {
		case 0, 1:
			c.Delete = true
		case 2:
			c.TTL = time.Hour
			fallthrough
		default:
			c.Value = bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(200))
		}
		commit(t, b, c)
	}
}

// lasting returns what a backend has at its latest revision, except for values with a TTL, whose number is expiring.
func lasting(t *testing.T, b storage.Backend) (values map[string]storage.KV, expiring, revision int64) {
	t.Helper()
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]storage.KV{}
	for _, kv := range res.KVs {
		if kv.Expiring {
			expiring++
			continue
		}
		values[kv.Key] = kv
	}
	return values, expiring, res.Revision
}

// wantSame compares keys and values, and also the revisions if they are kept.
func wantSame(t *testing.T, got, want map[string]storage.KV, revisions bool) {
	t.Helper()
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("%d keys arrived, want %d", len(got), len(want))
	}
	for key, kv := range want {
		if g := got[key]; !bytes.Equal(g.Value, kv.Value) || revisions && g.Revision != kv.Revision {
			t.Errorf("%q is %q at %d, want %q at %d", key, g.Value, g.Revision, kv.Value, kv.Revision)
		}
	}
}

func TestCopyKeepsRevisions(t *testing.T) {
	for name, open := range loaders {
		for _, n := range []int{0, 1, 150, 3000} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				src, dst := inMemory(t), open(t)
				defer dst.Close()
				history(t, src, n)
				want, expiring, revision := lasting(t, src)
				res, err := storage.Copy(t.Context(), dst, src, storage.CopyOptions{MaxEmptyCommits: -1})
				if err != nil || res != (storage.CopyResult{Revision: revision, Values: int64(len(want)), Expiring: expiring}) {
					t.Fatalf("%+v, %v; want %d values, %d expiring at %d", res, err, len(want), expiring, revision)
				}
				got, _, now := lasting(t, dst)
				if wantSame(t, got, want, true); now != revision {
					t.Errorf("the store is at %d, want %d", now, revision)
				}
				goesOn(t, dst, revision)
			})
		}
	}
}

// A copy of a copy equals the original, in both directions.
func TestCopyThereAndBack(t *testing.T) {
	src := inMemory(t)
	history(t, src, 500)
	want, _, revision := lasting(t, src)
	var from storage.Backend = src
	for _, way := range []string{"bolt", "bolt", "memory", "memory"} {
		to := loaders[way](t)
		defer to.Close()
		res, err := storage.Copy(t.Context(), to, from, storage.CopyOptions{})
		if err != nil || res.Revision != revision || res.Values != int64(len(want)) {
			t.Fatalf("to %s: %+v, %v; want %d values at %d", way, res, err, len(want), revision)
		}
		got, _, _ := lasting(t, to)
		wantSame(t, got, want, true)
		from = to
	}
}

// goesOn checks that a copy has no history before a revision, and makes history after it.
func goesOn(t *testing.T, b storage.Backend, revision int64) {
	t.Helper()
	ctx := t.Context()
	if revision > 1 {
		if _, err := b.Get(ctx, "k", revision-1); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Get before the copy: %v, want ErrCompacted", err)
		}
		if _, err := b.Range(ctx, storage.Range{At: revision - 1}); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Range before the copy: %v, want ErrCompacted", err)
		}
		if f, err := b.Watch(ctx, storage.WatchRange{From: revision - 1}); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Watch from before the copy: %v, %v, want ErrCompacted", f, err)
		}
	}
	if _, err := b.Range(ctx, storage.Range{At: revision}); err != nil {
		t.Errorf("Range at the copy: %v", err)
	}
	f, err := b.Watch(ctx, storage.WatchRange{From: revision})
	if err != nil {
		t.Fatalf("Watch from the copy: %v", err)
	}
	defer f.Close()
	done, err := b.Commit(ctx, storage.Commit{Key: "next", Value: []byte("1")})
	if err != nil || done.Revision <= revision {
		t.Fatalf("the next commit: %+v, %v", done, err)
	}
	got, err := f.Next(ctx)
	if err != nil || len(got.Changes) != 1 || got.Changes[0].Revision != done.Revision {
		t.Errorf("the watch shows %+v, %v", got, err)
	}
}

// Clients continue with the resourceVersions that they have.
func TestCopyServesOldResourceVersions(t *testing.T) {
	for name, open := range loaders {
		t.Run(name, func(t *testing.T) {
			old, src := gadgets(t)
			rec := create(t, old, "a/x")
			last := create(t, old, "a/y")
			dst := open(t)
			defer dst.Close()
			if _, err := storage.Copy(t.Context(), dst, src, storage.CopyOptions{}); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, dst, gadgetOptions(t))
			if r, err := s.Get(t.Context(), "a/x", storage.Read{Match: storage.NotOlderThan, Revision: last.Revision}); err != nil || r.Revision != rec.Revision || r.Stale {
				t.Errorf("Get: %+v, %v; want revision %d", r, err, rec.Revision)
			}
			if p, err := s.List(t.Context(), storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: last.Revision}}); err != nil || p.Count != 2 {
				t.Errorf("List: %+v, %v", p, err)
			}
			w, err := s.Watch(t.Context(), storage.WatchOptions{From: last.Revision})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			next := create(t, s, "a/z")
			if events, err := w.Next(t.Context()); err != nil || len(events) != 1 || events[0].Record.Revision != next.Revision {
				t.Errorf("Watch: %+v, %v", events, err)
			}
		})
	}
}

// raised is a backend without Load, whose revision is raised by commits.
type raised struct {
	storage.Backend
	committing func(c storage.Commit) error // before each commit of a value; may be nil
}

func (r *raised) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if r.committing != nil {
		if err := r.committing(c); err != nil {
			return storage.CommitResult{}, err
		}
	}
	return r.Backend.Commit(ctx, c)
}

func (r *raised) Raise(ctx context.Context, revision, limit int64) error {
	res, err := r.Get(ctx, "raise", 0)
	if err != nil {
		return err
	}
	if needed := revision - res.Revision + 1; needed > limit {
		return &storage.RaiseError{Current: res.Revision, Wanted: revision, Needed: needed, Limit: limit}
	}
	for res.Revision <= revision {
		for _, remove := range []bool{false, true} {
			c := storage.Commit{Key: "raise", Expect: storage.AnyRevision, Delete: remove}
			done, err := r.Backend.Commit(ctx, c)
			if err != nil {
				return err
			}
			res.Revision = done.Revision
		}
	}
	return r.Backend.(storage.Compactor).Compact(ctx, res.Revision)
}

func TestCopyRaises(t *testing.T) {
	src, dst := inMemory(t), inMemory(t)
	history(t, src, 2000)
	want, expiring, revision := lasting(t, src)
	var writing, most, commits atomic.Int64
	to := &raised{Backend: dst, committing: func(c storage.Commit) error {
		commits.Add(1)
		if n := writing.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer writing.Add(-1)
		time.Sleep(10 * time.Microsecond)
		if c.Expect != 0 || c.TTL != 0 || c.Delete {
			return fmt.Errorf("an unconditional commit: %+v", c)
		}
		return nil
	}}
	res, err := storage.Copy(t.Context(), to, src, storage.CopyOptions{})
	if err != nil || res != (storage.CopyResult{Revision: revision, Values: int64(len(want)), Expiring: expiring}) {
		t.Fatalf("%+v, %v", res, err)
	}
	got, _, _ := lasting(t, dst)
	wantSame(t, got, want, false)
	for key, kv := range got {
		if kv.Revision <= revision {
			t.Errorf("%q is at %d, which the source has had", key, kv.Revision)
		}
	}
	if _, err := dst.Range(t.Context(), storage.Range{At: revision}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("at the source's revision: %v, want ErrCompacted", err)
	}
	if most.Load() > 32 || commits.Load() != res.Values {
		t.Errorf("%d commits, up to %d at the same time", commits.Load(), most.Load())
	}
}

func TestCopyRefusesTooManyEmptyCommits(t *testing.T) {
	src, dst := inMemory(t), inMemory(t)
	history(t, src, 50)
	_, _, revision := lasting(t, src)
	for _, most := range []int64{-1, 1, 20} {
		_, err := storage.Copy(t.Context(), &raised{Backend: dst}, src, storage.CopyOptions{MaxEmptyCommits: most})
		var few *storage.RaiseError
		if !errors.As(err, &few) || few.Wanted != revision || few.Limit != max(most, 0) {
			t.Fatalf("%v, want a RaiseError", err)
		}
		for _, want := range []string{"CopyOptions", fmt.Sprintf("etcdutl snapshot restore --bump-revision %d --mark-compacted", few.Needed)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
	if _, _, now := lasting(t, dst); now != 1 {
		t.Errorf("the destination was changed: it is at %d", now)
	}
}

// withoutPowers is a backend that is neither a Loader nor a Raiser.
type withoutPowers struct{ storage.Backend }

func TestCopyRefuses(t *testing.T) {
	src, dst := inMemory(t), inMemory(t)
	history(t, src, 300)
	used := inMemory(t)
	commit(t, used, storage.Commit{Key: "/registry/old", Value: []byte("1")})
	emptied := inMemory(t)
	commit(t, emptied, storage.Commit{Key: "a", Value: []byte("1")})
	commit(t, emptied, storage.Commit{Key: "a", Expect: storage.AnyRevision, Delete: true})
	closed := inMemory(t)
	closed.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context
		dst, src storage.Backend
		want     error
		text     string
	}{
		"itself":                    {dst: src, src: src, want: storage.ErrNotEmpty, text: "source"},
		"a used loader":             {dst: used, src: src, want: storage.ErrNotEmpty, text: `"/registry/old"`},
		"a used raiser":             {dst: &raised{Backend: used}, src: src, want: storage.ErrNotEmpty, text: `"/registry/old"`},
		"an emptied loader":         {dst: emptied, src: src, want: storage.ErrNotEmpty, text: "revision 3"},
		"no power":                  {dst: withoutPowers{dst}, src: src, want: storage.ErrUnsupported, text: "storage.Raiser"},
		"a closed source":           {dst: dst, src: closed, want: storage.ErrClosed, text: "read the source"},
		"a closed destination":      {dst: closed, src: src, want: storage.ErrClosed, text: "destination"},
		"a cancelled context":       {ctx: ended, dst: dst, src: src, want: context.Canceled},
		"no source":                 {dst: dst, text: "needed"},
		"no destination":            {src: src, text: "needed"},
		"a context that ends later": {dst: dst, src: &paged{Backend: src, before: cancelAt(2)}, want: context.Canceled},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		if p, ok := c.src.(*paged); ok {
			ctx, p.cancel = context.WithCancel(ctx)
		}
		_, err := storage.Copy(ctx, c.dst, c.src, storage.CopyOptions{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.want, c.text)
		}
	}
	if _, _, now := lasting(t, dst); now != 1 {
		t.Errorf("the destination was changed: it is at %d", now)
	}
}

// paged is a source that records how it is read page by page.
type paged struct {
	storage.Backend
	before  func(p *paged, page int)
	cancel  context.CancelFunc
	pages   int
	largest int // bytes of the largest page except the first
}

func (p *paged) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	p.pages++
	if p.before != nil {
		p.before(p, p.pages)
	}
	if r.Limit <= 0 {
		return storage.RangeResult{}, errors.New("everything was asked for at once")
	}
	res, err := p.Backend.Range(ctx, r)
	size := 0
	for _, kv := range res.KVs {
		size += len(kv.Value)
	}
	if p.pages > 1 {
		p.largest = max(p.largest, size)
	}
	return res, err
}

func cancelAt(page int) func(*paged, int) {
	return func(p *paged, n int) {
		if n == page {
			p.cancel()
		}
	}
}

func TestCopyReadsPages(t *testing.T) {
	src, dst := inMemory(t), inMemory(t)
	for i := range 300 {
		commit(t, src, storage.Commit{Key: fmt.Sprintf("%03d", i), Value: make([]byte, 100_000)})
	}
	p := &paged{Backend: src}
	if res, err := storage.Copy(t.Context(), dst, p, storage.CopyOptions{}); err != nil || res.Values != 300 {
		t.Fatalf("%+v, %v", res, err)
	}
	if p.pages < 4 || p.largest > 8<<20 {
		t.Errorf("%d pages, of up to %d bytes", p.pages, p.largest)
	}
}

// Values that are written to the source meanwhile are not copied: all pages have one revision.
func TestCopyIsOneState(t *testing.T) {
	src := inMemory(t)
	for i := range 500 {
		commit(t, src, storage.Commit{Key: fmt.Sprintf("%03d", i), Value: []byte("before")})
	}
	_, _, revision := lasting(t, src)
	change := func(p *paged, page int) {
		if page != 2 {
			return
		}
		for i := range 500 {
			commit(t, src, storage.Commit{Key: fmt.Sprintf("%03d", i), Expect: storage.AnyRevision, Value: []byte("after"), Delete: i%2 == 0})
		}
		commit(t, src, storage.Commit{Key: "new", Value: []byte("after")})
	}
	dst := inMemory(t)
	res, err := storage.Copy(t.Context(), dst, &paged{Backend: src, before: change}, storage.CopyOptions{})
	if err != nil || res.Revision != revision || res.Values != 500 {
		t.Fatalf("%+v, %v; want 500 values at %d", res, err, revision)
	}
	got, _, _ := lasting(t, dst)
	for key, kv := range got {
		if string(kv.Value) != "before" {
			t.Errorf("%q is %q", key, kv.Value)
		}
	}
}

func TestCopyOfACompactedSource(t *testing.T) {
	for name, dst := range map[string]storage.Backend{"loaded": inMemory(t), "raised": &raised{Backend: inMemory(t)}} {
		src := inMemory(t)
		history(t, src, 500)
		forget := func(p *paged, page int) {
			if page == 2 {
				commit(t, src, storage.Commit{Key: "later", Value: []byte("1")})
				_, _, now := lasting(t, src)
				if err := src.Compact(t.Context(), now); err != nil {
					t.Error(err)
				}
			}
		}
		_, err := storage.Copy(t.Context(), dst, &paged{Backend: src, before: forget}, storage.CopyOptions{})
		if !errors.Is(err, storage.ErrCompacted) || !strings.Contains(err.Error(), "copy again") {
			t.Errorf("%s: %v, want ErrCompacted and what to do", name, err)
		}
	}
}

// The first error ends the copy: nothing is written after it, and no goroutine is left.
func TestCopyEndsWithTheFirstError(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	src, dst := inMemory(t), inMemory(t)
	history(t, src, 2000)
	full := errors.New("the disk is full")
	var commits atomic.Int64
	to := &raised{Backend: dst, committing: func(storage.Commit) error {
		if commits.Add(1) > 20 {
			return full
		}
		return nil
	}}
	if _, err := storage.Copy(t.Context(), to, src, storage.CopyOptions{}); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	if n := commits.Load(); n > 20+2*32 {
		t.Errorf("%d commits were tried", n)
	}
	meddled := inMemory(t)
	to = &raised{Backend: meddled}
	to.committing = func(c storage.Commit) error {
		_, err := meddled.Commit(context.Background(), storage.Commit{Key: c.Key, Expect: storage.AnyRevision})
		return err
	}
	if _, err := storage.Copy(t.Context(), to, src, storage.CopyOptions{}); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("with another writer: %v, want ErrNotEmpty", err)
	}
}

// thief is a destination that loses the values it receives.
type thief struct{ storage.Backend }

func (thief) Raise(context.Context, int64, int64) error { return nil }
func (thief) Commit(context.Context, storage.Commit) (storage.CommitResult, error) {
	return storage.CommitResult{}, nil
}

func TestCopyCounts(t *testing.T) {
	src := inMemory(t)
	history(t, src, 20)
	if _, err := storage.Copy(t.Context(), thief{inMemory(t)}, src, storage.CopyOptions{}); err == nil || !strings.Contains(err.Error(), "the destination has 0 values") {
		t.Errorf("%v, want an error that compares counts", err)
	}
}
