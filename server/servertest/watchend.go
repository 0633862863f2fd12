package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveWatch lets a watch begin, and ends it as the fault says.
func (f *injected) serveWatch(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &ending{ResponseWriter: w, cancel: cancel, left: f.Events, counts: f.Events > 0 || !f.cuts(), lasts: f.Lasts}
	defer out.stop()
	inner := r.WithContext(ctx)
	inner.Header = r.Header.Clone()
	inner.Header.Del("Accept-Encoding") // events are counted as they are written
	next.ServeHTTP(out, inner)
	if !out.over.Load() || r.Context().Err() != nil { // it ended by itself
		return
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Expired:
		writeErrorEvent(w, f.expiredWatch(r.URL.Query()))
	case f.Error != nil:
		writeErrorEvent(w, f.Error)
	}
}

// expiredWatch is what a watch is told whose resourceVersion is too old: by the cache of kube-apiserver, which does not
// reach back to it, or of one under way by etcd, whose history was compacted.
func (f *injected) expiredWatch(q url.Values) error {
	if f.cuts() {
		return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	from := since(q)
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, from+1))
}

// writeErrorEvent ends a watch with an ERROR event. Its client may be gone, which is all the same.
func writeErrorEvent(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	text, _ := json.Marshal(&status) // a Status always has a JSON form
	_, _ = w.Write(slices.Concat([]byte(`{"type":"ERROR","object":`), text, []byte("}\n")))
	_ = http.NewResponseController(w).Flush()
}

// ending is where a watch writes that is going to end. A watch is JSON, an event a line. Its handler uses it in one
// goroutine; the timer only ends the context, by which a watch ends as at its timeout.
type ending struct {
	http.ResponseWriter
	cancel context.CancelFunc
	counts bool // the watch ends after left events more
	left   int
	lasts  time.Duration // if > 0 the watch ends that long after it began
	timer  *time.Timer
	begun  bool // as a watch: with 200
	over   atomic.Bool
}

// WriteHeader implements http.ResponseWriter.
func (e *ending) WriteHeader(code int) {
	if code == http.StatusOK && !e.begun {
		e.begun = true
		if e.lasts > 0 {
			e.timer = time.AfterFunc(e.lasts, e.end)
		}
	}
	e.ResponseWriter.WriteHeader(code)
}

// end has the handler end the watch.
func (e *ending) end() {
	e.over.Store(true)
	e.cancel()
}

func (e *ending) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// Write implements http.ResponseWriter. Events beyond the last are dropped.
func (e *ending) Write(p []byte) (int, error) {
	if !e.begun || !e.counts {
		return e.ResponseWriter.Write(p)
	}
	n := 0
	for n < len(p) && e.left > 0 {
		line := bytes.IndexByte(p[n:], '\n')
		if line < 0 {
			n = len(p) // the rest of the event is still to come
			break
		}
		n += line + 1
		e.left--
	}
	if n > 0 {
		if n, err := e.ResponseWriter.Write(p[:n]); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// Flush implements http.Flusher.
func (e *ending) Flush() { _ = e.FlushError() } // http.Flusher has no way to say it

// FlushError is Flush for http.ResponseController. After the last event it ends the watch, at the latest here: events are
// flushed as soon as they are written, and so is the beginning of the watch.
func (e *ending) FlushError() error {
	err := http.NewResponseController(e.ResponseWriter).Flush()
	if e.begun && e.counts && e.left == 0 {
		e.end()
	}
	return err
}

// Unwrap is for http.ResponseController.
func (e *ending) Unwrap() http.ResponseWriter { return e.ResponseWriter }
