// Package router routes requests to the handlers of their resources.
//
// A [Table] maps groups, versions and resources to handlers. It may also map a whole group version to one handler. [Table.Set]
// replaces entries atomically while requests are served: a request that has found its handler keeps it. Paths that are not
// resources belong to another router, of fixed paths.
//
// A Table also has a chain of not-found handlers for requests that nothing else serves, which [Table.NotFound] calls. The router
// of fixed paths calls it if it has no such path, health check or resource. Discovery and OpenAPI call it if they have no such
// document.
package router

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Table is a live routing table. The zero Table is empty and ready to use; all methods may be called concurrently.
type Table struct {
	mu      sync.Mutex // held while current is replaced
	current atomic.Pointer[state]
}

// Routes maps what is served to handlers. The key of the handler of a resource has all three fields. The key of the handler of a
// whole group version, with its discovery, has no resource; it has precedence over those of resources.
type Routes = map[schema.GroupVersionResource]http.Handler

// NotFound is a handler of requests that nothing else serves.
type NotFound struct {
	// Name is the name by which the handler is replaced and removed.
	Name string
	// Serve answers the request and returns true, or writes nothing and returns false if the request is not for it.
	Serve func(w http.ResponseWriter, r *http.Request) bool
}

// state is a table at one time. It is immutable.
type state struct {
	routes   Routes
	notFound []NotFound
}

// now returns the current state.
func (t *Table) now() state {
	if s := t.current.Load(); s != nil {
		return *s
	}
	return state{}
}

// Set adds, replaces or, with a nil handler, removes the given routes and not-found handlers, all at once. A not-found handler
// that replaces one of its name takes the same place in the chain; others are added at the end.
func (t *Table) Set(routes Routes, notFound ...NotFound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.now()
	next := state{routes: Routes{}, notFound: slices.Clone(before.notFound)}
	maps.Copy(next.routes, before.routes)
	for key, h := range routes {
		if h == nil {
			delete(next.routes, key)
			continue
		}
		next.routes[key] = h
	}
	for _, n := range notFound {
		if i := slices.IndexFunc(next.notFound, func(o NotFound) bool { return o.Name == n.Name }); i >= 0 {
			next.notFound[i] = n
			continue
		}
		next.notFound = append(next.notFound, n)
	}
	next.notFound = slices.DeleteFunc(next.notFound, func(n NotFound) bool { return n.Serve == nil })
	t.current.Store(&next)
}

// Serves reports whether a key, or its whole group version, has a handler. For a key without a resource it reports whether
// anything in the group version has a handler.
func (t *Table) Serves(key schema.GroupVersionResource) bool {
	routes := t.now().routes
	if key.Resource != "" {
		return routes[key] != nil || routes[key.GroupVersion().WithResource("")] != nil
	}
	for other := range routes {
		if other.GroupVersion() == key.GroupVersion() {
			return true
		}
	}
	return false
}

// Answers reports whether there is a not-found handler of that name.
func (t *Table) Answers(name string) bool {
	return slices.ContainsFunc(t.now().notFound, func(n NotFound) bool { return n.Name == name })
}

// Lookup returns the handler of a request, or nil if there is none.
func (t *Table) Lookup(info *request.Info) http.Handler {
	routes := t.now().routes
	if !info.ResourceRequest {
		gv, ok := versionRoot(info.Path)
		if !ok {
			return nil
		}
		return routes[gv.WithResource("")]
	}
	if (info.APIPrefix == "api") != (info.APIGroup == "") {
		return nil // the core group is below /api, and no other group is: /apis//v1/pods is not served
	}
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	if h := routes[gv.WithResource("")]; h != nil {
		if !plain(info) {
			return nil
		}
		return h
	}
	if info.Resource == "" {
		return nil
	}
	return routes[gv.WithResource(info.Resource)]
}

// versionRoot parses the path of a group version, below which its resources are.
func versionRoot(path string) (gv schema.GroupVersion, ok bool) {
	switch parts := strings.Split(strings.TrimSuffix(path, "/"), "/"); {
	case len(parts) == 3 && parts[0] == "" && parts[1] == "api":
		gv = schema.GroupVersion{Version: parts[2]}
	case len(parts) == 4 && parts[0] == "" && parts[1] == "apis" && parts[2] != "":
		gv = schema.GroupVersion{Group: parts[2], Version: parts[3]}
	}
	return gv, gv.Version != ""
}

// plain reports whether a path can be read in one way only. A handler of a whole version may clean the path, or split it after
// decoding: then it must find the same resource, name and namespace that were authorized.
func plain(info *request.Info) bool {
	slash := func(part string) bool { return strings.Contains(part, "/") }
	return path.Clean(info.Path) == strings.TrimSuffix(info.Path, "/") && !slash(info.Namespace) && !slices.ContainsFunc(info.Parts, slash)
}

// Handler serves the requests of the table's routes, whose info must be in the context. rest serves all others.
func (t *Table) Handler(rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info := request.InfoFrom(r.Context()); info != nil {
			if h := t.Lookup(info); h != nil {
				h.ServeHTTP(w, r)
				return
			}
		}
		rest.ServeHTTP(w, r)
	})
}

// NotFound calls the not-found handlers for a request that nothing else serves, and reports whether one of them has answered. It
// calls none for a path that is not plain: a handler that cleans the path could serve a path that was not authorized.
func (t *Table) NotFound(w http.ResponseWriter, r *http.Request) bool {
	info := request.InfoFrom(r.Context())
	if info == nil || !plain(info) {
		return false
	}
	return slices.ContainsFunc(t.now().notFound, func(n NotFound) bool { return n.Serve(w, r) })
}
