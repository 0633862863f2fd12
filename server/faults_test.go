package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// fullDisk is a backend whose commits find no room while full is set.
type fullDisk struct {
	storage.Backend
	full atomic.Bool
}

func (d *fullDisk) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if d.full.Load() {
		return storage.CommitResult{}, fmt.Errorf("write x.db: %w", storage.ErrNoSpace)
	}
	return d.Backend.Commit(ctx, c)
}

func TestAFullDiskIsAStatusAndReadsGoOn(t *testing.T) {
	t.Parallel()
	disk := &fullDisk{Backend: memory.New(memory.Options{})}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(disk), Groups: []server.Group{widgets()}})
	c := srv.Client()
	code, created := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, created)
	disk.full.Store(true)
	for method, path := range map[string]string{"POST": widgetsPath, "PUT": widgetsPath + "/a", "DELETE": widgetsPath + "/a"} {
		body := `{"metadata":{"name":"a"},"spec":{"size":9}}`
		if method == "POST" {
			body = `{"metadata":{"name":"b"}}`
		}
		if method == "DELETE" {
			body = ""
		}
		code, text := call(t, c, method, srv.URL+path, body)
		if code != 500 || !strings.Contains(text, `"kind":"Status"`) || !strings.Contains(text, "no space left") {
			t.Errorf("%s on a full disk: %d %s", method, code, text)
		}
	}
	code, got := call(t, c, "GET", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 200, code, got)
	if got != created {
		t.Errorf("after refused writes: %s, want %s", got, created)
	}
	disk.full.Store(false)
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"b"}}`)
	wantCode(t, 201, code, body)
}

func TestReadyIsSaidWhenReadyzIs200(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	warm := server.Check{Name: "warm", ReadyOnly: true, Check: func(context.Context) error {
		if asked.Add(1) < 4 {
			return errors.New("still cold")
		}
		return nil
	}}
	srv := run(t, server.Options{Observe: server.Observe{Checks: []server.Check{warm}}}) // returns when Ready has been called
	if n := asked.Load(); n < 4 {
		t.Errorf("said to be ready after %d checks", n)
	}
	code, body := call(t, srv.client(t), "GET", srv.url+"/readyz", "")
	wantCode(t, 200, code, body)
}
