package metrics

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource, or a subresource, that is served in one version.
type Resource struct {
	schema.GroupVersionResource
	// Subresource is the name of the subresource; "" for the resource itself.
	Subresource string
	// Deprecated is true if the version of the resource is deprecated.
	Deprecated bool
	// Connect are the HTTP methods of requests that connect to an object; nil is none.
	Connect []string
}

// subject is a resource in a version, or a path, for which requests are counted. A resource that is no longer served keeps its
// series in the vectors, since counters must not disappear.
type subject struct {
	group, version, resource, subresource, component string

	deprecated bool
	connect    []string
	series     [numVerbs][numScopes]atomic.Pointer[series]
}

// subjectKey is the key of the subject of a resource.
type subjectKey struct{ group, version, resource, subresource string }

// subjects has all subjects.
type subjects struct {
	served     atomic.Pointer[map[subjectKey]*subject]
	paths      map[string]*subject // immutable
	aggregated map[string]*subject // immutable; paths of which only requests for the aggregated document are counted
}

// openAPI is the prefix of the paths of the documents of group versions.
const openAPI = "/openapi/v3/"

func newSubjects() *subjects {
	s := &subjects{paths: map[string]*subject{}, aggregated: map[string]*subject{}}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		s.paths[path] = &subject{subresource: path}
	}
	for _, path := range []string{"/openapi/v3", openAPI} { // kube-apiserver omits the first slash
		s.paths[path] = &subject{subresource: path[1:]}
	}
	for _, path := range []string{"/api", "/apis"} {
		s.aggregated[path] = &subject{subresource: path[1:], component: component}
	}
	s.served.Store(&map[subjectKey]*subject{})
	return s
}

// of returns the subject of a request, or nil if the resource or path is not counted.
func (s *subjects) of(r *http.Request, info *request.Info) *subject {
	if info.ResourceRequest {
		return (*s.served.Load())[subjectKey{info.APIGroup, info.APIVersion, info.Resource, info.Subresource}]
	}
	path := info.Path
	if strings.HasPrefix(path, openAPI) {
		path = openAPI
	}
	if discovery.IsAggregated(r) {
		return s.aggregated[strings.TrimSuffix(path, "/")]
	}
	return s.paths[path]
}

// set sets the resources that are served. The subject of a resource that has not changed keeps its pointers to series.
func (s *subjects) set(list []Resource) {
	before, next := *s.served.Load(), make(map[subjectKey]*subject, len(list))
	for _, r := range list {
		key := subjectKey{r.Group, r.Version, r.Resource, r.Subresource}
		next[key] = before[key]
		if was := before[key]; was == nil || was.deprecated != r.Deprecated || !slices.Equal(was.connect, r.Connect) {
			next[key] = &subject{
				group: r.Group, version: r.Version, resource: r.Resource, subresource: r.Subresource, component: component,
				deprecated: r.Deprecated, connect: r.Connect,
			}
		}
	}
	s.served.Store(&next)
}

// component is the label of resources and aggregated documents that the server serves itself. Other paths have none.
const component = "apiserver"

// Serve sets the resources that are served: requests for other resources are not counted. Calls must not overlap.
func (m *Registry) Serve(list []Resource) { m.requests.subjects.set(list) }
