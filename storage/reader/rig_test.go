package reader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/reader"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gadgets are the objects of one kind: their cache and a reader of it.
type gadgets struct {
	*reader.Reader
	cache *cacher.Cacher
	store *storage.Store
}

// backends are those that the tests run on.
var backends = map[string]func(t testing.TB) storage.Backend{
	"memory": func(t testing.TB) storage.Backend {
		b := memory.New(memory.Options{})
		t.Cleanup(func() { b.Close() })
		return b
	},
	"bolt": func(t testing.TB) storage.Backend {
		b, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{Sync: bolt.SyncInterval})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	},
}

// storeOf returns a store of gadgets with its own plural.
func storeOf(t testing.TB, b storage.Backend, plural string) *storage.Store {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.Prefix = "/registry/test.example.com/" + plural
	s, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open makes a cache of gadgets and a reader. lag is the maximum delay with which the cache receives changes.
func open(t testing.TB, b storage.Backend, plural string, lag time.Duration, co cacher.Options, ro reader.Options) *gadgets {
	t.Helper()
	g := &gadgets{store: storeOf(t, b, plural)}
	var below storage.Interface = g.store
	if lag > 0 {
		below = &late{g.store, lag}
	}
	co.Namespaced = true
	var err error
	if g.cache, err = cacher.New(below, co); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.cache.Close)
	if g.Reader, err = reader.New(g.cache, ro); err != nil {
		t.Fatal(err)
	}
	return g
}

// late is a storage.Source whose feeds deliver changes with a delay.
type late struct {
	*storage.Store
	most time.Duration
}

// Follow implements storage.Source.
func (l *late) Follow(ctx context.Context, from int64) (storage.Following, error) {
	f, err := l.Store.Follow(ctx, from)
	return &lateFeed{f, l.most}, err
}

type lateFeed struct {
	storage.Following
	most time.Duration
}

// Next implements storage.Following.
func (f *lateFeed) Next(ctx context.Context) (storage.Moves, error) {
	m, err := f.Following.Next(ctx)
	select {
	case <-time.After(rand.N(f.most)):
	case <-ctx.Done():
	}
	return m, err
}

// fill makes the cache fill.
func (g *gadgets) fill(t testing.TB) {
	t.Helper()
	if err := g.cache.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// gadget returns a gadget without a color.
func gadget(key string) *storagetest.Gadget {
	ns, name, _ := strings.Cut(key, "/")
	return &storagetest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// put creates a gadget or changes its color, through s, and returns the revision of the write.
func put(ctx context.Context, s storage.Interface, key, color string) (int64, error) {
	made := gadget(key)
	made.Labels, made.Spec.Color = map[string]string{"color": color}, color
	record, err := s.Create(ctx, key, made, storage.WriteOptions{})
	if !errors.Is(err, storage.ErrExists) {
		return record.Revision, err
	}
	record, err = s.Update(ctx, key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g, ok := obj.(*storagetest.Gadget)
		if !ok {
			return storage.Outcome{}, fmt.Errorf("the object is a %T", obj)
		}
		g.Spec.Color, g.Labels = color, map[string]string{"color": color}
		return storage.Outcome{Object: g}, nil
	})
	return record.Revision, err
}

// remove deletes a gadget through s, and returns the revision of the deletion.
func remove(ctx context.Context, s storage.Interface, key string) (int64, error) {
	record, err := s.Update(ctx, key, storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
		return storage.Outcome{Delete: true}, nil
	})
	return record.Revision, err
}

func mustPut(t testing.TB, s storage.Interface, key, color string) int64 {
	t.Helper()
	revision, err := put(t.Context(), s, key, color)
	if err != nil {
		t.Fatalf("writing %q: %v", key, err)
	}
	return revision
}

func mustRemove(t testing.TB, s storage.Interface, key string) int64 {
	t.Helper()
	revision, err := remove(t.Context(), s, key)
	if err != nil {
		t.Fatalf("deleting %q: %v", key, err)
	}
	return revision
}

// text returns an object as "namespace/name=color@revision".
func text(obj runtime.Object) string {
	g, ok := obj.(*storagetest.Gadget)
	if !ok {
		return fmt.Sprintf("a %T", obj)
	}
	return fmt.Sprintf("%s/%s=%s@%s", g.Namespace, g.Name, g.Spec.Color, g.ResourceVersion)
}

// texts returns a list as text.
func texts(items []runtime.Object) string {
	var all []string
	for _, obj := range items {
		all = append(all, text(obj))
	}
	return strings.Join(all, " ")
}

// revisionOf returns the revision of an object.
func revisionOf(obj runtime.Object) int64 {
	g, ok := obj.(*storagetest.Gadget)
	if !ok {
		return -1
	}
	n, err := strconv.ParseInt(g.ResourceVersion, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// index is the state that a caller of Changes keeps.
type index struct {
	revision int64
	objects  map[string]string // by key
	resets   int
}

// apply makes the changes; a Reset begins anew.
func (x *index) apply(c runtime.Changes[runtime.Object]) {
	if c.Reset {
		x.objects, x.resets = map[string]string{}, x.resets+1
	}
	for _, one := range c.All {
		key := one.Namespace + "/" + one.Name
		if one.Deleted {
			delete(x.objects, key)
		} else {
			x.objects[key] = text(one.Object)
		}
	}
	x.revision = c.Revision
}

// String returns the index in the format of texts.
func (x *index) String() string {
	var all []string
	keys := make([]string, 0, len(x.objects))
	for key := range x.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		all = append(all, x.objects[key])
	}
	return strings.Join(all, " ")
}
