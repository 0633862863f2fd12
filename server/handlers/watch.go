package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/coder/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/response"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

const (
	bookmarkPeriod = time.Minute     // about how often a watch gets a bookmark
	bookmarkBefore = 2 * time.Second // how long before its end a watch gets the last bookmark
)

// watch answers a watch. Errors about the resourceVersion to begin at are sent in the stream, other errors with an HTTP status.
//
// The work before the watch runs is done in functions of their own. Otherwise their variables would be on the stack as long as
// the watch lasts, and the stack is the larger part of the memory of an idle watch.
func (c *call) watch(l *listRequest) error {
	w, err := c.newWatching(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(c.ctx.Context, w.end)
	defer cancel()
	defer c.stop.join(cancel)()
	defer c.watched.share(l)()

	if err := w.begin(ctx); err != nil {
		return err
	}
	defer w.close()
	w.serve(ctx)
	return nil
}

func (c *call) newWatching(l *listRequest) (*watching, error) {
	f, err := c.forms.Negotiate(c.r, wire.Events)
	if err != nil {
		return nil, err
	}
	w := &watching{call: c, asked: l, marked: l.AllowWatchBookmarks, unended: l.unended, end: time.Now().Add(c.watchTimeout(l))}
	w.writer.Begin(c.ctx.Context, c.Objects, f)
	return w, w.holdInitial()
}

// watchTimeout returns how long the watch lasts.
func (c *call) watchTimeout(l *listRequest) time.Duration {
	if l.TimeoutSeconds != nil && *l.TimeoutSeconds != 0 {
		const most = int64(math.MaxInt64 / time.Second)
		return time.Duration(min(max(*l.TimeoutSeconds, 0), most)) * time.Second
	}
	return time.Duration(float64(c.minTimeout) * (1 + rand.Float64()))
}

// watching is a running watch. One goroutine uses it. It holds no buffer while it waits for events: a buffer is taken from the
// pool of the resource for events, and returned when they are sent.
type watching struct {
	*call
	asked   *listRequest // nil when the watch runs
	marked  bool         // the client wants bookmarks
	unended bool         // the client wants no bookmark at the end of the initial events
	writer  wire.Writer
	end     time.Time
	out     sink
	timer   *time.Timer // requests the next bookmark from the storage
	least   int64       // the bytes that stay counted until the initial events are sent

	// The source of the events: exactly one is set.
	records storage.Watch
	objects registry.ObjectWatch
	refusal error // why the watch could not begin
}

// serve writes events until the watch ends.
func (w *watching) serve(ctx context.Context) {
	if authn.OpensWebSocket(w.r.Header) {
		w.serveWebSocket(ctx)
		return
	}
	w.run(ctx, w.newHTTPSink())
}

func (w *watching) run(ctx context.Context, out sink) {
	w.out = out
	w.writer.Within(ctx) // a watch ends in time although the object of an event is being converted
	out.begin()
	if w.r.Method == http.MethodHead {
		return
	}
	w.r, w.asked, w.ctx = nil, nil, nil // a running watch must not hold them: it does not need them
	w.schedule()
	for {
		if err := w.next(ctx); err != nil {
			w.finish(ctx, err)
			return
		}
	}
}

// next writes the next events, or returns the reason why there are no more.
func (w *watching) next(ctx context.Context) error {
	switch {
	case w.records != nil:
		events, err := w.records.Next(ctx)
		if err != nil {
			return err
		}
		return w.writeRecords(ctx, events)
	case w.objects != nil:
		e, err := w.objects.Next(ctx)
		if err != nil {
			return err
		}
		return w.writeObject(e)
	}
	return w.refusal
}

// finish ends the stream. It writes an ERROR event, unless the watch ended normally or the client is gone.
func (w *watching) finish(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) || errors.Is(err, errSinkClosed) {
		return
	}
	status := response.Status(err)
	frame := w.out.buffer()
	text, err := w.writer.AppendEvent(*frame, string(apiwatch.Error), wire.Item{Object: &status})
	if err != nil {
		return
	}
	if *frame = text; w.out.event() == nil {
		_ = w.out.flush() // the watch is over either way
	}
}

// begin opens the source of the events. The caller answers with the status of the error.
func (w *watching) begin(ctx context.Context) error {
	err := w.open(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil && w.ctx.Err() == nil:
		w.refusal = ctx.Err() // the watch ended before it began; like other watches, it ends without an error
	case inStream(err):
		w.refusal = err
	default:
		return err
	}
	return nil
}

func (w *watching) open(ctx context.Context) (err error) {
	if w.recordWatcher == nil {
		opts, call := w.asked.ListOptions, w.ctx.WithContext(ctx)
		if w.policy != nil { // the filters have released the request's policy, so that a running watch does not hold it
			call.Policy = w.policy.Policy(ctx)
		}
		w.objects, err = w.watcher.Watch(call, &opts)
		return err
	}
	opts, err := w.storageWatch(w.asked)
	if err != nil {
		return err
	}
	w.records, err = w.recordWatcher.WatchRecords(w.ctx.WithContext(ctx), opts)
	return err
}

// close releases what begin and run have opened.
func (w *watching) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.out != nil {
		w.out.close()
	}
	switch {
	case w.records != nil:
		w.records.Close()
	case w.objects != nil:
		w.objects.Close()
	}
}

// writeRecords writes the next events of a record storage, with one flush for all of them.
func (w *watching) writeRecords(ctx context.Context, events []storage.Event) error {
	sent := false
	items := w.eventItems(ctx, events)
	for i := range events {
		e := &events[i]
		if e.InitialEnd {
			w.least = 0
		}
		var err error
		switch {
		case e.Type == apiwatch.Bookmark && (!w.marked || e.InitialEnd && w.unended):
			continue
		case e.Type == apiwatch.Bookmark:
			err = w.writeBookmark(e)
		case items != nil:
			err = w.writeItem(string(e.Type), items[i])
		default:
			err = w.writeItem(string(e.Type), eventItem(e))
		}
		if err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		w.sent()
		return nil
	}
	return w.flush()
}

func (w *watching) flush() error {
	err := w.out.flush()
	w.sent()
	return err
}

// writeItem writes an event of a record.
func (w *watching) writeItem(kind string, it wire.Item) error {
	size := it.Record.Body.Size()
	if size > freeEvents {
		if form, ok := w.writer.SharedForm(kind, &it); ok {
			return w.writeShared(form, it, size)
		}
	}
	frame := w.out.buffer()
	if err := w.holdEvents(len(*frame) + size); err != nil {
		return err
	}
	text, err := w.writer.AppendEvent(*frame, kind, it)
	if err != nil {
		return err
	}
	return w.add(frame, text, false)
}

// writeShared writes a large event. All watches that send the event in this form share its bytes.
func (w *watching) writeShared(form wire.SharedForm, it wire.Item, size int) error {
	end, err := w.sending.begin(w.budget, shownForm{it.Forms, form}, min(int64(size), w.most))
	if err != nil {
		return err
	}
	defer end()
	text, err := w.writer.SharedEvent(form, it)
	if err != nil {
		return err
	}
	if err := w.out.shared(text); err != nil {
		return err
	}
	if w.hooks.Event != nil {
		w.hooks.Event(len(text))
	}
	return nil
}

func (w *watching) writeBookmark(e *storage.Event) error {
	frame := w.out.buffer()
	text, err := w.appendBookmark(*frame, e)
	w.schedule()
	if err != nil {
		return err
	}
	return w.add(frame, text, e.InitialEnd)
}

func eventItem(e *storage.Event) wire.Item {
	return wire.Item{Record: e.Record, Forms: e.Forms, Gone: e.Type == apiwatch.Deleted}
}

// eventItems returns the items of events if the kind is converted in runs, or else nil.
func (w *watching) eventItems(ctx context.Context, events []storage.Event) []wire.Item {
	if w.many == nil {
		return nil
	}
	t := w.newRun(ctx)
	t.stream = true
	for i := range events {
		t.add(eventItem(&events[i]))
	}
	return t.items
}

// writeObject writes the next event of a storage of objects.
func (w *watching) writeObject(e registry.ObjectEvent) error {
	it := wire.Item{Object: e.Object}
	if e.Type == string(apiwatch.Bookmark) {
		if !w.marked {
			return nil
		}
		var err error
		if it, err = w.bookmarkItem(e.Object); err != nil {
			return err
		}
	}
	frame, text, err := w.appendObject(e.Type, it)
	if err != nil {
		return err
	}
	if err := w.add(frame, text, it.InitialEnd); err != nil {
		return err
	}
	w.least = 0 // it is not known if more initial events follow
	return w.flush()
}

// appendObject appends an event of an object to the buffer of the sink. The length of the event is not known before it is
// encoded. At most as many events as there are processors are encoded at once, so that only that many are not counted.
func (w *watching) appendObject(kind string, it wire.Item) (frame *[]byte, text []byte, err error) {
	w.making <- struct{}{}
	defer func() { <-w.making }()
	frame = w.out.buffer()
	if text, err = w.writer.AppendEvent(*frame, kind, it); err != nil {
		return nil, nil, err
	}
	return frame, text, w.holdEvents(len(text))
}

// add stores text, which is the contents of frame with an event appended, in the buffer frame of the sink, and calls the hooks.
func (w *watching) add(frame *[]byte, text []byte, initialEnd bool) error {
	size := len(text) - len(*frame)
	if err := w.holdEvents(len(text)); err != nil {
		*frame = nil
		return err
	}
	*frame = text
	if err := w.out.event(); err != nil {
		return err
	}
	if w.hooks.Event != nil {
		w.hooks.Event(size)
	}
	if initialEnd && w.hooks.InitialEnd != nil {
		w.hooks.InitialEnd(w.writer.Context())
	}
	return nil
}

// bookmarkItem returns an item with an empty object of the kind. The object has the resourceVersion and the annotations of obj,
// which may mark the end of the initial events.
func (e *endpoint) bookmarkItem(obj runtime.Object) (it wire.Item, err error) {
	from, err := meta.Accessor(obj)
	if err != nil {
		return it, err
	}
	it.Bookmark, it.InitialEnd = true, from.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	it.Object, err = e.mark(from.GetResourceVersion(), from.GetAnnotations())
	return it, err
}

func (w *watching) appendBookmark(dst []byte, e *storage.Event) ([]byte, error) {
	marks, err := w.marks()
	if err != nil {
		return dst, err
	}
	it := wire.Item{Record: storage.Record{Body: marks.plain, Revision: e.Record.Revision}, Bookmark: true, InitialEnd: e.InitialEnd}
	if e.InitialEnd {
		it.Record.Body = marks.initialEnd
	}
	if w.writer.NeedsObjects() {
		// The record is not decoded: decoding sets defaults, and an empty object cannot always be converted.
		if it.Object, err = w.mark(wire.ResourceVersion(e.Record.Revision), markAnnotations(e.InitialEnd)); err != nil {
			return dst, err
		}
	}
	return w.writer.AppendEvent(dst, string(apiwatch.Bookmark), it)
}

// schedule arranges that the storage is requested to send a bookmark: periodically, and shortly before the end of the watch. A
// storage of objects sends bookmarks by itself.
func (w *watching) schedule() {
	if w.records == nil || !w.marked {
		return
	}
	wait := bookmarkPeriod + time.Duration(rand.Int64N(int64(bookmarkPeriod/10)))
	left := time.Until(w.end) - bookmarkBefore
	if left <= 0 {
		return
	}
	wait = min(wait, left)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.records.RequestProgress)
		return
	}
	w.timer.Reset(wait)
}

// serveWebSocket runs a watch over a WebSocket: each event is one message, a text message for JSON. The client sends nothing. The
// goroutine that reads detects when the client closes the connection.
func (w *watching) serveWebSocket(ctx context.Context) {
	raw, rw, err := http.NewResponseController(w.w).Hijack()
	if err != nil { // HTTP/2, or a ResponseWriter that cannot be hijacked
		w.fail(apierrors.NewBadRequest(fmt.Sprintf("unable to upgrade to a websocket: %v", err)))
		return
	}
	conn, err := websocket.Accept(&hijacked{raw, rw, http.Header{"Content-Type": {w.writer.StreamType()}}}, w.r, &websocket.AcceptOptions{
		Subprotocols:       offered(w.r.Header),
		InsecureSkipVerify: true, // of the origin: filters.Origin checks it for all WebSockets
	})
	if err != nil { // Accept has answered
		_ = rw.Flush()
		_ = raw.Close()
		return
	}
	conn.SetReadLimit(-1) // no message that is read is kept in memory
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	defer func() { // also runs after a panic of the storage
		_ = raw.Close()
		<-gone
	}()
	go func() {
		defer close(gone)
		defer cancel()
		for { // until the connection ends
			_, message, err := conn.Reader(context.Background())
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, message)
		}
	}()
	w.run(ctx, &socketSink{conn: conn, raw: raw, writer: &w.writer, limit: w.Resource.write})
	_ = raw.SetDeadline(time.Now().Add(socketCloseTime)) // otherwise a client that sends one endless message would delay Close
	_ = conn.Close(websocket.StatusNormalClosure, "")
}
