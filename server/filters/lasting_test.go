package filters_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

const (
	lastingWatch = "/api/v1/pods?watch=true"
	lastingExec  = "/api/v1/namespaces/a/pods/b/exec"
)

// begin begins n requests whose handlers return when their contexts end, and returns the number of those that have not ended.
func begin(t *testing.T, l *filters.Lasting, n int, target string) *atomic.Int64 {
	t.Helper()
	h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		filters.RequestInfo(request.Resolver{}), l.Filter())
	left := new(atomic.Int64)
	left.Store(int64(n))
	for range n {
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", target, http.NoBody))
			left.Add(-1)
		}()
	}
	return left
}

// Watches end evenly over the given time.
func TestWatchesEndOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := filters.NewLasting(true)
		watches, execs := begin(t, l, 1000, lastingWatch), begin(t, l, 3, lastingExec)
		synctest.Wait()
		go l.EndWatches(t.Context(), 10*time.Second)
		for second := range int64(10) {
			if got, want := watches.Load(), 1000-100*second; got < want-10 || got > want {
				t.Errorf("after %d s are left %d watches, want some %d", second, got, want)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		late := begin(t, l, 1, lastingWatch)
		time.Sleep(time.Second)
		synctest.Wait()
		if watches.Load() != 0 || late.Load() != 0 || execs.Load() != 3 {
			t.Errorf("at the end are left %d watches, a late one: %d, and %d others", watches.Load(), late.Load(), execs.Load())
		}
		l.End(t.Context())
		synctest.Wait()
		if execs.Load() != 0 {
			t.Errorf("%d others have not ended", execs.Load())
		}
		late = begin(t, l, 1, lastingExec)
		synctest.Wait()
		if late.Load() != 0 {
			t.Error("a late request has not ended")
		}
	})
}

func TestEndingWatchesMayBeCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := filters.NewLasting(true)
		watches := begin(t, l, 10, lastingWatch)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		l.EndWatches(ctx, 10*time.Second)
		synctest.Wait()
		if time.Since(began) != 5*time.Second || watches.Load() < 5 {
			t.Errorf("after %v are left %d watches", time.Since(began), watches.Load())
		}
		l.End(t.Context())
		began = time.Now()
		l.EndWatches(t.Context(), 10*time.Second) // none are left
		if time.Since(began) != 0 {
			t.Error("it waits for no watch")
		}
		synctest.Wait()
	})
}

// Without watches, only other requests are known.
func TestWatchesThatEndInAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := filters.NewLasting(false)
		stopped, stop := context.WithCancel(t.Context())
		h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			filters.RequestInfo(request.Resolver{}), l.Filter())
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(stopped, "GET", lastingWatch, http.NoBody))
		synctest.Wait()
		l.EndWatches(t.Context(), time.Hour)
		l.End(t.Context()) // would wait for the watch
		stop()
		synctest.Wait()
	})
}

// A connection that a handler has taken over is closed at the end.
func TestConnectionsThatWereTakenOverEnd(t *testing.T) {
	t.Parallel()
	l := filters.NewLasting(false)
	taken := make(chan struct{})
	srv := httptest.NewServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		close(taken)
		_, _ = io.Copy(io.Discard, conn) // until the connection ends
	}), filters.Recover(nil), filters.RequestInfo(request.Resolver{}), l.Filter()))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET "+lastingExec+" HTTP/1.1\r\nHost: a\r\n\r\n")
	<-taken
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 101 Switching Protocols\r\n" {
		t.Errorf("%q %v", line, err)
	}
	l.End(t.Context()) // returns when the handler has
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error(err)
	}
}
