package server_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// fullDisk is a backend whose commits fail for lack of space while full is set.
type fullDisk struct {
	storage.Backend
	full atomic.Bool
}

func (d *fullDisk) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if d.full.Load() {
		return storage.CommitResult{}, &storage.FileError{Op: "write", Path: "/secret/x.db", Err: storage.ErrNoSpace}
	}
	return d.Backend.Commit(ctx, c)
}

func TestAFullDiskIsAStatusAndReadsGoOn(t *testing.T) {
	t.Parallel()
	disk := &fullDisk{Backend: memory.New(memory.Options{})}
	core, log := observer.New(zap.WarnLevel)
	srv := servertest.Start(t, server.Options{
		Storage: storage.Opened(disk), Groups: []server.Group{widgets()}, Observe: server.Observe{Logger: zap.New(core)},
	})
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
		if code != 507 || !strings.Contains(text, `"kind":"Status"`) || !strings.Contains(text, `"reason":"InsufficientStorage"`) ||
			strings.Contains(text, "secret") {
			t.Errorf("%s on a full disk: %d %s", method, code, text)
		}
		if n := log.FilterField(zap.String("error", "write /secret/x.db: no space left")).Len(); n == 0 {
			t.Errorf("the log does not name the file: %v", log.All())
		}
		log.TakeAll()
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

// When its file is full, a server can still be used. New objects are answered with 507, and /readyz has the reason without the
// path. Reads, deletions and updates that do not grow still work, and deletions make room.
func TestAFullFileCanBeLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.db")
	const quota = 4 << 20
	core, log := observer.New(zap.WarnLevel)
	srv := servertest.Start(t, server.Options{Storage: bolt.With(path, bolt.Options{Quota: quota, Sync: bolt.NoSync}), Groups: []server.Group{widgets()}, Observe: server.Observe{Logger: zap.New(core)}})
	c := srv.Client()
	object := func(i int, fill string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w` + strconv.Itoa(i) + `","annotations":{"a":"` +
			strings.Repeat(fill, 50_000) + `"}},"spec":{"size":1}}`
	}
	n, code, text := 0, 0, ""
	for ; n < 100; n++ {
		if code, text = call(t, c, "POST", srv.URL+widgetsPath, object(n, "a")); code != 201 {
			break
		}
	}
	if code != 507 || strings.Contains(text, "secret") {
		t.Fatalf("POST %d: %d %s", n, code, text)
	}
	for endpoint, want := range map[string]int{"/readyz": 500, "/readyz/storage-readiness": 500, "/livez": 200} {
		if code, text := call(t, c, "GET", srv.URL+endpoint, ""); code != want || strings.Contains(text, "secret") {
			t.Errorf("%s: %d %s, want %d", endpoint, code, text, want)
		}
	}
	_, metrics := call(t, c, "GET", srv.URL+"/metrics", "")
	sizes := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(keelson_storage_\w*bytes) (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		sizes[m[1]], _ = strconv.ParseFloat(m[2], 64)
	}
	if used, limit := sizes["keelson_storage_bytes"], sizes["keelson_storage_limit_bytes"]; used < quota*3/4 || limit < used || limit > quota*5/4 {
		t.Errorf("the metrics say %v", sizes)
	}
	if logged := log.FilterMessage("health check failed").All(); len(logged) != 2 || !strings.Contains(logged[1].ContextMap()["failures"].(string), path) {
		t.Errorf("the log says %v", logged)
	}
	code, text = call(t, c, "PUT", srv.URL+widgetsPath+"/w0", object(0, "b"))
	wantCode(t, 200, code, text)
	code, text = call(t, c, "GET", srv.URL+widgetsPath+"/w1", "")
	wantCode(t, 200, code, text)
	for i := range n {
		code, text = call(t, c, "DELETE", srv.URL+widgetsPath+"/w"+strconv.Itoa(i), "")
		wantCode(t, 200, code, text)
	}
	end := time.Now().Add(time.Minute)
	for i := range n / 2 {
		for code = 507; code == 507 && time.Now().Before(end); time.Sleep(time.Millisecond) { // until compaction has made room
			code, text = call(t, c, "POST", srv.URL+widgetsPath, object(i, "c"))
		}
		wantCode(t, 201, code, text)
	}
	for code = 500; code == 500 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		code, text = call(t, c, "GET", srv.URL+"/readyz", "")
	}
	wantCode(t, 200, code, text)
}

func TestReadyIsCalledWhenReadyzIs200(t *testing.T) {
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
