package openapi

import (
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// GroupVersion is one version of a group and what is served in it.
type GroupVersion struct {
	Group, Version string // the core group is ""
	Resources      []Resource
}

// Resource is one resource. A verb that is not given has no operation in the documents.
type Resource struct {
	Plural     string
	Kind       apischema.GroupVersionKind
	Namespaced bool
	// Verbs as discovery shows them: get, list, watch, create, update, patch, delete, deletecollection.
	Verbs []string
	// Type is the Go struct of an object, ListType of a list. A nil ListType describes lists as a List[T] does.
	Type, ListType reflect.Type
	// Object describes the objects of a kind without a Go type, which is then published as kube-apiserver publishes a custom
	// resource. While it is the same, and all else too, the documents are kept. If it is a [Digester] the hash of a document is
	// known before that is made.
	Object schema.Describer
	// ListKind is the kind of such a kind's lists; "" is the name of Kind and List. SelectableFields are the paths that field
	// selectors may name besides those of all kinds.
	ListKind         string
	SelectableFields []string
	// Docs are the doc comments of the Go source that declares Type, nil when not known.
	Docs *schema.Docs
	// Description is the kind's, for kinds that neither Docs nor a SwaggerDoc method describes.
	Description string
	// MediaTypes are those in which its objects are answered, StreamTypes those of its watches; nil: those of Options.
	MediaTypes, StreamTypes []string
	// PatchTypes are the media types that PATCH accepts.
	PatchTypes []string
	// ReturnsDeleted says that DELETE of one object answers with the object, not with a Status.
	ReturnsDeleted bool
	Subresources   []Subresource
}

// Subresource is a part of a resource with a path of its own.
type Subresource struct {
	Name string
	// Kind is what it answers with: the resource's own kind for status, autoscaling/v1 Scale for scale; zero is
	// the resource's own. Type is its Go struct; nil is right for these two, and of any other kind it then is only
	// known that it is an object.
	Kind apischema.GroupVersionKind
	Type reflect.Type
	// Verbs are among get, create, update, patch and delete.
	Verbs      []string
	PatchTypes []string
	// ConnectMethods are the HTTP methods of a subresource that is not an object but a connection (proxy, exec);
	// Verbs is then ignored.
	ConnectMethods []string
}

// Options refines a Service. The zero Options is valid.
type Options struct {
	// Title and Version are the info of every document; empty is "Keelson" and "unversioned".
	Title, Version string
	// MediaTypes are those in which objects are answered; nil is JSON and YAML.
	MediaTypes []string
	// StreamTypes are the media types of watches; nil is application/json;stream=watch.
	StreamTypes []string
	// NotFound answers a request for which there is no document, and reports whether it has. nil, or false: the answer is 404.
	NotFound func(w http.ResponseWriter, r *http.Request) bool
}

// Service serves /openapi/v2 and /openapi/v3 and all below. Make one with [New]. All methods may be called
// concurrently.
type Service struct {
	opts    Options
	setMu   sync.Mutex // one Set at a time
	state   atomic.Pointer[state]
	commons commons
	program func() string // see programID; asked once
}

// New returns a Service that describes no resources yet.
func New(o Options) *Service {
	if o.Title == "" {
		o.Title = "Keelson"
	}
	if o.Version == "" {
		o.Version = "unversioned"
	}
	if o.MediaTypes == nil {
		o.MediaTypes = []string{"application/json", "application/yaml"}
	}
	if o.StreamTypes == nil {
		o.StreamTypes = []string{"application/json;stream=watch"}
	}
	s := &Service{opts: o, program: sync.OnceValue(programID)}
	s.Set(nil)
	return s
}

// Set replaces what is described. The documents are made when they are first asked for; those of group versions
// that are the same as before are kept. Requests that are being answered keep what they began with. The slices
// belong to the Service from the call on.
func (s *Service) Set(groups []GroupVersion) {
	s.setMu.Lock()
	defer s.setMu.Unlock()
	s.state.Store(s.newState(groups, s.state.Load()))
}
