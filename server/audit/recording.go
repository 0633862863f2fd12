package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxUserAgent bounds the user agent in an event, in bytes, as in kube-apiserver.
const maxUserAgent = 1024

// Arrival is what is known of a request when its recording begins.
type Arrival struct {
	Attributes *authz.Attributes // the User is nil if the credentials of the request were refused
	AuditID    string
	RequestURI string
	UserAgent  string
	// LongRunning says that the request lasts as long as the client wishes, such as a watch, so that it is never slow.
	LongRunning bool
	SourceIPs   func() []string // see Event; called if the request is recorded
	Received    time.Time
	// Annotations returns the annotations that the request has so far, in a map of the caller's own; nil stands for none.
	Annotations func() map[string]string
	// Spent has the parts of the request so far, by their names in annotations of slow requests, such as "authorization", and the
	// time that each took. It is called when the answer of a slow request has ended; nil stands for none.
	Spent iter.Seq2[string, time.Duration]
	Hooks Hooks
}

// Hooks are functions that are called while a request is recorded, synchronously and concurrently. Any of them may be nil.
type Hooks struct {
	// Began is called for each request, also one that is not recorded, with the highest level at which a backend records it.
	Began func(Level)
	// Recorded is called for each event that was given to a backend.
	Recorded func()
	// Failed is called with the name of a backend that has not recorded an event, and the error.
	Failed func(backend string, err error)
}

func (h Hooks) withDefaults() Hooks {
	if h.Began == nil {
		h.Began = func(Level) {}
	}
	if h.Recorded == nil {
		h.Recorded = func() {}
	}
	if h.Failed == nil {
		h.Failed = func(string, error) {}
	}
	return h
}

// Recording is the record of one request in progress. All methods may be called concurrently, and with a nil Recording, which
// records nothing.
type Recording struct {
	to    []recorder
	level Level
	facts func() map[string]string         // the annotations; may be nil
	spent iter.Seq2[string, time.Duration] // may be nil
	long  bool                             // the request is long-running
	hooks Hooks

	mu      sync.Mutex // guards the fields below
	event   Event      // what is known so far
	patched bool       // the RequestObject is a patch
	atEnd   []func()   // see AtEnd
}

// recorder is a backend that records the request.
type recorder struct {
	*Backend
	how Decision
}

// Begin returns the Recording of a request, or nil if no backend records it.
func (b Backends) Begin(a Arrival) *Recording {
	if b.Empty() {
		return nil
	}
	a.Hooks = a.Hooks.withDefaults()
	level := None
	var r *Recording
	for i := range *b.members {
		backend := &(*b.members)[i].Value
		how := backend.Policy.Decide(a.Attributes)
		if !how.Level.AtLeast(Metadata) {
			continue
		}
		if r == nil {
			r = newRecording(a)
		}
		r.to = append(r.to, recorder{backend, how})
		if !level.AtLeast(how.Level) {
			level = how.Level
		}
	}
	a.Hooks.Began(level)
	if r != nil {
		r.level = level
	}
	return r
}

func newRecording(a Arrival) *Recording {
	agent := a.UserAgent
	if len(agent) > maxUserAgent {
		agent = agent[:maxUserAgent] + "...TRUNCATED"
	}
	r := &Recording{facts: a.Annotations, long: a.LongRunning, spent: a.Spent, hooks: a.Hooks, event: Event{
		AuditID: a.AuditID, RequestURI: a.RequestURI, Verb: a.Attributes.Verb, SourceIPs: a.SourceIPs(), UserAgent: agent,
		RequestReceivedTimestamp: metav1.NewMicroTime(a.Received),
	}}
	if a.Attributes.User != nil {
		r.event.User = userInfo(a.Attributes.User)
	}
	if at := a.Attributes; at.ResourceRequest {
		r.event.ObjectRef = &ObjectReference{
			Resource: at.Resource, Subresource: at.Subresource, Namespace: at.Namespace, Name: at.Name,
			APIGroup: at.APIGroup, APIVersion: at.APIVersion,
		}
	}
	return r
}

func userInfo(u *authn.User) UserInfo {
	return UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// Wants reports whether any backend records what the level adds to those below it. It tells a handler whether it has to provide
// objects.
func (r *Recording) Wants(l Level) bool { return r != nil && r.level.AtLeast(l) }

// change changes the event of the request.
func (r *Recording) change(f func(e *Event)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.event)
}

// Impersonated sets the user for whom the request is made, and the verb that allowed this, which may be "".
func (r *Recording) Impersonated(u *authn.User, constraint string) {
	r.change(func(e *Event) {
		info := userInfo(u)
		e.ImpersonatedUser = &info
		if constraint != "" {
			e.AuthenticationMetadata = &AuthenticationMetadata{ImpersonationConstraint: constraint}
		}
	})
}

// Sent sets what the object in the body of the request says of itself: name and namespace, if the URL does not have them, and the
// uid and resourceVersion that it requires.
func (r *Recording) Sent(m metav1.Object) {
	r.change(func(e *Event) {
		if e.ObjectRef == nil {
			return
		}
		ref := *e.ObjectRef // events of earlier stages have the old one
		if ref.Namespace == "" {
			ref.Namespace = m.GetNamespace()
		}
		if ref.Name == "" {
			ref.Name = m.GetName()
		}
		if ref.UID == "" {
			ref.UID = string(m.GetUID())
		}
		if ref.ResourceVersion == "" {
			ref.ResourceVersion = m.GetResourceVersion()
		}
		e.ObjectRef = &ref
	})
}

// Request sets the object of the request, in JSON, which must not be changed any more. It is for requests that want [Request].
func (r *Recording) Request(object json.RawMessage) {
	r.change(func(e *Event) { e.RequestObject = object })
}

// Patch sets the patch of the request, in JSON, which must not be changed any more. Unlike an object, it is recorded with the
// managedFields that it has. It is for requests that want [Request].
func (r *Recording) Patch(text json.RawMessage) {
	r.change(func(e *Event) { e.RequestObject, r.patched = text, true })
}

// Response sets the object of the answer, in JSON, which must not be changed any more. It is for requests that want
// [RequestResponse].
func (r *Recording) Response(object json.RawMessage) {
	r.change(func(e *Event) { e.ResponseObject = object })
}

// AtEnd makes the Recording call f once the events of the last stage were given to the backends: the objects are not needed any more.
func (r *Recording) AtEnd(f func()) {
	r.change(func(*Event) { r.atEnd = append(r.atEnd, f) })
}

// ended calls the functions of AtEnd, and forgets the objects.
func (r *Recording) ended() {
	r.mu.Lock()
	all := r.atEnd
	r.atEnd, r.event.RequestObject, r.event.ResponseObject = nil, nil, nil
	r.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// Answered sets the Status that is the answer.
func (r *Recording) Answered(s *metav1.Status) {
	r.change(func(e *Event) {
		e.ResponseStatus = &metav1.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code}
	})
}

// Reached makes the events of a stage. code is the code of the answer, which is 0 at RequestReceived. The error is that of a
// strict backend, and the request must then be refused if the stage is RequestReceived.
func (r *Recording) Reached(ctx context.Context, stage Stage, at time.Time, code int) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	all, patched := r.event, r.patched
	r.mu.Unlock()
	if r.facts != nil {
		all.Annotations = r.facts()
	}
	all.Stage, all.StageTimestamp = stage, metav1.NewMicroTime(at)
	r.addLatencies(&all)
	if code != 0 {
		status := metav1.Status{}
		if all.ResponseStatus != nil {
			status = *all.ResponseStatus
		}
		status.Code = int32(code)
		all.ResponseStatus = &status
	}
	if stage == ResponseComplete || stage == Panic {
		defer r.ended()
	}
	var refused error
	for _, to := range r.to {
		if !to.how.Records(stage) {
			continue
		}
		r.hooks.Recorded()
		if err := to.Sink.Record(ctx, all.at(to.how, patched)); err != nil {
			r.hooks.Failed(to.Name, err)
			if to.Strict {
				refused = err
			}
		}
	}
	return refused
}

// Panicked makes the events of a request whose handler has panicked. A long reason is cut.
func (r *Recording) Panicked(ctx context.Context, at time.Time, reason any) {
	r.Answered(&metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: "APIServer panic'd: " + excerpt.Of(fmt.Sprint(reason), excerpt.Text),
	})
	_ = r.Reached(ctx, Panic, at, http.StatusInternalServerError) // Hooks.Failed is called
}

// at returns the part of an event that a decision wants. patched says that the RequestObject is a patch.
func (e *Event) at(how Decision, patched bool) *Event {
	out := *e
	out.Level = how.Level
	if !how.Level.AtLeast(Request) {
		out.RequestObject = nil
	}
	if !how.Level.AtLeast(RequestResponse) {
		out.ResponseObject = nil
	}
	if how.OmitManagedFields {
		out.ResponseObject = withoutManagedFields(out.ResponseObject)
		if !patched {
			out.RequestObject = withoutManagedFields(out.RequestObject)
		}
	}
	return &out
}
