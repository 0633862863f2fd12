package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// The answer of a dry run is not kept, and is not one that was kept before, although its record has the revision of the stored
// one.
func TestDryRunKeepsNoForm(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]server.Group{"cached": widgets(), "uncached": wireKinds(true).Groups[0]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.Start(t, server.Options{}, g)
			ask := func(method, path, body string) string {
				t.Helper()
				a := roundTrip(t, srv.Client(), method, srv.URL+path, body, "Content-Type", mergePatch, "Accept", "application/yaml")
				if a.code != http.StatusOK {
					t.Fatal(a.code, a.body)
				}
				return a.body
			}
			body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`
			if a := roundTrip(t, srv.Client(), "POST", srv.URL+widgetsPath, body); a.code != 201 {
				t.Fatal(a.code, a.body)
			}
			const w = widgetsPath + "/w"
			if dry := ask("PATCH", w+"?dryRun=All", `{"spec":{"size":2}}`); !strings.Contains(dry, "size: 2\n") {
				t.Errorf("the first dry run shows %s", dry)
			}
			if got := ask("GET", w, ""); !strings.Contains(got, "size: 1\n") {
				t.Errorf("after a dry run a reader gets %s", got)
			}
			if dry := ask("PATCH", w+"?dryRun=All", `{"spec":{"size":3}}`); !strings.Contains(dry, "size: 3\n") {
				t.Errorf("the second dry run shows %s", dry)
			}
		})
	}
}

// restored is a backend that can be replaced by another one.
type restored struct {
	now atomic.Pointer[memory.Backend]
}

func (b *restored) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	return b.now.Load().Get(ctx, key, at)
}

func (b *restored) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	return b.now.Load().Range(ctx, r)
}

func (b *restored) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	return b.now.Load().Commit(ctx, c)
}

func (b *restored) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	return b.now.Load().Watch(ctx, w)
}

func (b *restored) Close() error { return b.now.Load().Close() }

// A store that is restored to an older state uses the later revisions again, for other records. Forms that were kept for the old
// records must not be used.
func TestFormsOfAStoreThatIsSetBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before, after := memory.New(memory.Options{}), memory.New(memory.Options{})
	b := &restored{}
	b.now.Store(before)
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(b), Groups: []server.Group{wireKinds(true).Groups[0]}})
	saved, err := before.Range(ctx, storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	make := func(size int) (version string) {
		t.Helper()
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":%d}}`, size)
		if a := roundTrip(t, srv.Client(), "POST", srv.URL+widgetsPath, body); a.code != 201 {
			t.Fatal(a.code, a.body)
		}
		a := roundTrip(t, srv.Client(), "GET", srv.URL+widgetsPath+"/w", "", "Accept", "application/yaml")
		if want := fmt.Sprintf("size: %d\n", size); !strings.Contains(a.body, want) {
			t.Errorf("the widget with %sis shown as %s", want, a.body)
		}
		_, version, _ = strings.Cut(a.body, "resourceVersion: ")
		version, _, _ = strings.Cut(version, "\n")
		return version
	}
	first := make(1)
	err = after.Load(ctx, saved.Revision, func(yield func(storage.KV, error) bool) {
		for _, kv := range saved.KVs {
			if !yield(kv, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.now.Store(after)
	if second := make(9); second != first {
		t.Errorf("the widget of the restored store has revision %s, that of before had %s", second, first)
	}
	if err := before.Close(); err != nil {
		t.Error(err)
	}
}
