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

// serveWatch serves a watch, and ends it as the fault requires.
func (f *injected) serveWatch(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &ending{ResponseWriter: w, cancel: cancel, left: f.Events, counts: f.Events > 0 || !f.cuts(), lasts: f.Lasts}
	defer out.stop()
	inner := r.WithContext(ctx)
	inner.Header = r.Header.Clone()
	inner.Header.Del("Accept-Encoding") // compressed events could not be counted
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

// expiredWatch returns the error for a watch whose resourceVersion is too old. For a new watch it is that of kube-apiserver's
// cache, which does not reach back so far. For a watch in progress it is that of etcd after a compaction.
func (f *injected) expiredWatch(q url.Values) error {
	if f.cuts() {
		return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	from := since(q)
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, from+1))
}

// writeErrorEvent ends a watch with an ERROR event. It ignores errors, because the client may be gone.
func writeErrorEvent(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	text, _ := json.Marshal(&status) // a Status can always be encoded
	_, _ = w.Write(slices.Concat([]byte(`{"type":"ERROR","object":`), text, []byte("}\n")))
	_ = http.NewResponseController(w).Flush()
}

// ending is the ResponseWriter of a watch that will be ended. The watch is JSON with one event per line. Its handler uses it in
// one goroutine. The timer only cancels the context, which ends the watch as its timeout would.
type ending struct {
	http.ResponseWriter
	cancel context.CancelFunc
	counts bool // the watch ends after left more events
	left   int
	lasts  time.Duration // if positive, the watch ends this long after it began
	timer  *time.Timer
	begun  bool // the watch was answered with 200
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

// end makes the handler end the watch.
func (e *ending) end() {
	e.over.Store(true)
	e.cancel()
}

func (e *ending) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// Write implements http.ResponseWriter. It drops events after the last one.
func (e *ending) Write(p []byte) (int, error) {
	if !e.begun || !e.counts {
		return e.ResponseWriter.Write(p)
	}
	n := 0
	for n < len(p) && e.left > 0 {
		line := bytes.IndexByte(p[n:], '\n')
		if line < 0 {
			n = len(p) // the rest of the event follows
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
func (e *ending) Flush() { _ = e.FlushError() } // http.Flusher cannot return an error

// FlushError is Flush for http.ResponseController. After the last event it ends the watch. Events, and the beginning of the
// watch, are flushed as soon as they are written, so it is called in time.
func (e *ending) FlushError() error {
	err := http.NewResponseController(e.ResponseWriter).Flush()
	if e.begun && e.counts && e.left == 0 {
		e.end()
	}
	return err
}

// Unwrap is for http.ResponseController.
func (e *ending) Unwrap() http.ResponseWriter { return e.ResponseWriter }
