package embedded_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/reader"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// readerOf makes a cache of a kind of gadgets, and a reader of it.
func readerOf(t *testing.T, o etcd.Options, kind string, co cacher.Options) (*cacher.Cacher, *reader.Reader) {
	t.Helper()
	c := cacheOf(t, gadgets(t, open(t, o), kind), co)
	r, err := reader.New(c, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fill(bounded(t)); err != nil {
		t.Fatal(err)
	}
	return c, r
}

// TestReader: a Cached read shows what was acknowledged before, during writes to other kinds. A kind that is not written is
// read at the revision of one that is written, from memory.
func TestReader(t *testing.T) {
	t.Parallel()
	server := start(t, embedded.Options{})
	o := etcd.Options{Endpoints: server.Endpoints(), Prefix: "/readers"}
	mustPutGadget(t, gadgets(t, open(t, o), "idle"), "ns/still")
	busy, busyReader := readerOf(t, o, "busy", cacher.Options{})
	var below sync.Map
	_, idleReader := readerOf(t, o, "idle", cacher.Options{Hooks: cacher.Hooks{List: func(s cacher.Source) {
		if s == cacher.FromStorage {
			below.Store(s, true)
		}
	}}})
	ctx := bounded(t)
	var all sync.WaitGroup
	for client := range 4 {
		all.Go(func() {
			for range 50 {
				name := fmt.Sprint("k", client)
				record, err := putGadget(ctx, busy, "ns/"+name)
				if err != nil {
					t.Errorf("writing: %v", err)
					return
				}
				obj, err := busyReader.Get(ctx, "ns", name, runtime.Freshness{})
				if g, ok := obj.(*storagetest.Gadget); err != nil || !ok || g.ResourceVersion != fmt.Sprint(record.Revision) {
					t.Errorf("Get: %v, %v, want revision %d", obj, err, record.Revision)
					return
				}
				at := max(busyReader.Changed().Revision, idleReader.Changed().Revision)
				if at < record.Revision {
					t.Errorf("the newest revision is %d, and %d was acknowledged", at, record.Revision)
				}
				one, err := busyReader.List(ctx, runtime.Query{At: runtime.Exactly(at)})
				if err != nil || one.Revision != at || len(one.Items) < 1 {
					t.Errorf("List of the busy kind: %d objects at %d, %v; want it at %d", len(one.Items), one.Revision, err, at)
				}
				other, err := idleReader.List(ctx, runtime.Query{At: runtime.Exactly(at)})
				if err != nil || other.Revision != at || len(other.Items) != 1 {
					t.Errorf("List of the idle kind: %d objects at %d, %v; want one at %d", len(other.Items), other.Revision, err, at)
				}
			}
		})
	}
	all.Wait()
	below.Range(func(any, any) bool {
		t.Error("the idle kind was read from etcd")
		return false
	})
	written := mustPutGadget(t, gadgets(t, open(t, o), "idle"), "ns/other") // by another server
	l, err := idleReader.List(ctx, runtime.Query{At: runtime.AtLeast(written)})
	if err != nil || len(l.Items) != 2 {
		t.Errorf("after a write of another server: %d objects, %v", len(l.Items), err)
	}
	if c, err := idleReader.Changes(ctx, written-1, runtime.Freshness{}); err != nil || c.Reset || len(c.All) != 1 || !strings.HasPrefix(c.All[0].Name, "other") {
		t.Errorf("its changes: %+v, %v", c, err)
	}
}
