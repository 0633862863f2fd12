package discovery

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is an API group with the versions in which it is served.
type Group struct {
	// Name is the name of the group. "" is the core group, which is served at /api; all others are served at /apis.
	Name string
	// Versions are the versions of the group, in any order.
	Versions []Version
}

// Version is one version of a group. It is listed even if it has no resources.
type Version struct {
	// Name is the name of the version, such as "v1".
	Name string
	// Resources are the resources of the version.
	Resources []Resource
}

// Resource is one resource of a version. Slices may be in any order. Verbs are shown sorted, unless Custom is true.
type Resource struct {
	// Plural is the name in paths, such as "widgets". Singular is the name that kubectl accepts, too, such as "widget".
	Plural, Singular string
	// Namespaced is true if the objects are in namespaces.
	Namespaced bool
	// Kind is the name of the kind.
	Kind string
	// KindVersion is the group and version of the kind; zero is those of the resource.
	KindVersion schema.GroupVersion
	// ShortNames are abbreviations for the command line. Categories are names for groups of resources, such as "all".
	ShortNames, Categories []string
	// Verbs are the verbs of the resource itself: get, list, watch, create, update, patch, delete or deletecollection. A resource
	// without verbs is not shown, but its subresources are.
	Verbs []string
	// StorageKind is the kind in the version in which the resource is stored. Discovery shows the hash of StorageKind, so that
	// clients notice when it changes. If StorageKind is zero, as for resources without storage, no hash is shown.
	StorageKind schema.GroupVersionKind
	// Subresources are the subresources of the resource.
	Subresources []Subresource
	// Custom says that the kind has no Go type. Then verbs and subresources are shown in the order in which kube-apiserver shows
	// those of custom resources, which is not alphabetical, and all kinds in aggregated documents have a group and a version. A
	// version of which all resources are Custom is served to requests with any method.
	Custom bool
}

// Subresource is a part of a resource with a path of its own, such as status or scale.
type Subresource struct {
	// Name is the name of the subresource, such as "status".
	Name string
	// Kind is the kind of the bodies of the subresource. An empty group and version are those of the resource.
	Kind schema.GroupVersionKind
	// Verbs are the verbs of the subresource.
	Verbs []string
}

// Options are the options of New. The zero Options is valid.
type Options struct {
	// ServerAddress is the host:port that the document at /api has as the server's address. "" is the host of the request.
	ServerAddress string
	// CBOR serves the documents as application/cbor too.
	CBOR bool
	// NotFound is called for a request for which there is no document. It returns true if it has answered the request. If it
	// returns false, or is nil, the answer is 404.
	NotFound func(w http.ResponseWriter, r *http.Request) bool
}

// Service serves discovery at /api, at /apis, and at the roots of groups and versions below them. Make one with
// [New]. All methods may be called concurrently.
type Service struct {
	opts    Options
	formats []codec.Format
	setting sync.Mutex            // held by Set
	state   atomic.Pointer[state] // never nil
}

// New returns a Service that serves no groups yet.
func New(o Options) *Service {
	s := &Service{opts: o, formats: formats(o)}
	s.Set(nil)
	return s
}

// Set replaces the groups that are served. Documents of groups that have not changed are kept, and the others are made when they
// are first requested. Requests that have begun finish with the documents that they began with. The slices are copied.
func (s *Service) Set(groups []Group) {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.state.Store(newState(groups, s.state.Load()))
}
