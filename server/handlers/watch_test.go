package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
)

func frame(kind, object string) string {
	return `{"type":"` + kind + `","object":` + object + "}\n"
}

// mark is a bookmark of a widget: an object with zero values only.
func mark(rv string, initialEnd bool) string {
	annotations := ""
	if initialEnd {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return frame("BOOKMARK", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`+rv+`"`+annotations+`},"spec":{"size":0,"replicas":0},"status":{}}`)
}

// TestWatchStart tests all ways in which a watch can begin.
func TestWatchStart(t *testing.T) {
	const notOlder = "&resourceVersionMatch=NotOlderThan"
	for _, c := range []struct {
		query                string
		initial, end, failed bool
		after                bool // the change after the requested revision is sent
	}{
		{query: "", initial: true},
		{query: "&allowWatchBookmarks=true", initial: true, end: true},
		{query: "&resourceVersion=0", initial: true},
		{query: "&resourceVersion=0&allowWatchBookmarks=true", initial: true, end: true},
		{query: "&resourceVersion=FIRST", after: true},
		{query: "&resourceVersion=FIRST&allowWatchBookmarks=true", after: true},
		{query: "&resourceVersion=NOW"},
		{query: "&resourceVersion=99999"},
		{query: "&sendInitialEvents=true&allowWatchBookmarks=true" + notOlder, initial: true, end: true},
		{query: "&sendInitialEvents=true" + notOlder, initial: true},
		{query: "&sendInitialEvents=true&resourceVersion=0&allowWatchBookmarks=true" + notOlder, initial: true, end: true},
		{query: "&sendInitialEvents=true&resourceVersion=0" + notOlder, initial: true},
		{query: "&sendInitialEvents=true&resourceVersion=FIRST&allowWatchBookmarks=true" + notOlder, initial: true, end: true},
		{query: "&sendInitialEvents=true&resourceVersion=99999&allowWatchBookmarks=true" + notOlder, failed: true},
		{query: "&sendInitialEvents=true&resourceVersion=99999" + notOlder, failed: true},
		{query: "&sendInitialEvents=false" + notOlder},
		{query: "&sendInitialEvents=false&allowWatchBookmarks=true" + notOlder},
		{query: "&sendInitialEvents=false&resourceVersion=0" + notOlder},
		{query: "&sendInitialEvents=false&resourceVersion=FIRST" + notOlder, after: true},
	} {
		byPath := "/apis/example.com/v1/watch/namespaces/default/widgets?watch=false"
		for _, path := range []string{base + "?watch=true", byPath, strings.Replace(byPath, "false", "true", 1)} {
			if path == byPath && strings.Contains(c.query, "sendInitialEvents") {
				continue // refused, as for a list
			}
			t.Run(path+c.query, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHouse(t, tune{})
					h.make(t, "a")
					first := h.now(t)
					h.make(t, "b")
					now := h.now(t)
					query := strings.NewReplacer("FIRST", first, "NOW", now).Replace(c.query)
					s, done, stop := h.watching(path + query)
					defer stop()
					synctest.Wait()
					a, b := frame("ADDED", h.whole(t, "a")), frame("ADDED", h.whole(t, "b"))
					want := ""
					switch {
					case c.failed:
						time.Sleep(5 * time.Second)
						synctest.Wait()
						wantWatch(t, s, frame("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 99999, current: `+now+
							`","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`))
						<-done
						return
					case c.initial:
						want = a + b
					case c.after:
						want = b
					}
					if c.end && path != byPath {
						want += mark(now, true)
					}
					wantWatch(t, s, want)
					if s.code != http.StatusOK || s.head.Get("Content-Type") != "application/json" {
						t.Errorf("%d %v", s.code, s.head)
					}
					h.make(t, "c")
					synctest.Wait()
					if !strings.Contains(query, "99999") {
						want += frame("ADDED", h.whole(t, "c"))
					}
					wantWatch(t, s, want)
				})
			})
		}
	}
}

func wantWatch(t *testing.T, s *stream, want string) {
	t.Helper()
	if got := s.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWatchEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a")
		s, _, stop := h.watching(base + "?watch=1&labelSelector=n%3Da&resourceVersion=" + h.now(t))
		defer stop()
		synctest.Wait()
		h.ask("PATCH", base+"/a", `{"spec":{"size":2}}`, mergeType)
		want := frame("MODIFIED", h.whole(t, "a"))
		left := h.record(t, "a")
		h.ask("PATCH", base+"/a", `{"metadata":{"labels":{"n":"x"}}}`, mergeType)
		want += frame("DELETED", string(left.Body.AppendObject(nil, h.record(t, "a").Revision)))
		h.ask("PATCH", base+"/a", `{"metadata":{"labels":{"n":"a"}}}`, mergeType)
		want += frame("ADDED", h.whole(t, "a"))
		left = h.record(t, "a")
		h.ask("DELETE", base+"/a", "")
		want += frame("DELETED", string(left.Body.AppendObject(nil, revisionOf(t, h.now(t)))))
		synctest.Wait()
		wantWatch(t, s, want)
	})
}

func TestWatchOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a", "b")
		for _, target := range []string{
			base + "?watch=1&fieldSelector=metadata.name%3Db", "/apis/example.com/v1/watch/namespaces/default/widgets/b",
			all + "?watch=1&fieldSelector=metadata.name%3Db%2Cmetadata.namespace%3Ddefault",
		} {
			s, _, stop := h.watching(target)
			synctest.Wait()
			wantWatch(t, s, frame("ADDED", h.whole(t, "b")))
			stop()
		}
		if w := h.ask("GET", base+"/b?watch=true", ""); w.Body.String() != h.whole(t, "b")+"\n" {
			t.Errorf("?watch of an item: %s", w.Body)
		}
	})
}

func TestWatchEndsAfterTimeoutSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a")
		start := time.Now()
		s, done, stop := h.watching(base + "?watch=1&timeoutSeconds=5&allowWatchBookmarks=true&resourceVersion=" + h.now(t))
		defer stop()
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		wantWatch(t, s, mark(h.now(t), false))
		<-done
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("ended after %v", took)
		}
		wantWatch(t, s, mark(h.now(t), false))
	})
}

func TestWatchBookmarksWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.MinRequestTimeout = 10 * time.Minute }})
		h.make(t, "a")
		now := h.now(t)
		start := time.Now()
		s, done, stop := h.watching(base + "?watch=1&allowWatchBookmarks=true&resourceVersion=" + now)
		defer stop()
		idle, _, stopIdle := h.watching(base + "?watch=1&resourceVersion=" + now)
		defer stopIdle()
		<-done
		took := time.Since(start)
		if took < 10*time.Minute || took >= 20*time.Minute {
			t.Errorf("lasted %v", took)
		}
		least := int(took/(66*time.Second)) - 1
		if got := strings.Count(s.text(), "\n"); got < least || strings.Count(s.text(), mark(now, false)) != got {
			t.Errorf("%d bookmarks in %v: %s", got, took, s.text())
		}
		wantWatch(t, idle, "")
	})
}

func TestWatchEndsWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Stop = stop }})
		h.make(t, "a")
		var streams []*stream
		var ends []<-chan struct{}
		for range 3 {
			s, done, _ := h.watching(base + "?watch=1")
			streams, ends = append(streams, s), append(ends, done)
		}
		synctest.Wait()
		start := time.Now()
		close(stop)
		for _, done := range ends {
			<-done
		}
		s, done, _ := h.watching(base + "?watch=1") // a watch that begins late
		<-done
		for _, s := range append(streams, s) {
			if s.code != http.StatusOK || strings.Contains(s.text(), "ERROR") {
				t.Errorf("%d %s", s.code, s.text())
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("ended after %v", took)
		}
	})
}

// A watch ends even if it begins after Stop is closed, while another watch is still blocked in a write.
func TestWatchEndsThoughAnotherHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Stop, o.WriteTimeout = stop, time.Hour }})
		h.make(t, "a")
		hanging := make(chan struct{})
		go func() {
			defer close(hanging)
			defer func() { _ = recover() }() // the connection is aborted in the end
			h.ServeHTTP(newStuck(), httptest.NewRequest(http.MethodGet, base+"?watch=1", nil))
		}()
		synctest.Wait()
		close(stop)
		synctest.Wait()
		start := time.Now()
		_, done, _ := h.watching(base + "?watch=1")
		<-done
		if took := time.Since(start); took != 0 {
			t.Errorf("ended after %v", took)
		}
		<-hanging
	})
}

func TestWatchEndsWhenTheStoreCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		s, done, _ := h.watching(base + "?watch=1&resourceVersion=" + h.now(t))
		synctest.Wait()
		must(t, h.backend.Close())
		<-done
		wantWatch(t, s, "")
	})
}

func TestWatchOfHistoryThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a", "b", "c")
		must(t, h.backend.Compact(context.Background(), revisionOf(t, h.now(t))))
		s, done, _ := h.watching(base + "?watch=1&resourceVersion=1")
		<-done
		got := s.text()
		if s.code != 200 || !strings.HasPrefix(got, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"`) ||
			!strings.HasSuffix(got, `","reason":"Expired","code":410}}`+"\n") || strings.Count(got, "\n") != 1 {
			t.Errorf("%d %s", s.code, got)
		}
	})
}

func TestWatchManyEventsInOneFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		for i := range 200 {
			h.make(t, fmt.Sprintf("w%03d", i))
		}
		s, _, stop := h.watching(base + "?watch=1")
		defer stop()
		synctest.Wait()
		if lines := strings.Count(s.text(), "\n"); lines != 200 || s.flushes > 20 {
			t.Errorf("%d events in %d flushes", lines, s.flushes)
		}
	})
}

func TestWatchTable(t *testing.T) {
	for include, object := range map[string]func(h *house, name string) string{
		"Metadata": func(h *house, name string) string { return partial("v1", h.metadata(t, name)) },
		"Object":   func(h *house, name string) string { return h.whole(t, name) },
		"None":     func(*house, string) string { return "null" },
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, tune{})
			h.make(t, "a", "b")
			s, _, stop := h.watching(base+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=5&includeObject="+include, asTable)
			defer stop()
			synctest.Wait()
			event := func(kind, columns, rv, cells, object string) string {
				return frame(kind, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+rv+`"},`+columns+`,"rows":[{"cells":[`+cells+`],"object":`+object+`}]}`)
			}
			const none = `"columnDefinitions":null`
			end := partial("v1", `{"resourceVersion":"`+h.now(t)+`","annotations":{"k8s.io/initial-events-end":"true"}}`)
			if include == "Object" {
				end = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"` + h.now(t) + `","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"size":0,"replicas":0},"status":{}}`
			}
			want := event("ADDED", columns, fmt.Sprint(h.record(t, "a").Revision), `"a","0s"`, object(h, "a")) +
				event("ADDED", none, fmt.Sprint(h.record(t, "b").Revision), `"b","0s"`, object(h, "b")) +
				event("BOOKMARK", none, h.now(t), `"","<unknown>"`, end)
			want = strings.ReplaceAll(want, "<unknown>", `\u003cunknown\u003e`)
			if got := s.text(); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", include, got, want)
			}
		})
	}
}

func TestWatchTableAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a")
		s, _, stop := h.watching(base+"?watch=1&includeObject=None", asTable)
		defer stop()
		time.Sleep(5 * time.Minute)
		h.make(t, "b")
		h.ask("PATCH", base+"/a", `{"spec":{"size":2}}`, mergeType)
		synctest.Wait()
		if got := s.text(); !strings.Contains(got, `["a","0s"]`) || !strings.Contains(got, `["b","0s"]`) || !strings.Contains(got, `["a","5m"]`) {
			t.Errorf("%s", got)
		}
	})
}

func TestWatchTimeoutSecondsOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		for _, seconds := range []string{"-1", "-9223372036854775808", "-9000000000000000000"} {
			s, done, _ := h.watching(base + "?watch=1&timeoutSeconds=" + seconds)
			<-done
			if s.code != 200 {
				t.Errorf("%s: %d", seconds, s.code)
			}
		}
		_, done, stop := h.watching(base + "?watch=1&timeoutSeconds=9223372036854775807")
		time.Sleep(time.Hour)
		select {
		case <-done:
			t.Error("ended")
		default:
		}
		stop()
	})
}

func TestWatchTablerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Table = sizes{} }})
		s, done, _ := h.watching(base+"?watch=1", asTable)
		synctest.Wait()
		h.ask("POST", base, `{"metadata":{"name":"b"},"spec":{"color":"red"}}`)
		<-done
		wantWatch(t, s, frame("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"red","code":500}`))
	})
}

func TestWatchTablerBookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Table = sizes{} }})
		s, _, stop := h.watching(base+"?watch=1&allowWatchBookmarks=1", asTable)
		defer stop()
		synctest.Wait()
		if got := s.text(); !strings.Contains(got, `"rows":[{"cells":["",0],"object":{"kind":"PartialObjectMetadata",`) {
			t.Errorf("%s", got)
		}
	})
}

func TestWatchPartialObjectMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a")
		s, _, stop := h.watching(base+"?watch=1&allowWatchBookmarks=1", asPartial)
		defer stop()
		synctest.Wait()
		wantWatch(t, s, frame("ADDED", partial("v1", h.metadata(t, "a")))+
			frame("BOOKMARK", partial("v1", `{"resourceVersion":"`+h.now(t)+`","annotations":{"k8s.io/initial-events-end":"true"}}`)))
	})
}

// stuck is a ResponseWriter whose client reads nothing after the header.
type stuck struct {
	*stream
	freed chan struct{} // closed when a deadline is in the past
}

func newStuck() *stuck { return &stuck{newStream(), make(chan struct{})} }

func (s *stuck) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && !at.After(time.Now()) {
		close(s.freed)
	}
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.freed
	return 0, context.DeadlineExceeded
}

// openWatches counts the watches of a registry.
type openWatches struct {
	*registry.Registry
	begun, open int
}

func (o *openWatches) WatchRecords(call *registry.Call, opts storage.WatchOptions) (storage.Watch, error) {
	w, err := o.Registry.WatchRecords(registry.NewCall(call, authn.System(), ""), opts)
	if err != nil {
		return nil, err
	}
	o.begun++
	o.open++
	return closing{w, sync.OnceFunc(func() { o.open-- })}, nil
}

type closing struct {
	storage.Watch
	closed func()
}

func (c closing) Close() {
	c.Watch.Close()
	c.closed()
}

// A client that does not read loses its connection when one write is blocked for too long. Then nothing of its watch is left: the
// storage's watch is closed, and no goroutine is left, for which the bubble would wait.
func TestWatchGivesUpAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened *openWatches
		h := newHouse(t, tune{handlers: func(o *handlers.Options) {
			o.WriteTimeout = 7 * time.Second
			opened = &openWatches{Registry: o.Storage.(*registry.Registry)}
			o.Storage = opened
		}})
		h.make(t, "a")
		start := time.Now()
		w := newStuck()
		defer func() {
			if opened.begun != 1 || opened.open != 0 {
				t.Errorf("of %d watches of the storage %d are open still", opened.begun, opened.open)
			}
			if p := recover(); !aborts(p) || time.Since(start) != 7*time.Second {
				t.Errorf("%v after %v", p, time.Since(start))
			}
		}()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, base+"?watch=1", nil))
		t.Error("ended cleanly")
	})
}

func revisionOf(t *testing.T, rv string) int64 {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(rv, &n)
	must(t, err)
	return n
}
