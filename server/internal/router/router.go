// Package router sends a request to whoever serves its resource.
//
// A [Table] maps group, version and resource to handlers. It is replaced whole, atomically, while requests are
// being served ([Table.Set]): a request that has found its handler keeps it. Paths that are no resources belong to
// an ordinary router of fixed paths, beside the table.
package router

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Table is a live routing table. The zero Table is empty and ready to use; all methods may be called concurrently.
type Table struct {
	mu      sync.Mutex // held by writers, who replace routes
	current atomic.Pointer[map[schema.GroupVersionResource]http.Handler]
}

// Set adds, replaces or, with a nil handler, removes the routes given, all at once.
func (t *Table) Set(routes map[schema.GroupVersionResource]http.Handler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[schema.GroupVersionResource]http.Handler{}
	if old := t.current.Load(); old != nil {
		maps.Copy(next, *old)
	}
	for gvr, h := range routes {
		if h == nil {
			delete(next, gvr)
			continue
		}
		next[gvr] = h
	}
	t.current.Store(&next)
}

// Lookup returns the handler of a request, or nil when nothing is served there.
func (t *Table) Lookup(info *request.Info) http.Handler {
	routes := t.current.Load()
	if routes == nil || !info.ResourceRequest || (info.APIPrefix == "api") != (info.APIGroup == "") {
		return nil // the core group is below /api and no other is: /apis//v1/pods is nothing
	}
	return (*routes)[schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}]
}

// Resources lists what is served, in order.
func (t *Table) Resources() []schema.GroupVersionResource {
	routes := t.current.Load()
	if routes == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(*routes), func(a, b schema.GroupVersionResource) int {
		return slices.Compare([]string{a.Group, a.Version, a.Resource}, []string{b.Group, b.Version, b.Resource})
	})
}

// Handler serves the requests of the table's resources, whose info must be in the context, and leaves all others
// to rest.
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
