package audit

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is the record of a request at one stage. Its JSON is that of an Event of audit.k8s.io/v1. A Sink must not change an Event,
// nor what its fields point to, since other sinks have the same.
type Event struct {
	// TypeMeta is empty. A sink that writes events one by one sets the kind in a copy: see [Event.WithKind].
	metav1.TypeMeta `json:",inline"`

	Level Level `json:"level"` // the level at which the request is recorded
	// AuditID is the Audit-Id of the answer. All events of a request have the same.
	AuditID    string `json:"auditID"`
	Stage      Stage  `json:"stage"`
	RequestURI string `json:"requestURI"` // the path and the query, as the client has sent them
	Verb       string `json:"verb"`       // the verb of the API, or the HTTP method in lower case
	// User is the user who made the request. It is empty if the request was refused because of its credentials.
	User UserInfo `json:"user"`
	// ImpersonatedUser is the user for whom User made the request; nil is none.
	ImpersonatedUser       *UserInfo               `json:"impersonatedUser,omitempty"`
	AuthenticationMetadata *AuthenticationMetadata `json:"authenticationMetadata,omitempty"`
	// SourceIPs are the addresses of the client and of the proxies, the farthest first. Only the last is that of the connection;
	// the others are what clients and proxies say.
	SourceIPs []string `json:"sourceIPs,omitempty"`
	UserAgent string   `json:"userAgent,omitempty"` // at most 1 KiB of it
	// ObjectRef is the object of a request for a resource. In the event RequestReceived it has only what the URL says.
	ObjectRef *ObjectReference `json:"objectRef,omitempty"`
	// ResponseStatus has the code of the answer, and the whole Status if the answer is one. It is nil before the answer has begun.
	ResponseStatus *metav1.Status `json:"responseStatus,omitempty"`
	// RequestObject is the object or the patch that the client has sent, in JSON and in the version that the client has sent. It
	// is nil if the object could not be read, or if the level or the kind of request does not have it.
	RequestObject json.RawMessage `json:"requestObject,omitempty"`
	// ResponseObject is the object of the answer in JSON. An answer that is a stream, such as that of a watch, has none.
	ResponseObject json.RawMessage `json:"responseObject,omitempty"`

	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"` // when the server received the request
	StageTimestamp           metav1.MicroTime `json:"stageTimestamp"`           // when the request reached the stage
	// Annotations are facts that authentication, authorization and admission have recorded. The keys are qualified names.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// UserInfo is a user. Its JSON is that of a UserInfo of authentication.k8s.io/v1.
type UserInfo struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// AuthenticationMetadata says more about how a request was authenticated.
type AuthenticationMetadata struct {
	// ImpersonationConstraint is the verb that allowed the impersonation, such as impersonate:user-info.
	ImpersonationConstraint string `json:"impersonationConstraint,omitempty"`
}

// ObjectReference says which object a request is for.
type ObjectReference struct {
	Resource        string `json:"resource,omitempty"` // the plural, such as pods
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"` // which the request requires
	APIGroup        string `json:"apiGroup,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`      // the version without the group
	ResourceVersion string `json:"resourceVersion,omitempty"` // which the request requires
	Subresource     string `json:"subresource,omitempty"`
}

// apiVersion is the version of events.
const apiVersion = "audit.k8s.io/v1"

// WithKind returns a copy of an event whose JSON has the apiVersion and the kind. The copy shares what its fields point to.
func (e *Event) WithKind() *Event {
	out := *e
	out.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: apiVersion}
	return &out
}

// Sink receives events.
type Sink interface {
	// Record records events. It is called concurrently. The requests of the events wait until it returns: see [NewBatch] for sinks
	// that can be slow. An error means that some of the events, or all, are not recorded, and is for the log. The Sink may keep
	// events.
	Record(ctx context.Context, events ...*Event) error
}

// SinkFunc is a function that is a Sink.
type SinkFunc func(ctx context.Context, events ...*Event) error

// Record calls f.
func (f SinkFunc) Record(ctx context.Context, events ...*Event) error { return f(ctx, events...) }
