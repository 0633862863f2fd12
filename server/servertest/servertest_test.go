package servertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

type Widget = keelson.Resource[struct {
	Size int32 `json:"size"`
}, struct{}]

func widgets() server.Group {
	return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{}),
	}}}}
}

// The whole of a test with a server: make it, and use it.
func TestAFewLinesAreEnough(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	resp, err := srv.Client().Post(srv.URL+"/apis/example.com/v1/namespaces/a/widgets", "application/json", strings.NewReader(`{"metadata":{"name":"w"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated || resp.ProtoMajor != 2 {
		t.Errorf("answered %s over %s", resp.Status, resp.Proto)
	}
}

func TestManyServersInParallel(t *testing.T) {
	t.Parallel()
	for i := range 50 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			srv := servertest.New(t, widgets())
			path := srv.URL + "/apis/example.com/v1/namespaces/a/widgets"
			resp, err := srv.Client().Post(path, "application/json", strings.NewReader(`{"metadata":{"name":"only"}}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusCreated { // 409 would be another server's object
				t.Errorf("answered %s", resp.Status)
			}
		})
	}
}

// Everything a server can have going on, and a client that reads nothing, end with the server.
func TestNothingIsLeftBehind(t *testing.T) { // not parallel: it counts
	before := runtime.NumGoroutine()
	srv := servertest.New(t, widgets())
	client := srv.Client()
	for range 10 {
		resp, err := client.Get(srv.URL + "/apis/example.com/v1/widgets?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
	}
	srv.Stop()
	client.CloseIdleConnections()
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 1000 {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
		_, _ = io.ReadAll(io.LimitReader(slow{}, 1))
	}
	if _, err := client.Get(srv.URL + "/healthz"); err == nil {
		t.Error("a stopped server answers")
	}
}

// slow lets the scheduler, and timers, run.
type slow struct{}

func (slow) Read([]byte) (int, error) {
	done := make(chan struct{})
	go close(done)
	<-done
	return 0, io.EOF
}

// recorder is a testing.TB that remembers failures instead of failing.
type recorder struct {
	testing.TB
	errors  []string
	cleanup []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

func TestALeakFailsTheTest(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	release := make(chan struct{})
	defer close(release)
	srv := servertest.Start(r, server.Options{})
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		h.Go(func(context.Context) { go func() { <-release }() }) // a goroutine without a wait
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.cleanup {
		f()
	}
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "left goroutines behind") {
		t.Errorf("the leak was not reported: %q", r.errors)
	}
}
