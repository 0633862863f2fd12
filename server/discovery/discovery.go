package discovery

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is an API group and the versions it is served in.
type Group struct {
	// Name is "" for the core group, which is served at /api; all others are served at /apis.
	Name     string
	Versions []Version
}

// Version is one version of a group. A version without resources is listed all the same.
type Version struct {
	Name      string
	Resources []Resource
}

// Resource is one resource of a version. Slices may be given in any order; verbs are shown sorted, unless it is Custom.
type Resource struct {
	// Plural is the name in paths, "widgets"; Singular the one that kubectl accepts beside it, "widget".
	Plural, Singular string
	Namespaced       bool
	// Kind is the name of the kind; KindVersion says of which group and version it is when not of the
	// resource's own (zero).
	Kind        string
	KindVersion schema.GroupVersion
	// ShortNames are abbreviations for the command line, Categories groups of resources such as "all".
	ShortNames, Categories []string
	// Verbs are those the resource itself serves: get, list, watch, create, update, patch, delete,
	// deletecollection. A resource without verbs is not shown, but its subresources are.
	Verbs []string
	// StorageKind is the kind in the version the resource is stored in, shown hashed so that clients notice when
	// it changes. Zero, for resources without storage, shows no hash.
	StorageKind  schema.GroupVersionKind
	Subresources []Subresource
	// Custom shows verbs and subresources in the order in which kube-apiserver shows those of custom resources, which is
	// not sorted.
	Custom bool
}

// Subresource is a part of a resource with a path of its own, such as status or scale.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind
	Verbs []string
}

// Options refines a Service. The zero Options is valid.
type Options struct {
	// ServerAddress is the host:port that /api names as the server's own. Empty names the host the client asked
	// for.
	ServerAddress string
	// CBOR serves the documents as application/cbor too.
	CBOR bool
	// NotFound answers a request for which there is no document, and reports whether it has. nil, or false: the answer is 404.
	NotFound func(w http.ResponseWriter, r *http.Request) bool
}

// Service serves discovery at /api, at /apis, and at the roots of groups and versions below them. Make one with
// [New]. All methods may be called concurrently.
type Service struct {
	opts    Options
	formats []codec.Format
	setting sync.Mutex            // one Set at a time
	state   atomic.Pointer[state] // never nil
}

// New returns a Service that serves no groups yet.
func New(o Options) *Service {
	s := &Service{opts: o, formats: formats(o)}
	s.Set(nil)
	return s
}

// Set replaces what is served. What is said of groups that are the same as before is kept, and the rest is made when it is first
// asked for. Requests that are being answered keep what they began with. The slices are not kept.
func (s *Service) Set(groups []Group) {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.state.Store(newState(groups, s.state.Load()))
}
