package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fixed serves the paths that are not API resources.
type fixed struct {
	s *Server

	mu      sync.Mutex              // guards extra, and is held while current is replaced
	extra   map[string]http.Handler // nil: the path is claimed, and not served yet
	current atomic.Pointer[fixedPaths]
}

// fixedPaths are the handlers by path. It is immutable.
type fixedPaths struct {
	exact map[string]http.Handler // by path
	below map[string]http.Handler // by the beginning of a path, which ends with a slash; the longest one decides
	most  int                     // the length of the longest key of below
}

// find returns the handler of a path, or nil.
func (p *fixedPaths) find(path string) http.Handler {
	if h := p.exact[path]; h != nil {
		return h
	}
	path = path[:min(len(path), p.most)] // a request may have a path of a megabyte, all slashes
	for end := strings.LastIndexByte(path, '/'); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
		if h := p.below[path[:end+1]]; h != nil {
			return h
		}
	}
	return nil
}

func newFixed(s *Server) *fixed {
	f := &fixed{s: s, extra: map[string]http.Handler{}}
	f.current.Store(f.build())
	return f
}

// ServeHTTP implements http.Handler. Requests are routed by the decoded path, by which they were authorized.
func (f *fixed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := f.current.Load().find(r.URL.Path); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	f.notFound(w, r)
}

// handle adds a path.
func (f *fixed) handle(path string, h http.Handler) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.extra[path]; ok {
		return fmt.Errorf("server: path %q is served already", path)
	}
	f.set(path, h)
	return nil
}

// claim reserves a path for a handler that fill sets later. Until then the path is not served.
func (f *fixed) claim(path string) error { return f.handle(path, nil) }

// fill serves a path that was claimed; a nil handler releases the path.
func (f *fixed) fill(path string, h http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h == nil {
		delete(f.extra, path)
		return
	}
	f.set(path, h)
}

// set serves a path, or reserves it if h is nil. The caller holds mu.
func (f *fixed) set(path string, h http.Handler) {
	f.extra[path] = h
	f.current.Store(f.build())
}

// build returns the handlers of the paths as they are now. Most of them ignore the method of a request, as in kube-apiserver. The
// caller holds mu, unless f is not used yet.
func (f *fixed) build() *fixedPaths {
	s, p := f.s, &fixedPaths{exact: map[string]http.Handler{}, below: map[string]http.Handler{}}
	p.exact["/"] = http.HandlerFunc(f.index)
	p.exact["/index.html"] = p.exact["/"]
	p.exact["/version"] = http.HandlerFunc(f.version)
	p.exact["/version/"] = p.exact["/version"]
	for _, endpoint := range []string{"healthz", "livez", "readyz"} {
		p.exact["/"+endpoint] = s.health.all(endpoint)
		p.below["/"+endpoint+"/"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.health.one(endpoint, strings.TrimPrefix(r.URL.Path, "/"+endpoint+"/"), w, r) {
				f.notFound(w, r)
			}
		})
	}
	p.exact["/openapi"], p.below["/openapi/"] = s.openapi, s.openapi
	for _, root := range []string{"/api", "/apis"} {
		p.exact[root], p.below[root+"/"] = http.HandlerFunc(f.discovery), http.HandlerFunc(f.discovery)
	}
	for path, h := range f.extra {
		if h == nil { // claimed
			continue
		}
		p.exact[path] = h
		if strings.HasSuffix(path, "/") {
			p.below[path] = h
		}
	}
	for path := range p.below {
		p.most = max(p.most, len(path))
	}
	return p
}

// discovery serves the roots of the API and of its groups. A request of a resource reaches it only if the resource does not
// exist, since the router would have found it.
func (f *fixed) discovery(w http.ResponseWriter, r *http.Request) {
	if info := request.InfoFrom(r.Context()); info == nil || !info.ResourceRequest {
		f.s.discovery.ServeHTTP(w, r)
		return
	}
	f.notFound(w, r)
}

func (f *fixed) notFound(w http.ResponseWriter, r *http.Request) { f.s.notFound(w, r) }

// notFound answers with 404, unless a not-found handler of an extension answers, and returns true. The answer to a request that came
// before the server was whole is 503. As in kube-apiserver the answer is
// a Status below a group whose objects have Go types, and a text everywhere else.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) bool {
	switch group, ok := groupOf(r.URL.Path); {
	case s.elsewhere(w, r):
	case request.IsEarly(r.Context()):
		response.Error(w, r, errStarting())
	case ok && s.set.HasGoTypes(group):
		response.Refuse(w, r, http.StatusNotFound)
	default:
		http.NotFound(w, r)
	}
	return true
}

// errStarting is the error of requests for paths that are not served yet, or never will be.
func errStarting() error {
	err := apierrors.NewServiceUnavailable("the request has been made before all known HTTP paths have been installed, please try again")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 5}
	return err
}

// elsewhere has the not-found handlers of extensions answer a request, and reports whether one of them has.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request) bool { return s.set.NotFound(w, r) }

// groupOf returns the group to which a path below /api or /apis belongs.
func groupOf(path string) (group string, ok bool) {
	if path == "/api" || strings.HasPrefix(path, "/api/") {
		return "", true
	}
	rest, ok := strings.CutPrefix(path, "/apis/")
	group, _, _ = strings.Cut(rest, "/")
	return group, ok && group != ""
}

// index answers with the list of the server's paths.
func (f *fixed) index(w http.ResponseWriter, _ *http.Request) {
	paths := []string{"/openapi/v2", "/openapi/v3", "/version"}
	paths = append(paths, f.s.health.paths()...)
	paths = append(paths, f.s.set.Paths()...)
	f.mu.Lock()
	for path, h := range f.extra {
		if h == nil {
			continue
		}
		paths = append(paths, strings.TrimSuffix(path, "/"))
	}
	f.mu.Unlock()
	slices.Sort(paths)
	writeJSON(w, http.StatusOK, map[string][]string{"paths": slices.Compact(paths)})
}

// version answers with the version of the server.
func (f *fixed) version(w http.ResponseWriter, r *http.Request) {
	if response.Routed(w, r, []string{codec.JSON().MediaType()}) {
		writeJSON(w, http.StatusOK, f.s.version)
	}
}

// writeJSON writes v indented, as kube-apiserver writes answers that are not API objects.
func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the only error is that the client has gone
}
