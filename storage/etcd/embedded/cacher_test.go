package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestInterfaceOfACache: a cache over a store in etcd passes the tests of a store.
func TestInterfaceOfACache(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	tenant := tenants(s.Endpoints())
	storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := tenant(t)
		store, err := storage.NewStore(b, o)
		if err != nil {
			t.Fatal(err)
		}
		return cacheOf(t, store, cacher.Options{
			ReadWait: o.ReadWait, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app", "on"},
		}), b
	})
}

func cacheOf(t testing.TB, below storage.Interface, o cacher.Options) *cacher.Cacher {
	t.Helper()
	o.Namespaced = true
	c, err := cacher.New(below, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// gadgets returns the store of a kind of gadgets in a backend.
func gadgets(t testing.TB, b storage.Backend, kind string) *storage.Store {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.Prefix += "-" + kind
	s, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// putGadget creates a gadget, or makes it larger.
func putGadget(ctx context.Context, s storage.Interface, key string) (storage.Record, error) {
	ns, name, _ := strings.Cut(key, "/")
	r, err := s.Create(ctx, key, &storagetest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, storage.WriteOptions{})
	if !errors.Is(err, storage.ErrExists) {
		return r, err
	}
	return s.Update(ctx, key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g, ok := obj.(*storagetest.Gadget)
		if !ok {
			return storage.Outcome{}, fmt.Errorf("the object is a %T", obj)
		}
		g.Spec.Size++
		return storage.Outcome{Object: g}, nil
	})
}

func mustPutGadget(t testing.TB, s storage.Interface, key string) int64 {
	t.Helper()
	r, err := putGadget(bounded(t), s, key)
	if err != nil {
		t.Fatal(err)
	}
	return r.Revision
}

// listed returns a list as text, and its revision.
func listed(ctx context.Context, s storage.Interface, at storage.Read) (string, int64, error) {
	p, err := s.List(ctx, storage.ListOptions{At: at})
	if err != nil {
		return "", 0, err
	}
	var all []string
	for r := range p.Records {
		all = append(all, fmt.Sprintf("%s@%d", r.Key, r.Revision))
	}
	return strings.Join(all, " "), p.Revision, nil
}

// A write of one server is at once visible in another server's cache, during writes to this kind and to others.
func TestCachesOfTwoServers(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Options{})
	o := etcd.Options{Endpoints: server.Endpoints(), Prefix: "/two"}
	here, there := open(t, o), open(t, o)
	busyHere, busyThere := cacheOf(t, gadgets(t, here, "busy"), cacher.Options{}), cacheOf(t, gadgets(t, there, "busy"), cacher.Options{})
	var fromBelow atomic.Int64
	idleThere := cacheOf(t, gadgets(t, there, "quiet"), cacher.Options{Hooks: cacher.Hooks{List: func(s cacher.Source) {
		if s == cacher.FromStorage {
			fromBelow.Add(1)
		}
	}}})
	still := mustPutGadget(t, gadgets(t, here, "quiet"), "a/still")
	ctx := bounded(t)
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	var all sync.WaitGroup
	for client := range 6 {
		all.Go(func() {
			key := fmt.Sprintf("n/k%d", client)
			for range rounds {
				r, err := putGadget(ctx, busyHere, key)
				if err != nil {
					t.Errorf("writing: %v", err)
					return
				}
				if got, err := busyThere.Get(ctx, key, storage.Read{}); err != nil || got.Revision != r.Revision {
					t.Errorf("Get = %d, %v; want revision %d", got.Revision, err, r.Revision)
					return
				}
				text, at, err := listed(ctx, busyThere, storage.Read{})
				if err != nil || at < r.Revision || !strings.Contains(text, fmt.Sprintf("%s@%d", key, r.Revision)) {
					t.Errorf("List = %q at %d, %v; want %s@%d in it", text, at, err, key, r.Revision)
					return
				}
				text, at, err = listed(ctx, idleThere, storage.Read{})
				if err != nil || at < r.Revision || text != fmt.Sprintf("a/still@%d", still) {
					t.Errorf("List of the quiet kind = %q at %d, %v; want it at %d or later", text, at, err, r.Revision)
					return
				}
			}
		})
	}
	all.Wait()
	if n := fromBelow.Load(); n > 0 {
		t.Errorf("%d lists of the quiet kind were answered by etcd", n)
	}
}

// counting is a storage.Source that counts and delays the revision reads of consistent reads.
type counting struct {
	*storage.Store
	revisions, marks atomic.Int64
}

func (c *counting) Revision(ctx context.Context) (int64, error) {
	c.revisions.Add(1)
	time.Sleep(10 * time.Millisecond) // like an etcd with a larger latency
	return c.Store.Revision(ctx)
}

func (c *counting) Follow(ctx context.Context, from int64) (storage.Following, error) {
	f, err := c.Store.Follow(ctx, from)
	return &countingFeed{f, c}, err
}

type countingFeed struct {
	storage.Following
	c *counting
}

func (f *countingFeed) RequestProgress() {
	f.c.marks.Add(1)
	f.Following.RequestProgress()
}

// A hundred concurrent readers cause hardly more requests to etcd than one.
func TestConsistentReadsAreShared(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Options{})
	b := open(t, etcd.Options{Endpoints: server.Endpoints()})
	below := &counting{Store: gadgets(t, b, "quiet")}
	c, other := cacheOf(t, below, cacher.Options{}), gadgets(t, b, "busy")
	ctx := bounded(t)
	if _, _, err := listed(ctx, c, storage.Read{}); err != nil {
		t.Fatal(err)
	}
	below.revisions.Store(0)
	below.marks.Store(0)
	const rounds, readers = 20, 100
	for range rounds {
		now := mustPutGadget(t, other, "a/x") // so that the cache has to ask how far it is
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if _, at, err := listed(ctx, c, storage.Read{}); err != nil || at < now {
					t.Errorf("List at %d, %v; want it at %d or later", at, err, now)
				}
			})
		}
		all.Wait()
	}
	revisions, marks := below.revisions.Load(), below.marks.Load()
	t.Logf("%d lists: the revision was read %d times, and %d progress marks asked for", rounds*readers, revisions, marks)
	if most := int64(rounds * readers / 5); revisions > most || marks > most || marks < 1 {
		t.Errorf("the revision was read %d times, and %d progress marks asked for; want at most %d", revisions, marks, most)
	}
}

// A server that starts again finds what another server has written meanwhile.
func TestCacheRestart(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Options{})
	o := etcd.Options{Endpoints: server.Endpoints(), Prefix: "/restart"}
	b := open(t, o)
	first, other := cacheOf(t, gadgets(t, b, "x"), cacher.Options{}), gadgets(t, open(t, o), "x")
	ctx := bounded(t)
	w, err := first.Watch(ctx, storage.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := mustPutGadget(t, first, "a/0")
	if events, err := w.Next(ctx); err != nil || events[0].Record.Revision != last {
		t.Fatalf("Next: %+v, %v", events, err)
	}
	first.Close()
	var revisions []int64
	for i := range 30 {
		revisions = append(revisions, mustPutGadget(t, other, fmt.Sprint("a/", i%4)))
	}
	var from atomic.Int64
	second := cacheOf(t, gadgets(t, b, "x"), cacher.Options{Hooks: cacher.Hooks{List: func(s cacher.Source) { from.Store(int64(s)) }}})
	for i, at := range append([]int64{last}, revisions...) {
		if got := follow(t, second, at, len(revisions)-i); !slices.Equal(got, revisions[i:]) {
			t.Fatalf("a watch from %d shows %d, want %d", at, got, revisions[i:])
		}
		exactly := storage.Read{Match: storage.Exact, Revision: at}
		want, _, err := listed(ctx, other, exactly)
		if err != nil {
			t.Fatal(err)
		}
		if got, revision, err := listed(ctx, second, exactly); err != nil || got != want || revision != at || cacher.Source(from.Load()) != cacher.FromHistory {
			t.Errorf("the state at %d is %q at %d, from %v, %v; want %q", at, got, revision, cacher.Source(from.Load()), err, want)
		}
	}
}

// follow returns the revisions of n events after a revision.
func follow(t *testing.T, s storage.Interface, from int64, n int) (got []int64) {
	t.Helper()
	ctx := bounded(t)
	w, err := s.Watch(ctx, storage.WatchOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for len(got) < n {
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type != watch.Bookmark {
				got = append(got, e.Record.Revision)
			}
		}
	}
	return got
}
