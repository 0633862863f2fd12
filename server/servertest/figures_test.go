package servertest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
)

// fleet returns a group with n kinds.
func fleet(n int) server.Group {
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("Boat%d", i)
	}
	return servertest.Untyped("sea.example.com/v1", kinds...)
}

// use writes, lists and watches each of n kinds, and closes the connection.
func use(srv *servertest.Server, n int) error {
	client := srv.Client()
	defer client.CloseIdleConnections()
	for i := range n {
		boats := fmt.Sprintf("%s/apis/sea.example.com/v1/namespaces/a/boat%ds", srv.URL, i)
		body := fmt.Sprintf(`{"apiVersion":"sea.example.com/v1","kind":"Boat%d","metadata":{"name":"b"}}`, i)
		resp, err := client.Post(boats, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusCreated { // 409 would be another server's object
			return fmt.Errorf("create: %s", resp.Status)
		}
		for query, want := range map[string]string{"": `"name":"b"`, "?watch=1&resourceVersion=1": `"ADDED"`} {
			if resp, err = client.Get(boats + query); err != nil {
				return err
			}
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			_ = resp.Body.Close()
			if err != nil || !strings.Contains(line, want) {
				return fmt.Errorf("get %s: %s: %w", query, line, err)
			}
		}
	}
	return nil
}

// An idle server has at most four goroutines, whatever number of kinds it serves and has served.
func TestAtRest(t *testing.T) {
	t.Parallel()
	const most = 4
	for _, kinds := range []int{1, 50} {
		srv := servertest.New(t, fleet(kinds))
		if n := srv.Goroutines(); n > most {
			t.Errorf("%d kinds: %d goroutines", kinds, n)
		}
		if err := use(srv, kinds); err != nil {
			t.Fatal(err)
		}
		// The goroutines of the requests and of the connection end soon.
		if !until(func() bool { return srv.Goroutines() <= most }) {
			t.Errorf("%d kinds, used: %d goroutines:\n%s", kinds, srv.Goroutines(), srv.Stacks())
		}
	}
}

// Two hundred concurrent servers, each with a watch in progress, share nothing, and leave nothing behind.
func TestTwoHundredInParallel(t *testing.T) { // not parallel: it counts
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	const servers = 200
	var made, ended sync.WaitGroup
	made.Add(servers)
	// At most as many start at once as go test runs in parallel: net/http gives up an HTTP/2 connection that is not set up within
	// 2 s.
	starting := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range servers {
		ended.Go(func() {
			starting <- struct{}{}
			srv, watch, err := lead(t.Context(), 1+i%3, i%10 == 0)
			<-starting
			made.Done()
			made.Wait() // until all servers are made
			if srv != nil {
				err = errors.Join(err, srv.Close())
			}
			if watch != nil {
				_, _ = io.ReadAll(watch) // ignore how the watch ends
				err = errors.Join(err, watch.Close())
			}
			if err != nil {
				t.Errorf("server %d: %v", i, err)
			}
		})
	}
	ended.Wait()
	if !until(func() bool { return runtime.NumGoroutine() <= goroutines && openFiles(t) <= files }) {
		buf := make([]byte, 1<<16)
		t.Fatalf("%d goroutines, %d before; %d files, %d before:\n%s",
			runtime.NumGoroutine(), goroutines, openFiles(t), files, buf[:runtime.Stack(buf, true)])
	}
}

// lead makes a server, uses it, and starts a watch. also says whether the server listens on the network too.
func lead(ctx context.Context, kinds int, also bool) (*servertest.Server, io.ReadCloser, error) {
	srv, err := servertest.Run(server.Options{}, fleet(kinds))
	if err != nil {
		return nil, nil, err
	}
	if also {
		if _, err := srv.Listen(ctx); err != nil {
			return srv, nil, err
		}
	}
	if err := use(srv, kinds); err != nil {
		return srv, nil, err
	}
	resp, err := srv.Client().Get(srv.URL + "/apis/sea.example.com/v1/boat0s?watch=1")
	if err != nil {
		return srv, nil, err
	}
	return srv, resp.Body, nil
}

// openFiles returns the number of open files of the process, or 0 if the system does not provide it.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(list)
}

// BenchmarkReady measures the time until /readyz is ok. live-B/server is the live heap of one server.
func BenchmarkReady(b *testing.B) {
	for name, parts := range map[string][]server.Extension{
		"kinds=1":            {widgets()},
		"untyped=50":         {fleet(50)},
		"builtin":            {builtin.New(builtin.Options{})},
		"builtin+kubernetes": {builtin.New(builtin.Options{}), servertest.Types{AddToScheme: addAll}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				srv, err := servertest.Run(server.Options{}, parts...)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := srv.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(live(b, parts), "live-B/server")
		})
	}
}

// live returns the live heap per server for several servers.
func live(b *testing.B, parts []server.Extension) float64 {
	const servers = 10
	heap := func() float64 {
		runtime.GC()
		runtime.GC() // twice, because of finalizers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	running := make([]*servertest.Server, servers)
	for i := range running {
		var err error
		if running[i], err = servertest.Run(server.Options{}, parts...); err != nil {
			b.Fatal(err)
		}
	}
	after := heap()
	for _, srv := range running {
		if err := srv.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return (after - before) / servers
}

// BenchmarkFirstRequest measures the whole life of a server in a small test: it gets ready, creates one object, and is closed.
func BenchmarkFirstRequest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		srv, err := servertest.Run(server.Options{}, widgets())
		if err != nil {
			b.Fatal(err)
		}
		client := srv.Client()
		resp, err := client.Post(srv.URL+"/apis/example.com/v1/namespaces/a/widgets", "application/json", strings.NewReader(`{"metadata":{"name":"w"}}`))
		if err != nil {
			b.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusCreated {
			b.Fatal(resp.Status)
		}
		client.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
