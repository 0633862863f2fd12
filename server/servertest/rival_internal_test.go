package servertest

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
)

// The storage has the optional methods of the storage below, with the same results.
func TestTheStorageKeepsItsPowers(t *testing.T) {
	t.Parallel()
	bare := storage.Opener(func(ctx context.Context) (storage.Backend, error) {
		b, err := memory.Open()(ctx)
		return struct{ storage.Backend }{b}, err
	})
	for name, open := range map[string]storage.Opener{"memory": memory.Open(), "bolt": bolt.At(filepath.Join(t.TempDir(), "db")), "bare": bare} {
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
			keeps[storage.Compactor](t, b, below)
			keeps[storage.Historian](t, b, below)
			keeps[storage.Replayer](t, b, below)
			keeps[storage.Stater](t, b, below)
			keeps[storage.Knower](t, b, below)
			keeps[storage.Holder](t, b, below)
			keeps[storage.Healther](t, b, below)
			keeps[storage.Readier](t, b, below)
			keeps[storage.Loader](t, b, below)
			keeps[storage.Raiser](t, b, below)
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
			if reflect.TypeOf(feed) != reflect.TypeOf(was) {
				t.Errorf("a feed is a %T, and below a %T", feed, was)
			}
		})
	}
}

func keeps[T comparable](t *testing.T, b, below storage.Backend) {
	t.Helper()
	has, ok := storage.As[T](b)
	had, was := storage.As[T](below)
	if ok != was || has != had {
		t.Errorf("%s: %v, and below %v", reflect.TypeFor[T](), ok, was)
	}
}

// The object that a rival writes expires with the TTL of the old or the new object.
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
