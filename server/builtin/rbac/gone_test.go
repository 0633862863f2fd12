package rbac_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// lost is a storage that cannot be reached while down ends.
type lost struct {
	storage.Backend

	mu   sync.Mutex
	down context.Context // ends when the storage is lost
}

var errLost = errors.New("the storage is lost")

func (l *lost) state() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *lost) set(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = ctx
}

func (l *lost) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if l.state().Err() != nil {
		return storage.GetResult{}, errLost
	}
	return l.Backend.Get(ctx, key, at)
}

func (l *lost) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if l.state().Err() != nil {
		return storage.RangeResult{}, errLost
	}
	return l.Backend.Range(ctx, r)
}

func (l *lost) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if l.state().Err() != nil {
		return storage.CommitResult{}, errLost
	}
	return l.Backend.Commit(ctx, c)
}

func (l *lost) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	down := l.state()
	if down.Err() != nil {
		return nil, errLost
	}
	feed, err := l.Backend.Watch(ctx, w)
	return &lostFeed{feed, down}, err
}

// Ready implements storage.Readier.
func (l *lost) Ready(context.Context) error {
	if l.state().Err() != nil {
		return errLost
	}
	return nil
}

// lostFeed ends when the storage is lost.
type lostFeed struct {
	storage.Feed
	down context.Context
}

func (f *lostFeed) Next(ctx context.Context) (storage.Changes, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.down, cancel)()
	got, err := f.Feed.Next(ctx)
	if f.down.Err() != nil {
		return storage.Changes{}, errLost
	}
	return got, err
}

// While the storage cannot be reached, the server decides by the roles that it knows, and /readyz says that it is not ready. Roles
// that cannot be written give nothing. After that it goes on.
func TestStorageIsLost(t *testing.T) {
	t.Parallel()
	backend := &lost{Backend: memory.New(memory.Options{})}
	up, loses := context.WithCancel(context.Background())
	backend.set(up)
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, mapsOnly(), rbac.New(rbac.Options{Bootstrap: []runtime.Object{}}))
	admin, alice, bob := srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: "alice"})), srv.ClientOf(srv.AddUser(authn.User{Name: "bob"}))
	must(t, admin, "POST", srv.URL+group+"/clusterroles", `{"metadata":{"name":"metrics"},"rules":[{"verbs":["get"],"nonResourceURLs":["/metrics"]}]}`)
	bind := strings.ReplaceAll(toAlice, `"maps"`, `"metrics"`)
	must(t, admin, "POST", srv.URL+group+"/clusterrolebindings", bind)
	want := func(alices, bobs int) {
		t.Helper()
		for range 20 {
			if a, b := ask(t, alice, "GET", srv.URL+"/metrics", ""), ask(t, bob, "GET", srv.URL+"/metrics", ""); a.code != alices || b.code != bobs {
				t.Errorf("alice %d, bob %d", a.code, b.code)
			}
		}
	}
	want(200, 403)
	loses()
	want(200, 403)
	within(t, "/readyz fails", func() bool {
		got := ask(t, admin, "GET", srv.URL+"/readyz", "")
		return got.code == 500 && strings.Contains(got.body, "[-]")
	})
	if got := ask(t, admin, "POST", srv.URL+group+"/clusterrolebindings", strings.NewReplacer("alice", "bob", `"name":"metrics"},"roleRef`, `"name":"b"},"roleRef`).Replace(bind)); got.code < 500 {
		t.Errorf("a binding could be written: %d", got.code)
	}
	want(200, 403)
	again, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	backend.set(again)
	within(t, "/readyz succeeds", func() bool { return ask(t, admin, "GET", srv.URL+"/readyz", "").code == 200 })
	must(t, admin, "DELETE", srv.URL+group+"/clusterrolebindings/metrics", "")
	want(403, 403)
}
