package servertest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// Record records the requests that match from now on, until Stop or the server's end: those that are refused too, and
// those that a [Fault] befalls. There may be any number of recordings at a time.
//
//	rec := srv.Record(servertest.Match{Verbs: []string{"create", "update", "patch", "delete"}})
//	... // what the test is about
//	rec.Golden(t, "testdata/reconcile.golden")
//
// A Match that makes no sense is told as a [Fault] is that does not.
func (s *Server) Record(m Match) *Recording {
	m.Verbs, m.Resources = slices.Clone(m.Verbs), slices.Clone(m.Resources)
	rec := &Recording{match: m, scheme: s.Scheme(), change: make(chan struct{})}
	rec.stop = func() {
		s.intercept.change(func(now *interception) {
			now.recordings = slices.DeleteFunc(now.recordings, func(r *Recording) bool { return r == rec })
		})
	}
	if err := m.check(s.Catalogue().Kinds()); err != nil {
		s.intercept.mistaken("Record", err)
		return rec
	}
	s.intercept.change(func(now *interception) { now.recordings = append(now.recordings, rec) })
	return rec
}

// Recording is what [Server.Record] records. It holds the requests with their bodies until Reset. Its methods may be called
// concurrently.
type Recording struct {
	match  Match
	scheme *runtime.Scheme
	stop   func()

	mu      sync.Mutex    // guards all below
	entries []*entry      // in the order in which they came
	change  chan struct{} // closed, and replaced, when a request is answered
}

// Request is one request, and what became of it.
type Request struct {
	Time time.Time // when it came
	// Verb is that of authorization. An apply is a patch there.
	Verb                                  string
	Group, Version, Resource, Subresource string
	// Namespace and Name are those of the path. A create has its name from the body; it is "" while the server has yet to
	// generate it.
	Namespace, Name string
	Method, Path    string
	// Query has the options: fieldManager, dryRun, labelSelector and so on.
	Query url.Values
	// User is who made it; "" if that was not found out.
	User                   string
	UserAgent, ContentType string
	// Body is the body as JSON, whatever it was sent as; nil: there was none, it is none that can be read, or the server
	// did not read it. Sent is it as it was sent, as far as the server read it. They may share memory.
	Body json.RawMessage
	Sent []byte
	// Code is that of the answer; 0: there is none, or none yet. That of a watch is known when it has begun.
	Code int
	// Ended says that the request is over, and Completed that its answer was given in full: neither did the server abort
	// the connection, nor had the client gone.
	Ended, Completed bool
}

// IsApply reports whether the request applies a configuration.
func (r *Request) IsApply() bool {
	return isApply(r.Verb, r.ContentType)
}

// Requests are those recorded until now, in the order in which they came, those under way included. The slice is the
// caller's.
func (r *Recording) Requests() []Request {
	r.mu.Lock()
	entries := slices.Clone(r.entries)
	r.mu.Unlock()
	var out []Request
	for _, e := range entries {
		if one, ok := e.request(r.scheme, r.match.User); ok {
			out = append(out, one)
		}
	}
	return out
}

// Reset forgets what is recorded, requests under way included.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = nil
}

// Stop ends the recording; what is recorded stays. Requests under way are recorded to their end. A second Stop does
// nothing.
func (r *Recording) Stop() { r.stop() }

// add records a request that begins.
func (r *Recording) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
}

// answered tells who waits for it that a request is answered, or over.
func (r *Recording) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.change)
	r.change = make(chan struct{})
}

// settle waits until each request that it shows is answered, or over, for a moment at most.
func (r *Recording) settle() {
	const moment = 5 * time.Second
	timer := time.NewTimer(moment)
	defer timer.Stop()
	for {
		r.mu.Lock()
		change, waits := r.change, slices.ContainsFunc(r.entries, func(e *entry) bool { return e.isAwaited(r.match.User) })
		r.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-change:
		case <-timer.C:
			return
		}
	}
}

// entry is one request of all recordings that it matches.
type entry struct {
	recordings []*Recording
	limit      int    // of what is kept of the body
	query      string // as it was sent

	mu  sync.Mutex // guards req: a handler may outlive its request
	req Request    // without Query and Body
}

// request returns a copy that is complete; false: it is somebody else's.
func (e *entry) request(s *runtime.Scheme, user string) (Request, bool) {
	e.mu.Lock()
	out := e.req
	out.Sent = out.Sent[:len(out.Sent):len(out.Sent)] // what is appended later is not the copy's
	e.mu.Unlock()
	if user != "" && out.User != user {
		return Request{}, false
	}
	out.Query, _ = url.ParseQuery(e.query) // as far as it can be read, as URL.Query has it
	out.Sent = slices.Clone(out.Sent)
	out.Body = jsonOf(s, out.ContentType, out.Sent)
	if out.Name == "" && out.Verb == "create" {
		var named struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		if json.Unmarshal(out.Body, &named) == nil {
			out.Name = named.Metadata.Name
		}
	}
	return out, true
}

// isAwaited reports whether the request is under way without an answer, and is not known to be somebody else's.
func (e *entry) isAwaited(user string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.req.Code == 0 && !e.req.Ended && (user == "" || e.req.User == "" || e.req.User == user)
}

// change changes the request.
func (e *entry) change(f func(*Request)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.req)
}

// jsonOf reads a body; nil: there is none, or it cannot be read.
func jsonOf(s *runtime.Scheme, contentType string, body []byte) json.RawMessage {
	switch {
	case len(body) == 0:
		return nil
	case json.Valid(body):
		return body
	case strings.HasPrefix(contentType, codec.Protobuf().MediaType()):
		return jsonOfMessage(s, body)
	case strings.Contains(contentType, "yaml"):
		if text, _, err := codec.YAML().ToJSON(body, codec.Ignore); err == nil {
			return text
		}
	}
	return nil
}

// jsonOfMessage reads a body in protobuf, which only the Go type of its kind can.
func jsonOfMessage(s *runtime.Scheme, body []byte) json.RawMessage {
	const mark = "k8s\x00"
	var envelope apiruntime.Unknown
	if len(body) < len(mark) || envelope.Unmarshal(body[len(mark):]) != nil {
		return nil
	}
	obj, err := s.New(envelope.GroupVersionKind())
	if err != nil || codec.DecodeInto(codec.Protobuf(), body, obj) != nil {
		return nil
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	return text
}

type entryKey struct{}

// noteUser notes who makes a request that is recorded.
func noteUser(r *http.Request, u *authn.User) {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok && u != nil {
		e.change(func(req *Request) { req.User = u.Name })
	}
}
