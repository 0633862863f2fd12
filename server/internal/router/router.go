// Package router sends a request to whoever serves its resource.
//
// A [Table] maps group, version and resource to handlers, or a group version as a whole to one, and has a chain of handlers for
// what nobody serves. It is replaced whole, atomically, while requests are being served ([Table.Set]): a request that has found
// its handler keeps it. Paths that are no resources belong to an ordinary router of fixed paths, beside the table.
//
// The chain of not-found handlers is asked last, by [Table.NotFound]: the router of fixed paths calls it where it has no such path,
// no such check of health, and no such resource, and discovery and OpenAPI where they have no such document.
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
	mu      sync.Mutex // held by writers, who replace current
	current atomic.Pointer[state]
}

// Routes are handlers by what they serve. The handler of a resource has an exact key; the handler of a group version as a whole,
// its discovery included, has one without a resource, and comes before those of resources.
type Routes = map[schema.GroupVersionResource]http.Handler

// NotFound answers requests that nobody serves.
type NotFound struct {
	Name string
	// Serve returns false, and has written nothing, if the request is not its own.
	Serve func(w http.ResponseWriter, r *http.Request) bool
}

// state is a table at one time. It is immutable.
type state struct {
	routes   Routes
	notFound []NotFound
}

// now returns the state of now.
func (t *Table) now() state {
	if s := t.current.Load(); s != nil {
		return *s
	}
	return state{}
}

// Set adds, replaces or, with a nil handler, removes the routes and the members of the chain of not-found handlers that are
// given, all at once. A member that replaces one of its name has the place of that, others come last.
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

// Serves reports whether a key, or its group version as a whole, has a handler; of a key without a resource, whether anything in that
// version has.
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

// Answers reports whether the chain of not-found handlers has one of that name.
func (t *Table) Answers(name string) bool {
	return slices.ContainsFunc(t.now().notFound, func(n NotFound) bool { return n.Name == name })
}

// Lookup returns the handler of a request, or nil when nothing is served there.
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
		return nil // the core group is below /api and no other is: /apis//v1/pods is nothing
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

// versionRoot reads the path of a group version, below which its resources are.
func versionRoot(path string) (gv schema.GroupVersion, ok bool) {
	switch parts := strings.Split(strings.TrimSuffix(path, "/"), "/"); {
	case len(parts) == 3 && parts[0] == "" && parts[1] == "api":
		gv = schema.GroupVersion{Version: parts[2]}
	case len(parts) == 4 && parts[0] == "" && parts[1] == "apis" && parts[2] != "":
		gv = schema.GroupVersion{Group: parts[2], Version: parts[3]}
	}
	return gv, gv.Version != ""
}

// plain reports whether a path means to everybody what was authorized: who cleans it, or splits it after decoding, as the
// handler of a whole version may, finds no other resource, name or namespace.
func plain(info *request.Info) bool {
	slash := func(part string) bool { return strings.Contains(part, "/") }
	return path.Clean(info.Path) == strings.TrimSuffix(info.Path, "/") && !slash(info.Namespace) && !slices.ContainsFunc(info.Parts, slash)
}

// Handler serves the requests of the table's routes, whose info must be in the context, and leaves all others to rest.
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

// NotFound has the chain of not-found handlers answer a request that nobody serves, and reports whether one has. A path that is
// not plain is nobody's: a handler that cleans it would serve what was not authorized.
func (t *Table) NotFound(w http.ResponseWriter, r *http.Request) bool {
	info := request.InfoFrom(r.Context())
	if info == nil || !plain(info) {
		return false
	}
	return slices.ContainsFunc(t.now().notFound, func(n NotFound) bool { return n.Serve(w, r) })
}
