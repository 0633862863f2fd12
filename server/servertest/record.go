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

// Record records the matching requests until Stop is called or the server ends, including refused requests and requests that a
// [Fault] affects. There may be any number of recordings at a time.
//
//	rec := srv.Record(servertest.Match{Verbs: []string{"create", "update", "patch", "delete"}})
//	... // the requests under test
//	rec.Golden(t, "testdata/reconcile.golden")
//
// A mistaken Match is reported like a mistaken [Fault].
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

// Recording is the result of [Server.Record]. It holds the requests with their bodies until Reset. Its methods may be called
// concurrently.
type Recording struct {
	match  Match
	scheme *runtime.Scheme
	stop   func()

	mu      sync.Mutex    // guards all fields below
	entries []*entry      // in the order of arrival
	change  chan struct{} // closed and replaced when a request is answered
}

// Request is one recorded request with its result.
type Request struct {
	Time time.Time // time of arrival
	// Verb is the verb of authorization. That of an apply is patch.
	Verb string
	// Group, Version, Resource and Subresource are those of the path.
	Group, Version, Resource, Subresource string
	// Namespace and Name are those of the path. The name of a create is the name in its body, or "" if the server generates the
	// name.
	Namespace, Name string
	// Method and Path are those of the HTTP request.
	Method, Path string
	// Query has the options, such as fieldManager, dryRun and labelSelector.
	Query url.Values
	// User is the name of the user; "" if it is unknown.
	User string
	// UserAgent and ContentType are headers of the request.
	UserAgent, ContentType string
	// Body is the body as JSON, whatever its format was. It is nil if there was no body, if it cannot be decoded, or if the
	// server did not read it. It may share memory with Sent.
	Body json.RawMessage
	// Sent is the body as it was sent, as far as the server read it.
	Sent []byte
	// Code is the code of the answer; 0 if there is none yet, or none at all. The code of a watch is known when it has begun.
	Code int
	// Ended reports whether the request has ended. Completed reports whether its answer was written in full: the server did not
	// abort the connection, and the client did not leave.
	Ended, Completed bool
}

// IsApply reports whether the request applies a configuration.
func (r *Request) IsApply() bool {
	return isApply(r.Verb, r.ContentType)
}

// Requests returns the requests recorded so far, in the order of arrival, including those in flight. The slice belongs to the
// caller.
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

// Reset drops all recorded requests, including those in flight.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = nil
}

// Stop ends the recording and keeps the recorded requests. Requests in flight are recorded to their end. A second Stop does
// nothing.
func (r *Recording) Stop() { r.stop() }

// add records a request that begins.
func (r *Recording) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
}

// answered wakes settle when a request is answered or has ended.
func (r *Recording) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.change)
	r.change = make(chan struct{})
}

// settle waits some seconds at most until each recorded request is answered or has ended.
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

// entry is one request in all recordings that it matches.
type entry struct {
	recordings []*Recording
	limit      int    // maximum size of the recorded body
	query      string // as it was sent

	mu  sync.Mutex // guards req, because a handler may outlive its request
	req Request    // without Query and Body
}

// request returns a complete copy. It returns false if the request is that of another user.
func (e *entry) request(s *runtime.Scheme, user string) (Request, bool) {
	e.mu.Lock()
	out := e.req
	out.Sent = out.Sent[:len(out.Sent):len(out.Sent)] // later appends must not change the copy
	e.mu.Unlock()
	if user != "" && out.User != user {
		return Request{}, false
	}
	out.Query, _ = url.ParseQuery(e.query) // invalid parameters are ignored, as in URL.Query
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

// isAwaited reports whether the request is in flight without an answer, and may be that of user.
func (e *entry) isAwaited(user string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.req.Code == 0 && !e.req.Ended && (user == "" || e.req.User == "" || e.req.User == user)
}

// change calls f with the request.
func (e *entry) change(f func(*Request)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.req)
}

// jsonOf returns a body as JSON, or nil if it is empty or cannot be decoded.
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

// jsonOfMessage returns a body in protobuf as JSON. That needs the Go type of its kind.
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

// noteUser stores the user of a recorded request.
func noteUser(r *http.Request, u *authn.User) {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok && u != nil {
		e.change(func(req *Request) { req.User = u.Name })
	}
}
