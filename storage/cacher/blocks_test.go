package cacher_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/labels"
)

// maxBlock is the maximum number of records of a block.
const maxBlock = 27

// walked describes the blocks of a page.
type walked struct{ blocks, whole, found int }

// walkBlocks checks that the blocks of a page have its records, and that the forms of a block are made of these.
func walkBlocks(t testing.TB, p storage.Page) (w walked) {
	t.Helper()
	if p.Blocks == nil {
		return w
	}
	var all []string
	for b := range p.Blocks {
		var rows []string
		for r := range b.Records {
			rows = append(rows, fmt.Sprintf("%s@%d", r.Key, r.Revision))
		}
		if len(rows) != b.Count || b.Count == 0 || b.Count > maxBlock {
			t.Errorf("a block of %d has %q", b.Count, rows)
		}
		text, found := strings.Join(rows, " "), true
		kept, err := b.Forms.Get(t.Context(), "rows", func() ([]byte, error) {
			found = false
			return []byte(text), nil
		})
		if string(kept) != text || err != nil {
			t.Errorf("of %s was kept %s, %v", text, kept, err)
		}
		all = append(all, rows...)
		w.blocks++
		if b.Forms != nil {
			w.whole++
		}
		if found {
			w.found++
		}
	}
	if got := strings.Join(all, " "); got != shown(p) || len(all) != p.Count {
		t.Errorf("the blocks are %s, the records %s", got, shown(p))
	}
	return w
}

// blockRig is a filled cache of n gadgets in two namespaces.
func blockRig(t testing.TB, n int, o cacher.Options) *rig {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	r := newRig(t, b, o)
	for i := range n {
		r.put(blockKey(i, n), "red")
	}
	r.fill()
	return r
}

func blockKey(i, n int) string { return fmt.Sprintf("n%d/k%05d", 2*i/n, i) }

// A list without selectors has blocks. The forms of whole blocks are kept while their records stay.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const n = 1000
	forms := storage.NewFormCache(1 << 20)
	r := blockRig(t, n, cacher.Options{Forms: forms})
	first := walkBlocks(t, r.list(storage.ListOptions{}))
	if first.whole != first.blocks || first.blocks < n/maxBlock || first.blocks > n/10 || first.found != 0 {
		t.Fatalf("%+v", first)
	}
	again := walkBlocks(t, r.list(storage.ListOptions{}))
	if again != (walked{first.blocks, first.blocks, first.blocks}) {
		t.Errorf("%+v, want all of %+v found", again, first)
	}
	before := r.list(storage.ListOptions{})
	full := forms.Stats()
	r.seen(r.put(blockKey(n/3, n), "blue"))
	if now := forms.Stats(); now.Forms != full.Forms-1 || now.Bytes >= full.Bytes || now.Evictions != 0 {
		t.Errorf("a page was replaced: %+v, before it was %+v", now, full)
	}
	if old := walkBlocks(t, before); old.found != first.blocks-1 || old.whole != first.blocks-1 {
		t.Errorf("the state of before: %+v", old)
	}
	if now := forms.Stats(); now.Forms != full.Forms-1 {
		t.Errorf("readers of the state of before have kept something: %+v", now)
	}
	for i, found := range []int{first.blocks - 1, first.blocks} {
		if got := walkBlocks(t, r.list(storage.ListOptions{})); got.found != found || got.whole != first.blocks {
			t.Errorf("list %d after a change: %+v", i, got)
		}
	}
	r.Close()
	if now := forms.Stats(); now.Bytes != 0 || now.Forms != 0 {
		t.Errorf("a closed cache has %+v", now)
	}
}

// Blocks at the ends of a list may be parts, and then have no forms. A list with selectors has no blocks, and without a
// FormCache no block has forms.
func TestBlocksInPart(t *testing.T) {
	t.Parallel()
	const n = 400
	forms := storage.NewFormCache(1 << 20)
	r := blockRig(t, n, cacher.Options{Forms: forms})
	all := walkBlocks(t, r.list(storage.ListOptions{}))
	namespace := r.list(storage.ListOptions{Selection: storage.Selection{Namespace: "n1"}})
	if w := walkBlocks(t, namespace); namespace.Count != n/2 || w.whole != w.found || w.blocks-w.whole > 1 || w.whole < 5 {
		t.Errorf("a namespace: %+v", w)
	}
	o := storage.ListOptions{Limit: 90}
	pages, blocks, whole := 0, 0, 0
	for {
		p := r.list(o)
		w := walkBlocks(t, p)
		if w.found != w.whole || w.blocks-w.whole > 2 {
			t.Errorf("page %d: %+v", pages, w)
		}
		pages, blocks, whole = pages+1, blocks+w.blocks, whole+w.whole
		if o.Continue = p.Continue; o.Continue == "" {
			break
		}
	}
	if pages != 5 || blocks < all.blocks || whole < all.blocks-pages {
		t.Errorf("%d pages have %d blocks, %d whole; there are %d", pages, blocks, whole, all.blocks)
	}
	one := r.list(storage.ListOptions{Selection: storage.Selection{Namespace: "n0", Name: "k00000"}})
	if w := walkBlocks(t, one); one.Count != 1 || w.whole != 0 {
		t.Errorf("one record: %+v", w)
	}
	for _, s := range []storage.Selection{colored("red"), {Labels: labels.SelectorFromSet(labels.Set{"a": "b"})}, {Name: "k00001"}} {
		if p := r.list(storage.ListOptions{Selection: s}); p.Blocks != nil {
			t.Errorf("%+v has blocks", s)
		}
	}
	empty := r.list(storage.ListOptions{Selection: storage.Selection{Namespace: "none"}})
	if w := walkBlocks(t, empty); w.blocks != 0 {
		t.Errorf("no records: %+v", w)
	}
	r.Close()
	r.open(cacher.Options{})
	r.fill()
	if w := walkBlocks(t, r.list(storage.ListOptions{})); w.blocks < n/maxBlock || w.whole != 0 {
		t.Errorf("without a FormCache: %+v", w)
	}
}

// The blocks of an older state that was made for a reader keep nothing, and do not change what is kept for the latest state.
func TestBlocksOfThePast(t *testing.T) {
	t.Parallel()
	const n = 300
	forms := storage.NewFormCache(1 << 20)
	r := blockRig(t, n, cacher.Options{Forms: forms})
	var revisions []int64
	for i := range 60 {
		revisions = append(revisions, r.put(blockKey(i*7%n, n), "blue"))
		if i%10 == 3 {
			r.drop(blockKey(200+i, n))
		}
	}
	r.seen(r.now())
	latest := walkBlocks(t, r.list(storage.ListOptions{}))
	full := forms.Stats()
	for _, revision := range revisions[:59] {
		walkBlocks(t, r.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: revision}}))
	}
	if now := forms.Stats(); now.Forms != full.Forms || now.Bytes != full.Bytes {
		t.Errorf("the past has kept something: %+v, before it was %+v", now, full)
	}
	if w := walkBlocks(t, r.list(storage.ListOptions{})); w.found != latest.blocks {
		t.Errorf("the past has dropped something: %+v of %+v", w, latest)
	}
}

// A cache that is filled anew keeps no forms of the earlier state, and has freed them.
func TestBlocksOfAVoidCache(t *testing.T) {
	t.Parallel()
	forms := storage.NewFormCache(1 << 20)
	voids := make(chan struct{}, 100)
	r := blockRig(t, 200, cacher.Options{Forms: forms, Hooks: cacher.Hooks{Void: func(error) { voids <- struct{}{} }}})
	before := r.list(storage.ListOptions{})
	walkBlocks(t, before)
	r.source.fail(&storage.ExpiredError{Revision: 1})
	<-voids
	if now := forms.Stats(); now.Bytes != 0 || now.Forms != 0 {
		t.Errorf("a void cache has %+v", now)
	}
	if w := walkBlocks(t, before); w.whole != 0 {
		t.Errorf("readers of the cache of before keep something: %+v", w)
	}
	r.fill()
	if w := walkBlocks(t, r.list(storage.ListOptions{})); w.found != 0 || w.whole == 0 {
		t.Errorf("the new cache: %+v", w)
	}
}

// Many goroutines list while others write, with a budget that is too small: forms always match their records.
func TestBlocksRace(t *testing.T) {
	t.Parallel()
	const n, writes = 600, 1500
	forms := storage.NewFormCache(20_000)
	r := blockRig(t, n, cacher.Options{Forms: forms, WindowBytes: 64 << 10})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				o := storage.ListOptions{At: storage.Read{Match: storage.Any}}
				if p, err := r.List(r.ctx, o); err == nil && rnd.IntN(3) == 0 {
					o.At = storage.Read{Match: storage.Exact, Revision: p.Revision - rnd.Int64N(50)}
				} else if rnd.IntN(3) == 0 {
					o.Namespace = "n1"
				}
				p, err := r.List(r.ctx, o)
				if expired := (*storage.ExpiredError)(nil); err != nil && !errors.As(err, &expired) {
					t.Error(err)
				}
				walkBlocks(t, p)
			}
		})
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	gone := map[string]bool{}
	for range writes {
		key := blockKey(rnd.IntN(n), n)
		if rnd.IntN(3) == 0 && !gone[key] {
			r.drop(key)
			gone[key] = true
			continue
		}
		r.put(key, "green")
		delete(gone, key)
	}
	close(done)
	readers.Wait()
	if s := forms.Stats(); s.Hits == 0 || s.Misses == 0 {
		t.Errorf("nothing was tested: %+v", s)
	}
	r.Close()
	if s := forms.Stats(); s.Bytes != 0 || s.Forms != 0 {
		t.Errorf("left is %+v", s)
	}
}
