package servertest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const widgetsOfA = "/apis/example.com/v1/namespaces/a/widgets"

// inBubble runs a parallel test in a bubble.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// heard is a watch with its events.
type heard struct {
	began time.Time

	done  chan struct{} // closed when the watch has ended
	ended time.Duration // duration of the watch; with err, written before done is closed
	err   error         // how it ended

	mu     sync.Mutex // guards events
	events []event
}

// event is an event of a watch, with the time since the beginning of the watch.
type event struct {
	after      time.Duration
	kind, name string
}

func (e event) String() string {
	return strings.TrimSpace(fmt.Sprint(e.after, " ", e.kind, " ", e.name))
}

// hear watches until the watch ends, at the latest with the server.
func hear(t *testing.T, srv *servertest.Server, path string) *heard {
	t.Helper()
	h := &heard{began: time.Now(), done: make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := srv.Client()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, resp.Status)
	}
	go func() {
		defer close(h.done)
		defer client.CloseIdleConnections()
		defer func() { _ = resp.Body.Close() }()
		in := json.NewDecoder(resp.Body)
		for {
			var e struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			err := in.Decode(&e)
			after := time.Since(h.began)
			if err != nil {
				h.ended, h.err = after, err
				return
			}
			h.mu.Lock()
			h.events = append(h.events, event{after, e.Type, e.Object.Metadata.Name})
			h.mu.Unlock()
		}
	}()
	return h
}

// all returns the events so far: all events if the server is idle.
func (h *heard) all() []event {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// want fails the test unless these are the events.
func (h *heard) want(t *testing.T, events ...string) {
	t.Helper()
	if got, want := fmt.Sprint(h.all()), fmt.Sprint(events); got != want {
		t.Errorf("heard %s, want %s", got, want)
	}
}

// end waits for the watch to end by itself and returns how long it lasted.
func (h *heard) end() time.Duration {
	<-h.done
	return h.ended
}

// metaOf returns the metadata of the object in an answer.
func metaOf(t *testing.T, a answer) metav1.ObjectMeta {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(a.body), &obj); err != nil {
		t.Fatal(err)
	}
	return obj.ObjectMeta
}

func TestABubbleIsAWholeServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, widgets())
		time.Sleep(90 * time.Minute)
		ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"w"}}`).want(201, `"creationTimestamp":"2000-01-01T01:30:00Z"`)
		watch := hear(t, srv, "/apis/example.com/v1/widgets?watch=1")
		watch.want(t, "0s ADDED w")
		time.Sleep(time.Minute)
		ask(t, srv, "PATCH", widgetsOfA+"/w?fieldManager=me", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":3}}`).
			want(200, `"time":"2000-01-01T01:31:00Z"`)
		time.Sleep(time.Minute)
		ask(t, srv, "GET", widgetsOfA, "").want(200, `"size":3`)
		ask(t, srv, "DELETE", widgetsOfA+"/w", "").want(200)
		watch.want(t, "0s ADDED w", "1m0s MODIFIED w", "2m0s DELETED w")
		// Waiting until a server is idle takes no time, and time passes when the server is idle.
		if now := time.Now().UTC().Format(time.TimeOnly); now != "01:32:00" {
			t.Errorf("it is %s, want 01:32:00", now)
		}
	})
}

func TestWatchesInABubbleEndAtTheirTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		least       time.Duration // server.Limits.MinWatchTimeout
		query       string
		after, less time.Duration // if less is 0, exactly after
	}{
		"by default":     {0, "", 30 * time.Minute, time.Hour},
		"as it is set":   {2 * time.Hour, "", 2 * time.Hour, 4 * time.Hour},
		"as it is asked": {0, "&timeoutSeconds=2700", 45 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				srv := servertest.Start(t, server.Options{Limits: server.Limits{MinWatchTimeout: test.least}}, widgets())
				watch := hear(t, srv, widgetsOfA+"?watch=1"+test.query)
				got := watch.end()
				if test.less == 0 && got != test.after || test.less != 0 && (got < test.after || got >= test.less) {
					t.Errorf("a watch ended after %v, want %v or more, less than %v", got, test.after, test.less)
				}
				if watch.want(t); watch.err.Error() != "EOF" {
					t.Errorf("a watch ended with %v, want EOF", watch.err)
				}
			})
		})
	}
}

// A watch with bookmarks has one about each minute, and one before its end.
func TestBookmarksInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, widgets())
		watch := hear(t, srv, widgetsOfA+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=600")
		if got := watch.end(); got != 10*time.Minute {
			t.Errorf("the watch ended after %v, want 10m", got)
		}
		events, last := watch.all(), time.Duration(0)
		for i, e := range events {
			period := e.after - last
			last = e.after
			if first, final := i == 0, i == len(events)-1; e.kind != "BOOKMARK" || period > 66*time.Second || period < time.Minute && !first && !final {
				t.Errorf("%v after %v: %v", period, last-period, e)
			}
		}
		if left := 10*time.Minute - last; left <= 0 || left > 5*time.Second {
			t.Errorf("heard %v, want the last of them just before the end", events)
		}
	})
}

// A watch can resume at its last event within server.Limits.CacheWindow.
func TestTheCacheWindowInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, widgets())
		create := func(name string) string {
			return metaOf(t, ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"`+name+`"}}`).want(201)).ResourceVersion
		}
		hear(t, srv, widgetsOfA+"?watch=1") // uses the cache
		from := create("a")
		create("b")
		resume := widgetsOfA + "?watch=1&resourceVersion=" + from
		time.Sleep(4 * time.Minute)
		hear(t, srv, resume).want(t, "0s ADDED b")
		time.Sleep(10 * time.Minute)
		create("c")
		hear(t, srv, resume).want(t, "0s ERROR")
		ask(t, srv, "GET", widgetsOfA+"?resourceVersionMatch=Exact&resourceVersion="+from, "").want(410)
	})
}

// An object of a kind with a TTL is deleted when the TTL has passed since its last write.
func TestATTLInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Widget", server.KindOptions[*Widget]{TTL: 3 * time.Hour}),
		}}}})
		ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"first"}}`).want(201)
		time.Sleep(time.Hour)
		watch := hear(t, srv, widgetsOfA+"?watch=1&timeoutSeconds=86400")
		ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"second"}}`).want(201)
		ask(t, srv, "PUT", widgetsOfA+"/first", `{"metadata":{"name":"first"},"spec":{"size":1}}`).want(200)
		time.Sleep(time.Hour)
		ask(t, srv, "PUT", widgetsOfA+"/second", `{"metadata":{"name":"second"},"spec":{"size":1}}`).want(200)

		time.Sleep(2*time.Hour - time.Nanosecond)
		ask(t, srv, "GET", widgetsOfA+"/first", "").want(200)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ask(t, srv, "GET", widgetsOfA+"/first", "").want(404)
		time.Sleep(5 * time.Hour)
		ask(t, srv, "GET", widgetsOfA, "").want(200, `"items":[]`)
		watch.want(t, "0s ADDED first", "0s ADDED second", "0s MODIFIED first", "1h0m0s MODIFIED second", "3h0m0s DELETED first", "4h0m0s DELETED second")
	})
}

// A request ends at its timeout, the server's or its own, and after that the server does not wait for it.
func TestRequestsInABubbleEndAtTheirTime(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{"": time.Hour, "?timeout=90s": 90 * time.Second} {
		t.Run("timeout"+query, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				srv := servertest.Start(t, server.Options{Limits: server.Limits{RequestTimeout: time.Hour}}, widgets())
				srv.Inject(servertest.Fault{Match: servertest.Match{Verbs: []string{"get"}}, Delay: 24 * time.Hour})
				began := time.Now()
				ask(t, srv, "GET", widgetsOfA+"/w"+query, "").want(504, `"reason":"Timeout"`)
				if got := time.Since(began); got != want {
					t.Errorf("answered after %v, want %v", got, want)
				}
			})
		})
	}
}

// A server that is closed waits for requests, ends watches at once, and waits for its goroutines.
func TestTheEndInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, widgets(), server.ExtensionFunc(func(h *server.Host) error {
			_ = h.Admit(admission.Plugin{Name: "own", Validator: admission.ValidatorFunc(func(context.Context, *admission.Request) error {
				time.Sleep(20 * time.Second)
				return nil
			})})
			h.Go(func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(40 * time.Second)
			})
			return nil
		}))
		watch := hear(t, srv, widgetsOfA+"?watch=1")
		var asking sync.WaitGroup
		asking.Go(func() { ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"w"}}`).want(201) })
		time.Sleep(5 * time.Second)
		began := time.Now()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 40*time.Second {
			t.Errorf("the end took %v, want the 40s of the work that took longest", took)
		}
		asking.Wait()
		if got := watch.end(); got != 5*time.Second {
			t.Errorf("a watch ended after %v, want 5s, when the server began to end", got)
		}
	})
}

// A server does not wait until clients that do not read have received its GOAWAY. net/http writes it with a lock held, and a
// goroutine that waits for a lock stops the time of a bubble.
func TestClientsThatDoNotReadDoNotDelayTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, widgets())
		for range 10 {
			raw, err := srv.DialContext(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, srv.Transport().TLSClientConfig)
			if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil { // and nothing after it
				t.Fatal(err)
			}
		}
		synctest.Wait()
		began := time.Now()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// Goroutines that a server leaves behind are reported in a bubble too, where waiting for them takes no time.
func TestALeakInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		srv, err := servertest.Run(server.Options{}, server.ExtensionFunc(func(h *server.Host) error {
			h.Go(func(context.Context) { go func() { <-release }() })
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Close(); err == nil || !strings.Contains(err.Error(), "left goroutines behind") {
			t.Errorf("the server ended with %v, want the goroutine that it left", err)
		}
		close(release)
	})
}

// Bubbles, and servers outside of bubbles, do not interfere by state of the process, such as the pools of net/http.
func TestBubblesSideBySide(t *testing.T) {
	t.Parallel()
	for i := range 40 {
		use := func(t *testing.T) {
			srv := servertest.New(t, widgets())
			ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"w"}}`).want(201)
			hear(t, srv, widgetsOfA+"?watch=1")
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if i%2 == 0 {
				inBubble(t, use)
				return
			}
			t.Parallel()
			use(t)
		})
	}
}
