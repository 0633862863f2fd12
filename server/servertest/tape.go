package servertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

// record is the filter for recordings.
func (i *interceptor) record(now *interception, w http.ResponseWriter, r *http.Request, info *request.Info, next http.Handler) {
	e := &entry{limit: i.bodyLimit(), query: r.URL.RawQuery}
	for _, rec := range now.recordings {
		if rec.match.matches(r, info) {
			e.recordings = append(e.recordings, rec)
		}
	}
	if len(e.recordings) == 0 {
		next.ServeHTTP(w, r)
		return
	}
	e.req = Request{
		Time: time.Now(), Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name, Method: r.Method, Path: r.URL.Path,
		UserAgent: r.UserAgent(), ContentType: r.Header.Get("Content-Type"),
	}
	for _, rec := range e.recordings {
		rec.add(e)
	}
	ctx := r.Context()
	r = r.WithContext(context.WithValue(ctx, entryKey{}, e))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = tape{r.Body, e}
	}
	returned := false
	defer func() { // deferred, because a panic goes on
		e.end(returned && !errors.Is(ctx.Err(), context.Canceled))
	}()
	next.ServeHTTP(e.writer(w), r)
	returned = true
}

// bodyLimit returns the maximum size of a recorded body. No handler of an API reads more.
func (i *interceptor) bodyLimit() int {
	if i.maxBody > 0 {
		return int(i.maxBody)
	}
	return 3 << 20
}

// tell wakes the recordings when the request is answered or has ended.
func (e *entry) tell() {
	for _, rec := range e.recordings {
		rec.answered()
	}
}

func (e *entry) answered(code int) {
	if code < http.StatusOK && code != http.StatusSwitchingProtocols { // a final header will follow
		return
	}
	first := false
	e.change(func(req *Request) {
		if first = req.Code == 0; first {
			req.Code = code
		}
	})
	if first {
		e.tell()
	}
}

func (e *entry) end(completed bool) {
	e.change(func(req *Request) {
		if completed && req.Code == 0 {
			req.Code = http.StatusOK // the code of net/http for a handler that writes nothing
		}
		req.Ended, req.Completed = true, completed
	})
	e.tell()
}

// tape is a reader that keeps the bytes that are read from a body.
type tape struct {
	io.ReadCloser
	e *entry
}

// Read implements io.Reader.
func (t tape) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.e.change(func(req *Request) {
			req.Sent = append(req.Sent, p[:min(n, t.e.limit-len(req.Sent))]...)
		})
	}
	return n, err
}

// writer returns a ResponseWriter that records the code of the answer.
func (e *entry) writer(w http.ResponseWriter) http.ResponseWriter {
	n := noting{w, e}
	if h, ok := w.(http.Hijacker); ok {
		return notingHijacker{n, h}
	}
	return n
}

type noting struct {
	http.ResponseWriter
	e *entry
}

// WriteHeader implements http.ResponseWriter. It records the code before the client can see it.
func (n noting) WriteHeader(code int) {
	n.e.answered(code)
	n.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (n noting) Write(p []byte) (int, error) {
	n.e.answered(http.StatusOK)
	return n.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (n noting) Flush() { _ = n.FlushError() } // http.Flusher cannot return an error

// FlushError is Flush for http.ResponseController.
func (n noting) FlushError() error {
	n.e.answered(http.StatusOK)
	return http.NewResponseController(n.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (n noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// notingHijacker is a noting whose connection can be hijacked.
type notingHijacker struct {
	noting
	hijacker http.Hijacker
}

// Hijack implements http.Hijacker.
func (n notingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := n.hijacker.Hijack()
	if err == nil {
		n.e.answered(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}
