package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// PerConnection is how many watches share a connection, which is the limit of kube-apiserver.
const PerConnection = 100

// maxResumes is how often one watcher may open its stream again after a server has ended it.
const maxResumes = 1000

// Crowd is many watchers of one collection. Each expects the same number of MODIFIED events. The time at which a watcher reads
// the n-th event is compared with the time at which the n-th write began. Concurrent writes may be seen in another order, which
// changes a latency by the time of a write at most.
type Crowd struct {
	target     Target
	collection string // path
	revision   string // the revision at which the watchers begin
	expected   int
	epoch      time.Time

	sent      []atomic.Int64 // by event: when the write began, in nanoseconds after epoch
	begun     atomic.Int64   // number of writes that began
	remaining atomic.Int64   // number of watchers that have not read all events
	resumes   atomic.Int64
	done      chan struct{} // closed when no watcher is left
	stop      context.CancelCauseFunc
	ctx       context.Context // context of the streams, which outlive the call that opens them
	wait      sync.WaitGroup
	watchers  []*watcher
	stuck     []io.Closer
	transport []*http.Transport
}

// Watching describes a crowd.
type Watching struct {
	Collection string // path
	Revision   string // the watchers see the changes after it
	// Watchers is the number of watchers that read.
	Watchers int
	Stuck    int // number of additional watchers that never read
	Events   int // number of events that each watcher expects
}

type watcher struct {
	crowd     *Crowd
	transport *http.Transport
	revision  []byte // of the last event
	latencies []time.Duration
}

// Watch opens the streams and returns when the server has answered all of them.
func (t Target) Watch(ctx context.Context, w Watching) (*Crowd, error) {
	c := &Crowd{
		target: t, collection: w.Collection, revision: w.Revision, expected: w.Events, epoch: time.Now(),
		sent: make([]atomic.Int64, w.Events), done: make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	c.remaining.Store(int64(w.Watchers))
	if err := c.open(w); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// openers is how many streams are opened concurrently.
const openers = 8

func (c *Crowd) open(w Watching) error {
	for range w.Stuck {
		if err := c.openStuck(); err != nil {
			return err
		}
	}
	for i := range w.Watchers {
		if i%PerConnection == 0 {
			c.transport = append(c.transport, c.target.transport())
		}
		c.watchers = append(c.watchers, &watcher{
			crowd: c, transport: c.transport[len(c.transport)-1], revision: []byte(c.revision),
			latencies: make([]time.Duration, 0, w.Events),
		})
	}
	results := make(chan error, w.Watchers)
	opening := make(chan struct{}, openers)
	for _, watcher := range c.watchers {
		opening <- struct{}{}
		c.wait.Go(func() { // ends with its stream, or with Close
			stream, err := watcher.open()
			<-opening
			results <- err
			if err == nil {
				watcher.follow(stream)
			}
		})
	}
	for range c.watchers {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

// StuckAfter is how many bytes a server can send to a stuck reader, by the window of HTTP/2, before it must wait.
const StuckAfter = 64 << 10

// openStuck opens a stream that is never read, on a connection of its own with a small window.
func (c *Crowd) openStuck() error {
	transport := c.target.transport()
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: StuckAfter, MaxReceiveBufferPerConnection: StuckAfter}
	c.transport = append(c.transport, transport)
	stream, err := (&watcher{crowd: c, transport: transport, revision: []byte(c.revision)}).open()
	if err != nil {
		return err
	}
	c.stuck = append(c.stuck, stream)
	return nil
}

// open starts a watch after the watcher's revision.
func (w *watcher) open() (io.ReadCloser, error) {
	query := url.Values{"watch": {"1"}, "resourceVersion": {string(w.revision)}, "allowWatchBookmarks": {"true"}}
	r := Request{Path: w.crowd.collection + "?" + query.Encode()}
	resp, err := w.crowd.target.send(w.crowd.ctx, w.transport, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, statusError(r, resp)
	}
	return resp.Body, nil
}

// follow reads until the watcher has seen the expected events, and then until the stream ends. If the server ends the stream
// earlier, follow opens it again at the last revision, as clients do.
func (w *watcher) follow(stream io.ReadCloser) {
	lines := bufio.NewReaderSize(nil, 16<<10)
	for n := 0; ; n++ {
		lines.Reset(stream)
		err := w.read(lines)
		stream.Close()
		if w.crowd.ctx.Err() != nil || len(w.latencies) >= w.crowd.expected {
			return
		}
		if failed := new(eventError); errors.As(err, &failed) || n == maxResumes {
			w.crowd.stop(fmt.Errorf("watch of %s after %d of %d events: %w", w.crowd.collection, len(w.latencies), w.crowd.expected, err))
			return
		}
		w.crowd.resumes.Add(1)
		if stream, err = w.open(); err != nil {
			w.crowd.stop(fmt.Errorf("resuming a watch at %s: %w", w.revision, err))
			return
		}
	}
}

// eventError is an event of type ERROR.
type eventError struct{ line string }

// Error implements error.
func (e *eventError) Error() string { return "event " + e.line }

// read reads the lines of a stream to its end.
func (w *watcher) read(lines *bufio.Reader) error {
	revisionMark := []byte(`"resourceVersion":"`)
	modifiedHead, errorHead := []byte(`{"type":"MODIFIED"`), []byte(`{"type":"ERROR"`)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if i := bytes.Index(line, revisionMark); i >= 0 {
			rest := line[i+len(revisionMark):]
			if end := bytes.IndexByte(rest, '"'); end > 0 {
				w.revision = append(w.revision[:0], rest[:end]...)
			}
		}
		switch {
		case bytes.HasPrefix(line, modifiedHead):
			w.event()
		case bytes.HasPrefix(line, errorHead):
			return &eventError{line: string(line[:min(len(line), 300)])}
		}
	}
}

// event records the time of one event. Surplus events are not timed.
func (w *watcher) event() {
	c, n := w.crowd, len(w.latencies)
	if n >= c.expected {
		return
	}
	w.latencies = append(w.latencies, time.Since(c.epoch)-time.Duration(c.sent[n].Load()))
	if n+1 == c.expected && c.remaining.Add(-1) == 0 {
		close(c.done)
	}
}

// Send calls write, which must make one change that all watchers see, and records the time. It may be called concurrently, once
// for each expected event.
func (c *Crowd) Send(write func() error) error {
	n := c.begun.Add(1) - 1
	if n >= int64(c.expected) {
		return fmt.Errorf("the watchers expect no more than %d events", c.expected)
	}
	c.sent[n].Store(int64(time.Since(c.epoch)))
	return write()
}

// Wait waits until all watchers have read all events.
func (c *Crowd) Wait(ctx context.Context, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%d of %d watchers have not read all %d events after %v", c.remaining.Load(), len(c.watchers), c.expected, timeout)
	}
}

// Close ends the streams.
func (c *Crowd) Close() {
	c.stop(errors.New("the watchers are closed"))
	for _, stream := range c.stuck {
		stream.Close()
	}
	c.wait.Wait()
	for _, transport := range c.transport {
		transport.CloseIdleConnections()
	}
}

// Resumes returns how often streams were opened again because the server had ended them.
func (c *Crowd) Resumes() int { return int(c.resumes.Load()) }

// Latencies returns the times from the beginning of a write to the reading of its event, for all events of all watchers, sorted.
// It must be called after Wait has returned nil.
func (c *Crowd) Latencies() []time.Duration {
	var all []time.Duration
	for _, w := range c.watchers {
		all = append(all, w.latencies...)
	}
	slices.Sort(all)
	return all
}
