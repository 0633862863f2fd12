package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

const (
	bookmarkPeriod = time.Minute     // about how often an idle watch gets a bookmark
	bookmarkBefore = 2 * time.Second // how long before its end it gets the last
)

// watch answers a watch. Errors about where it was to begin are told in the stream, others by an HTTP status.
func (c *call) watch(l *listing) error {
	f, err := c.negotiate(eventStream)
	if err != nil {
		return err
	}
	timeout := c.watchTimeout(l)
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	defer c.stop.join(cancel)()

	w := &watching{call: c, listing: l, form: f, end: time.Now().Add(timeout)}
	if f.isTable() {
		w.table = c.newTable(f)
	}
	next, closeSource, err := w.open(ctx)
	switch {
	case err == nil:
		defer closeSource()
	case ctx.Err() != nil && c.ctx.Err() == nil:
		next = nil // ended before it began, as watches end: cleanly
	case inStream(err):
		first := err
		next = func(context.Context) error { return first }
	default:
		return err
	}
	w.serve(ctx, next)
	return nil
}

// watchTimeout is how long the watch lasts.
func (c *call) watchTimeout(l *listing) time.Duration {
	if l.TimeoutSeconds != nil && *l.TimeoutSeconds != 0 {
		const most = int64(math.MaxInt64 / time.Second)
		return time.Duration(min(max(*l.TimeoutSeconds, 0), most)) * time.Second
	}
	return time.Duration(float64(c.minTimeout) * (1 + rand.Float64()))
}

// watching is a watch under way. One goroutine uses it.
type watching struct {
	*call
	listing *listing
	form    form
	table   *table // nil: no Table
	end     time.Time
	out     sink
	frame   []byte
	ask     func()      // asks the storage for a bookmark; nil: it sends its own
	timer   *time.Timer // of the next ask
}

// serve writes events until the watch ends. next writes the events that come next, or returns why there are no
// more; nil ends the watch at once.
func (w *watching) serve(ctx context.Context, next func(context.Context) error) {
	if isWebSocket(w.r) {
		w.serveWebSocket(ctx, next)
		return
	}
	out := w.newHTTPSink()
	defer out.close()
	defer w.stopBookmarks()
	if w.r.Method == http.MethodHead {
		next = nil
	}
	w.run(ctx, out, next)
}

func (w *watching) run(ctx context.Context, out sink, next func(context.Context) error) {
	w.out = out
	out.begin()
	w.schedule()
	for next != nil {
		if err := next(ctx); err != nil {
			w.finish(ctx, err)
			return
		}
	}
}

// finish ends the stream: with an ERROR event unless it ends as watches do.
func (w *watching) finish(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) || errors.Is(err, errSinkClosed) {
		return
	}
	status := watchStatus(err)
	text, _ := json.Marshal(&status) // a Status always has a JSON form
	w.frame = append(append(append(w.frame[:0], `{"type":"ERROR","object":`...), text...), "}\n"...)
	if w.out.event(w.frame) == nil {
		_ = w.out.flush() // the watch is over either way
	}
}

// open begins the watch. It returns what serve needs.
func (w *watching) open(ctx context.Context) (next func(context.Context) error, closeSource func(), err error) {
	if w.recordWatcher == nil {
		opts := w.listing.ListOptions
		source, err := w.watcher.Watch(ctx, &opts)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) error { return w.nextObject(ctx, source) }, source.Close, nil
	}
	opts, err := w.storageWatch(w.listing)
	if err != nil {
		return nil, nil, err
	}
	source, err := w.recordWatcher.WatchRecords(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	w.ask = source.RequestProgress
	return func(ctx context.Context) error { return w.nextRecords(ctx, source) }, source.Close, nil
}

// nextRecords writes the next events of a storage, with one flush for all.
func (w *watching) nextRecords(ctx context.Context, source storage.Watch) error {
	events, err := source.Next(ctx)
	if err != nil {
		return err
	}
	sent := false
	for _, e := range events {
		if e.Type == apiwatch.Bookmark {
			if !w.listing.AllowWatchBookmarks {
				continue
			}
			w.frame, err = w.appendBookmark(w.frame[:0], e)
			w.schedule()
		} else {
			w.frame, err = w.appendEvent(w.frame[:0], string(e.Type), item{rec: e.Record})
		}
		if err != nil {
			return err
		}
		if err := w.out.event(w.frame); err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		return nil
	}
	return w.out.flush()
}

// nextObject writes the next event of a storage that has objects.
func (w *watching) nextObject(ctx context.Context, source registry.ObjectWatch) error {
	e, err := source.Next(ctx)
	if err != nil {
		return err
	}
	it := item{obj: e.Object}
	if e.Type == string(apiwatch.Bookmark) {
		if !w.listing.AllowWatchBookmarks {
			return nil
		}
		if it.obj, err = w.bookmarkObject(e.Object); err != nil {
			return err
		}
	}
	if w.frame, err = w.appendEvent(w.frame[:0], e.Type, it); err != nil {
		return err
	}
	if err := w.out.event(w.frame); err != nil {
		return err
	}
	return w.out.flush()
}

// bookmarkObject is an empty object of the kind with the resourceVersion and annotations of obj.
func (e *endpoint) bookmarkObject(obj runtime.Object) (runtime.Object, error) {
	from, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	mark := e.emptyObject()
	to, err := meta.Accessor(mark)
	if err != nil {
		return nil, err
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetAnnotations(from.GetAnnotations())
	return mark, nil
}

// appendEvent appends one event, with the newline after it.
func (w *watching) appendEvent(dst []byte, kind string, it item) ([]byte, error) {
	dst = appendString(append(dst, `{"type":`...), kind)
	dst = append(dst, `,"object":`...)
	var err error
	if w.table != nil {
		w.table.now, w.table.lenient = time.Now(), kind == string(apiwatch.Bookmark)
		dst, err = w.table.appendAlone(dst, w.ctx, it)
		w.table.headless()
	} else {
		dst, err = w.appendForm(dst, it, w.form)
	}
	return append(dst, "}\n"...), err
}

func (w *watching) appendBookmark(dst []byte, e storage.Event) ([]byte, error) {
	rec := storage.Record{Body: w.marks.plain, Revision: e.Record.Revision}
	if !e.InitialEnd {
		return w.appendEvent(dst, string(apiwatch.Bookmark), item{rec: rec})
	}
	rec.Body = w.marks.initialEnd
	if w.table != nil && w.table.include != metav1.IncludeObject {
		// The row must show the annotation, whatever rows were to show.
		include := w.table.include
		w.table.include = metav1.IncludeMetadata
		defer func() { w.table.include = include }()
	}
	return w.appendEvent(dst, string(apiwatch.Bookmark), item{rec: rec})
}

// schedule asks the storage for a bookmark in a while: periodically, and shortly before the end.
func (w *watching) schedule() {
	if w.ask == nil || !w.listing.AllowWatchBookmarks {
		return
	}
	wait := bookmarkPeriod + time.Duration(rand.Int64N(int64(bookmarkPeriod/10)))
	left := time.Until(w.end) - bookmarkBefore
	if left <= 0 {
		return
	}
	wait = min(wait, left)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.ask)
		return
	}
	w.timer.Reset(wait)
}

func (w *watching) stopBookmarks() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
