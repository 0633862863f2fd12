package openapi

import (
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// GroupVersion describes one version of a group and its resources.
type GroupVersion struct {
	Group, Version string     // "" is the core group
	Resources      []Resource // the resources of the group version
}

// Resource describes one resource. The documents have an operation only for the verbs that are given.
//
// # Custom resources
//
// A Resource with an Object is described as kube-apiserver describes a custom resource:
//
//   - The definition has the fields that Object describes, with apiVersion, kind and metadata, also in embedded resources.
//   - A value that may be an integer or a string has both types in anyOf.
//   - The definitions of the object and of its list have the selectable fields.
//   - Operations list the media types of their bodies, and GET has the parameter resourceVersion. Operations of subresources have
//     the kind of the resource. Operations do not say that lists can be watched and that PATCH may answer with 201.
//   - The operations of a deprecated version are the same as those of any other version.
//
// In OpenAPI v2, the form of such a definition is reduced:
//
//   - allOf, anyOf, oneOf, not, nullable and defaults are left out.
//   - A value that may be null has no type, properties and items, and is not required.
//   - For a value that may have unknown fields, the known fields are left out. If that is so for the object itself, its
//     definition says only that it is an object.
//
// The documents differ from those of kube-apiserver as follows:
//
//   - deletecollection has the parameters and the body that it accepts. For custom resources, kube-apiserver describes the
//     parameters of watches, and no DeleteOptions.
//   - The document of a group version contains the list of its resources, /apis/example.com/v1/, as for other kinds.
//   - A version without a schema may have any fields in addition to the usual ones. kube-apiserver describes such a version
//     without fields, which the parsers of clients refuse.
//   - There is no shardSelector, because the server does not support it.
//   - The x-kubernetes-group-version-kind of DeleteOptions, and of the other kinds that every group has, lists only the groups
//     that are served.
//   - In /openapi/v2, parameters are in the operations, and not in a list that the operations refer to. All documents of v3 name
//     the security scheme.
type Resource struct {
	Plural     string                     // the plural name, as in URLs
	Kind       apischema.GroupVersionKind // the kind of the objects
	Namespaced bool                       // the objects are in namespaces
	// Verbs are the verbs of the resource, as discovery shows them: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verbs []string
	// Type is the Go struct of an object, ListType that of a list. If ListType is nil, lists are described like a List[T].
	Type, ListType reflect.Type
	// Object describes the objects of a kind without a Go type. Such a kind is described as kube-apiserver describes a custom
	// resource. The documents are kept as long as Object and everything else is the same. If Object is a [Digester], the hash of
	// a document is known before the document is made.
	Object schema.Describer
	// ListKind is the kind of the lists if Object is set; "" is the name of Kind with List appended.
	ListKind string
	// SelectableFields are the paths that field selectors may use, if Object is set, in addition to those of all kinds.
	SelectableFields []string
	// Docs are the doc comments of the Go source that declares Type; nil if they are not known.
	Docs *schema.Docs
	// Description is the description of the kind, if neither Docs nor a SwaggerDoc method has one.
	Description string
	// MediaTypes are the media types of objects in answers, StreamTypes those of watches; nil means those of Options.
	MediaTypes, StreamTypes []string
	// PatchTypes are the media types that PATCH accepts.
	PatchTypes []string
	// ReturnsDeleted says that DELETE of one object answers with the object instead of a Status.
	ReturnsDeleted bool
	// Subresources are the subresources of the resource.
	Subresources []Subresource
}

// Subresource describes a subresource of a resource.
type Subresource struct {
	Name string // the name, as in URLs
	// Kind is the kind of the subresource's objects: the resource's own kind for status, autoscaling/v1 Scale for scale. Zero is the
	// kind of the resource.
	Kind apischema.GroupVersionKind
	// Type is the Go struct of Kind. It may be nil for the kind of the resource and for Scale. Any other kind with a nil Type is
	// described as an object without known fields.
	Type reflect.Type
	// Verbs are verbs of get, create, update, patch and delete.
	Verbs []string
	// PatchTypes are the media types that PATCH accepts.
	PatchTypes []string
	// ConnectMethods are the HTTP methods of a subresource that is a connection and not an object (proxy, exec). If they are set,
	// Verbs is ignored.
	ConnectMethods []string
}

// Options are the options of a Service. The zero Options is valid.
type Options struct {
	// Title and Version are in the info of every document; empty is "Keelson" and "unversioned".
	Title, Version string
	// MediaTypes are the media types of objects in answers; nil is JSON and YAML.
	MediaTypes []string
	// StreamTypes are the media types of watches; nil is application/json;stream=watch.
	StreamTypes []string
	// NotFound answers a request for a document that does not exist, and reports whether it has answered. If it is nil or returns
	// false, the answer is 404.
	NotFound func(w http.ResponseWriter, r *http.Request) bool
}

// Service serves /openapi/v2, /openapi/v3 and the documents below it. Make one with [New]. All methods may be called
// concurrently.
//
// Documents are available as JSON and in the protobuf form of gnostic, which Go clients request:
// application/com.github.proto-openapi.spec.v3.v1.0+protobuf (and v2). The old spelling with an @ is accepted, too.
//
// A document is made at the first request for it. Requests for the same document wait for it and share it. Documents, and the
// parts of /openapi/v2, are made one at a time, because making a document takes a hundred times the memory of the stored
// document. The same description always has the same bytes and the same hash, in every process of the program. If the description
// changes, documents of unchanged groups are kept. The document of OpenAPI v2 consists of compressed parts. Unchanged parts are
// kept, and the new document is joined from the parts.
//
// The address of a document in /openapi/v3 has a ?hash=. Clients may cache the document of such an address for ever. A request
// with another hash is redirected (301) to the address with the current hash. The hash is computed from the bytes of the
// document, or given by the resources, see [Digester].
//
// A document is stored compressed, in both forms, and sent compressed to clients that accept gzip. The documents of fifty kinds
// take much less than one MiB. When a document is made, it is parsed with the parsers of clients. If a parser fails, requests for
// this document are answered with 500 and the reason. The document is then listed without a hash, unless the hash is known from
// Digesters, and is left out of /openapi/v2. All other documents are served.
type Service struct {
	opts    Options
	setMu   sync.Mutex // held by Set
	state   atomic.Pointer[state]
	commons commons
	program func() string // programID, called once

	building   sync.Mutex            // held while a document or a share is made
	compressor *gzipparts.Compressor // of shares, guarded by building; nil if no share was made since the last /openapi/v2
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

// Set replaces the description. Documents are made when they are requested first. Documents of unchanged group versions are kept.
// Requests that are being answered use the old description. The caller must not change the slices afterwards.
func (s *Service) Set(groups []GroupVersion) {
	s.setMu.Lock()
	defer s.setMu.Unlock()
	s.state.Store(s.newState(groups, s.state.Load()))
}
