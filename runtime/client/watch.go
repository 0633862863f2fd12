package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch.
type Event struct {
	Type   watch.EventType // Added, Modified, Deleted or Bookmark
	Object json.RawMessage // the object in JSON; the caller's own
}

// Watch is a stream of events. Next must be called by one goroutine at a time; Close may be called by any goroutine.
type Watch struct {
	client  *Client
	request *Request
	body    io.Closer
	limited *limitedReader
	decoder *json.Decoder
	cancel  context.CancelFunc
	stop    func() bool // removes the watch from the watches that the client's Close ends
	once    sync.Once   // for Close
}

// Watch starts a watch of the objects of a resource with the options o. The caller must close it. ctx is for the whole watch. The
// caller sets o.ResourceVersion, o.AllowWatchBookmarks and so on; o.Watch need not be set.
func (c *Client) Watch(ctx context.Context, t Target, o metav1.ListOptions) (*Watch, error) {
	o.Watch = true
	r, err := t.request(http.MethodGet, listQuery(o))
	if err != nil {
		return nil, err
	}
	// In a compressed stream, events would be delayed in the compressor.
	r.Header = http.Header{"Accept-Encoding": {"identity"}}
	_, release, err := c.begin(ctx)
	if err != nil {
		return nil, c.problem(r, err)
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	late := time.AfterFunc(c.opts.Timeout, cancel)
	resp, err := c.send(ctx, r)
	if !late.Stop() && err == nil {
		_ = resp.Body.Close()
		err = c.problem(r, context.DeadlineExceeded)
	}
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	limited := &limitedReader{from: resp.Body, max: c.opts.MaxAnswer}
	return &Watch{client: c, request: r, body: resp.Body, limited: limited, decoder: json.NewDecoder(limited), cancel: cancel, stop: stop}, nil
}

// Next waits for the next event and returns it. The error is io.EOF if the server has ended the stream properly, and a
// StatusError if the stream has ended with an ERROR event. Otherwise it is a *url.Error: the connection was lost, perhaps in the
// middle of an event (io.ErrUnexpectedEOF, never io.EOF), or the context or the Client has ended. After an error the watch is
// over.
func (w *Watch) Next() (Event, error) {
	w.limited.left = w.limited.max
	var e struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := w.decoder.Decode(&e); err != nil {
		w.Close()
		if err == io.EOF && w.client.life.Err() == nil {
			return Event{}, io.EOF
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Event{}, w.client.problem(w.request, err)
	}
	switch t := watch.EventType(e.Type); t {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		return Event{t, e.Object}, nil
	case watch.Error:
		w.Close()
		if err := outbound.StatusError(e.Object); err != nil {
			return Event{}, err
		}
		return Event{}, apierrors.NewInternalError(errors.New("the watch ended with an event of the type ERROR without a Status"))
	}
	w.Close()
	return Event{}, w.client.problem(w.request, fmt.Errorf("an event has the unknown type %q", e.Type))
}

// Close ends the watch. A call of Next in progress returns an error. A second call has no effect.
func (w *Watch) Close() {
	w.once.Do(func() {
		w.stop()
		w.cancel()
		_ = w.body.Close()
	})
}

// limitedReader limits the bytes that are read for one event.
type limitedReader struct {
	from      io.Reader
	max, left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, tooLong(l.max)
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
