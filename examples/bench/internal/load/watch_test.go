package load_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/load"
)

// log is a collection that can only be watched: revision n is its n-th change.
type log struct {
	mu      sync.Mutex
	events  int             // guarded by mu
	more    chan struct{}   // guarded by mu: closed with the next change
	asked   map[int]int     // guarded by mu: number of streams by the revision that they begin after
	clients map[string]bool // guarded by mu: addresses of connections

	most   int // events of one stream, after which the server ends it; 0 means all
	broken int // the number of the event that is an ERROR instead
}

func newLog() *log {
	return &log{more: make(chan struct{}), asked: make(map[int]int), clients: make(map[string]bool)}
}

func (l *log) change() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	close(l.more)
	l.more = make(chan struct{})
	return nil
}

func (l *log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	revision, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil || r.URL.Query().Get("watch") != "1" {
		http.Error(w, "no watch: "+r.URL.String(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.asked[revision]++
	l.clients[r.RemoteAddr] = true
	l.mu.Unlock()
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", revision)
	for sent := 0; ; {
		l.mu.Lock()
		events, more := l.events, l.more
		l.mu.Unlock()
		for ; revision < events; sent++ {
			if l.most > 0 && sent == l.most {
				return
			}
			revision++
			kind := "MODIFIED"
			if revision == l.broken {
				kind = "ERROR"
			}
			fmt.Fprintf(w, `{"type":"%s","object":{"metadata":{"resourceVersion":"%d"},"data":"%01000d"}}`+"\n", kind, revision, 0)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// count returns how many streams began after a revision, and the number of connections.
func (l *log) count(revision int) (streams, connections int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[revision], len(l.clients)
}

func TestCrowd(t *testing.T) {
	for _, tt := range []struct {
		name            string
		watchers, stuck int
		most, resumes   int
	}{
		{"some", 5, 0, 0, 0},
		{"more than a connection takes", load.PerConnection + 1, 0, 0, 0},
		{"one never reads", 5, 1, 0, 0},
		{"streams end after 50 events", 5, 0, 50, 5 * 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const events = 200 // more than fit into the window of a stuck reader
			l := newLog()
			l.most = tt.most
			target := serve(t, l.ServeHTTP)
			crowd, err := target.Watch(t.Context(), load.Watching{
				Collection: "/things", Revision: "0", Watchers: tt.watchers, Stuck: tt.stuck, Events: events,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer crowd.Close()
			connections := (tt.watchers+load.PerConnection-1)/load.PerConnection + tt.stuck
			if got, from := l.count(0); got != tt.watchers+tt.stuck || from != connections {
				t.Errorf("%d streams on %d connections are open, want %d on %d", got, from, tt.watchers+tt.stuck, connections)
			}
			for range events {
				if err := crowd.Send(l.change); err != nil {
					t.Fatal(err)
				}
			}
			if err := crowd.Send(l.change); err == nil {
				t.Error("more was sent than the watchers expect")
			}
			if err := crowd.Wait(t.Context(), 20*time.Second); err != nil {
				t.Fatal(err)
			}
			latencies := crowd.Latencies()
			if len(latencies) != tt.watchers*events || latencies[0] < 0 {
				t.Errorf("%d latencies from %v, want %d from 0", len(latencies), latencies[0], tt.watchers*events)
			}
			if crowd.Resumes() != tt.resumes {
				t.Errorf("%d streams were opened again, want %d", crowd.Resumes(), tt.resumes)
			}
			if again, _ := l.count(events - tt.most); tt.most > 0 && again != tt.watchers {
				t.Errorf("%d streams were opened after revision %d, want %d", again, events-tt.most, tt.watchers)
			}
		})
	}
}

func TestCrowdSaysWhatIsWrong(t *testing.T) {
	ctx := t.Context()
	l := newLog()
	l.broken = 3
	target := serve(t, l.ServeHTTP)
	_, err := target.Watch(ctx, load.Watching{Collection: "/things", Revision: "x", Watchers: 3, Events: 1})
	if err == nil || !strings.Contains(err.Error(), "no watch") {
		t.Errorf("watches that are refused: %v", err)
	}
	for _, tt := range []struct {
		name    string
		sent    int
		timeout time.Duration
		want    string
	}{
		{"an event of type ERROR", 5, time.Hour, `event {"type":"ERROR"`},
		{"events that do not come", 2, time.Millisecond, "deadline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog()
			l.broken = 3
			crowd, err := serve(t, l.ServeHTTP).Watch(ctx, load.Watching{Collection: "/things", Revision: "0", Watchers: 3, Events: 5})
			if err != nil {
				t.Fatal(err)
			}
			defer crowd.Close()
			for range tt.sent {
				if err := crowd.Send(l.change); err != nil {
					t.Fatal(err)
				}
			}
			wait, cancel := context.WithTimeout(ctx, tt.timeout)
			defer cancel()
			if err := crowd.Wait(wait, time.Minute); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the wait ended with %v, want %q", err, tt.want)
			}
		})
	}
}
