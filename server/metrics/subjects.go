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
	Subresource string
	Deprecated  bool
	// Connect are the methods of requests that connect to an object; nil for none.
	Connect []string
}

// subject is what requests are about: a resource in a version, or a path. A resource that is not served any more keeps
// its series in the vectors, as counters must.
type subject struct {
	group, version, resource, subresource, component string

	deprecated bool
	connect    []string
	series     [numVerbs][numScopes]atomic.Pointer[series]
}

// subjectKey finds the subject of a resource.
type subjectKey struct{ group, version, resource, subresource string }

// subjects are those that requests may be about.
type subjects struct {
	served     atomic.Pointer[map[subjectKey]*subject]
	paths      map[string]*subject // immutable
	aggregated map[string]*subject // immutable; paths that are counted when their aggregated document is asked for
}

// openAPI is the path below which there is a document of each group and version.
const openAPI = "/openapi/v3/"

func newSubjects() *subjects {
	s := &subjects{paths: map[string]*subject{}, aggregated: map[string]*subject{}}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		s.paths[path] = &subject{subresource: path}
	}
	for _, path := range []string{"/openapi/v3", openAPI} { // kube-apiserver leaves the first slash out
		s.paths[path] = &subject{subresource: path[1:]}
	}
	for _, path := range []string{"/api", "/apis"} {
		s.aggregated[path] = &subject{subresource: path[1:], component: component}
	}
	s.served.Store(&map[subjectKey]*subject{})
	return s
}

// of returns the subject of a request, or nil if that is about nothing that is served.
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

// set makes list what is served. A subject that stays as it is keeps its shortcuts to series.
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

// component is the label of what a server serves itself, paths aside.
const component = "apiserver"

// Serve says what is served from now on: requests for other resources are not counted. Calls must not overlap.
func (m *Registry) Serve(list []Resource) { m.requests.subjects.set(list) }
