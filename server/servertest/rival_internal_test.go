package servertest

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
)

// powers are the optional powers of a storage.Backend, and of a storage.Feed.
func powers() (ofBackend, ofFeed map[string]reflect.Type) {
	return map[string]reflect.Type{
			"Compactor": reflect.TypeFor[storage.Compactor](),
			"Historian": reflect.TypeFor[storage.Historian](),
			"Replayer":  reflect.TypeFor[storage.Replayer](),
			"Stater":    reflect.TypeFor[storage.Stater](),
			"Knower":    reflect.TypeFor[storage.Knower](),
			"Holder":    reflect.TypeFor[storage.Holder](),
			"Healther":  reflect.TypeFor[storage.Healther](),
			"Readier":   reflect.TypeFor[storage.Readier](),
			"Loader":    reflect.TypeFor[storage.Loader](),
			"Raiser":    reflect.TypeFor[storage.Raiser](),
		}, map[string]reflect.Type{
			"Waker": reflect.TypeFor[storage.Waker](),
		}
}

// The powers that the package storage tells of are those that this test knows.
func TestPowersAreKnown(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "storage", "backend.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ofBackend, ofFeed := powers()
	told := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if _, ok := spec.Type.(*ast.InterfaceType); !ok {
				continue
			}
			doc := g.Doc.Text()
			told[spec.Name.Name] = doc
			if name := spec.Name.Name; name != "Backend" && name != "Feed" && ofBackend[name] == nil && ofFeed[name] == nil {
				t.Errorf("storage.%s may be a power of a backend: give it to contested, and to this test", name)
			}
		}
	}
	for _, m := range regexp.MustCompile(`\[([A-Z]\w+)\]`).FindAllStringSubmatch(told["Backend"], -1) {
		if ofBackend[m[1]] == nil && m[1] != "ErrCompacted" {
			t.Errorf("storage.Backend may be a %s: give contested that power, and this test", m[1])
		}
	}
	if len(told) < len(ofBackend)+len(ofFeed)+2 {
		t.Errorf("found only %d interfaces", len(told))
	}
}

func TestTheStorageKeepsItsPowers(t *testing.T) {
	t.Parallel()
	ofBackend, ofFeed := powers()
	bare := storage.Opener(func(ctx context.Context) (storage.Backend, error) {
		b, err := memory.Open()(ctx)
		return struct{ storage.Backend }{b}, err
	})
	ready := storage.Opener(func(ctx context.Context) (storage.Backend, error) {
		b, err := memory.Open()(ctx)
		return struct {
			storage.Backend
			readier
		}{b, readier{}}, err
	})
	for name, open := range map[string]storage.Opener{
		"memory": memory.Open(), "bolt": bolt.At(filepath.Join(t.TempDir(), "db")), "bare": bare, "ready": ready,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var below storage.Backend
			i := &interceptor{}
			b, err := i.opener(func(ctx context.Context) (_ storage.Backend, err error) {
				below, err = open(ctx)
				return below, err
			})(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for power, is := range ofBackend {
				has, had := reflect.TypeOf(b).Implements(is), reflect.TypeOf(below).Implements(is)
				if had && !has || power == "Readier" && had != has {
					t.Errorf("%s: %v, and below %v", power, has, had)
				}
			}
			feed, err := b.Watch(t.Context(), storage.WatchRange{From: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer feed.Close()
			was, err := below.Watch(t.Context(), storage.WatchRange{From: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer was.Close()
			for power, is := range ofFeed {
				if has, had := reflect.TypeOf(feed).Implements(is), reflect.TypeOf(was).Implements(is); had != has {
					t.Errorf("%s: %v, and below %v", power, has, had)
				}
			}
			testPowers(t, b, below)
		})
	}
}

type readier struct{}

func (readier) Ready(context.Context) error { return errors.New("not now") }
func (readier) Replay() int64               { return 7 }

// testPowers uses what the storage can, with what the one below says of the same.
func testPowers(t *testing.T, b, below storage.Backend) {
	ctx := t.Context()
	done, err := b.Commit(ctx, storage.Commit{Key: "/a", Value: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(ctx, storage.Commit{Key: "/b", Value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	now, err := below.Get(ctx, "/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.(storage.Stater).Stat(ctx, "/a"); err != nil || got != (storage.Stat{Revision: done.Revision, At: now.Revision}) {
		t.Errorf("Stat: %+v, %v; the key has %d at %d", got, err, done.Revision, now.Revision)
	}
	if got, err := b.(storage.Stater).Stat(ctx, "/none"); err != nil || got != (storage.Stat{At: now.Revision}) {
		t.Errorf("Stat of nothing: %+v, %v", got, err)
	}
	revision, known := b.(storage.Knower).Known()
	if _, knows := below.(storage.Knower); knows != known || known && revision != now.Revision {
		t.Errorf("Known: %d, %v", revision, known)
	}
	if err := b.(storage.Healther).Health(ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
	err = b.(storage.Raiser).Raise(ctx, 1, 1)
	if _, raises := below.(storage.Raiser); raises != !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("Raise: %v", err)
	}
	err = b.(storage.Loader).Load(ctx, 1, func(func(storage.KV, error) bool) {})
	if _, loads := below.(storage.Loader); loads != errors.Is(err, storage.ErrNotEmpty) || !loads && !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("Load: %v", err)
	}
	want := int64(math.MaxInt64)
	if r, ok := below.(storage.Replayer); ok {
		want = r.Replay()
	}
	if got := b.(storage.Replayer).Replay(); got != want {
		t.Errorf("Replay: %d, want %d", got, want)
	}
	oldest := func() int64 {
		t.Helper()
		got, err := b.(storage.Historian).Oldest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Range(ctx, storage.Range{From: "/", At: got}); err != nil {
			t.Errorf("Oldest is %d, and a read at it says %v", got, err)
		}
		return got
	}
	oldest()
	err = b.(storage.Compactor).Compact(ctx, now.Revision)
	if _, compacts := below.(storage.Compactor); !compacts {
		if !errors.Is(err, storage.ErrUnsupported) {
			t.Errorf("Compact: %v", err)
		}
	} else if got := oldest(); err != nil || got != now.Revision {
		t.Errorf("Compact: %v; the oldest is %d, want %d", err, got, now.Revision)
	}
	if r, ok := b.(storage.Readier); ok && r.Ready(ctx) == nil {
		t.Error("Ready is not that of the storage below")
	}
}

// What a rival writes lives no longer than what was there, or is to be.
func TestARivalKeepsTheTimeToLive(t *testing.T) {
	t.Parallel()
	i := &interceptor{}
	b, err := i.opener(memory.Open())(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	i.change(func(now *interception) { now.faults = append(now.faults, &injected{}) })
	refused := errors.New("refused")
	lease := storage.Commit{Key: "/lease", Value: []byte("{}"), Expect: storage.AnyRevision, TTL: time.Hour}
	if _, err := b.Commit(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	before, err := b.Get(t.Context(), lease.Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]storage.Commit{
		"update": {Key: lease.Key, Value: []byte("{}"), Expect: storage.AnyRevision, TTL: time.Hour},
		"delete": {Key: lease.Key, Delete: true, Expect: storage.AnyRevision},
		"create": {Key: "/new", Value: []byte("{}"), TTL: time.Hour},
	} {
		ctx := context.WithValue(t.Context(), rivalryKey{}, &rivalry{conflicts: 1, refusal: refused})
		if _, err := b.Commit(ctx, change); !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := b.Get(t.Context(), change.Key, 0)
		if err != nil || after.KV.Revision <= before.KV.Revision || !after.KV.Expiring {
			t.Errorf("%s: the rival wrote %+v, %v", name, after.KV, err)
		}
		before = after
	}
}

func TestTheFiltersOfAnyChain(t *testing.T) {
	t.Parallel()
	i := &interceptor{}
	for _, tc := range []struct{ list, want []string }{
		{[]string{"a", "request-info", "b"}, []string{"a", "request-info", "record", "b", "faults"}},
		{[]string{"request-info"}, []string{"request-info", "record", "faults"}},
		{[]string{"a"}, []string{"record", "a", "faults"}},
		{nil, []string{"record", "faults"}},
	} {
		var got []string
		for _, f := range i.filters(named(tc.list)) {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v became %v, want %v", tc.list, got, tc.want)
		}
	}
}

func named(names []string) (out []server.NamedFilter) {
	for _, n := range names {
		out = append(out, server.NamedFilter{Name: n})
	}
	return out
}
