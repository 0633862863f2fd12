package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Extension adds a capability to a server. Install is called once, by Server.Install; what it starts is given to Host.Go,
// and may use the host, too, as long as it runs: to serve and withdraw kinds that come and go, for one.
type Extension interface {
	Install(h *Host) error
}

// ExtensionFunc is a function that is an Extension.
type ExtensionFunc func(h *Host) error

// Install implements Extension.
func (f ExtensionFunc) Install(h *Host) error { return f(h) }

// Host is what an Extension may do to the server that installs it. All methods may be called concurrently.
type Host struct{ s *Server }

// Install adds an extension. It may be called at any time before the server ends, also while it serves.
func (s *Server) Install(e Extension) error {
	if err := s.life.Err(); err != nil {
		return errors.New("server: Install: the server has ended")
	}
	if e == nil {
		return errors.New("server: Install: the extension is nil")
	}
	return e.Install(&Host{s})
}

// Scheme is the server's; kinds may be registered in it.
func (h *Host) Scheme() *runtime.Scheme { return h.s.scheme }

// Backend is the server's storage. It is closed by the server, after everything given to Go has returned.
func (h *Host) Backend() storage.Backend { return h.s.backend }

// Serve adds groups, or resources to groups served already. Either all of them are served afterwards, or none and
// the error says why: ErrServed among others, of a resource that is.
func (h *Host) Serve(groups ...Group) error { return h.s.serve(groups) }

// Withdraw ends serving resources, in all their versions, whether Serve or Options.Groups brought them: their watches
// end, requests under way end as they can, and their kinds and names become free. Stored objects stay where they are.
// Either all are withdrawn, or none and the error says why. What an extension serves is that extension's to withdraw.
func (h *Host) Withdraw(resources ...schema.GroupResource) error { return h.s.withdraw(resources) }

// Replace ends serving resources, of which some may not be served, and serves groups, in one step: no request comes
// between, and if anything is wrong all stays as it was. Watches of the resources end, as do those of Withdraw; other
// requests under way finish with what they began with. Kinds that come back have a Group.Scheme of their own, for those in
// the server's scheme are known there until they are withdrawn.
func (h *Host) Replace(resources []schema.GroupResource, groups ...Group) error {
	return h.s.replace(resources, groups)
}

// ShowVerbs has discovery show these verbs of a served resource and no others, in all its versions, for objects that are
// on their way out for one. Verbs that the resource does not have are left out; no verbs at all are those that it has.
// Requests are answered as before.
func (h *Host) ShowVerbs(resource schema.GroupResource, verbs ...string) error {
	return h.s.showVerbs(resource, verbs)
}

// Admit adds plug-ins behind those of Options.Admission and of extensions installed before. They judge every request
// from now on, to every kind.
func (h *Host) Admit(chain admission.Chain) { h.s.admission.Add(chain) }

// AdmitFirst adds plug-ins before all others, those of Options.Admission included: for what decides whether a request
// makes sense at all, such as in a namespace that does not exist.
func (h *Host) AdmitFirst(chain admission.Chain) { h.s.admission.AddFirst(chain) }

// CollectGarbage says that a garbage collector looks after the objects of all kinds from now on, so that a DELETE leaves
// its finalizers on an object where the policy Orphan or Foreground asks for them: see
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (h *Host) CollectGarbage() { h.s.collects.Store(true) }

// Catalogue says what the server serves.
func (h *Host) Catalogue() *Catalogue { return h.s.Catalogue() }

// Registry returns the registry of a stored resource that is served, for registry.For. It is good until the resource is
// withdrawn or replaced; what it returns after that are errors.
func (h *Host) Registry(resource schema.GroupResource) (*registry.Registry, error) {
	return h.s.registryOf(resource)
}

// Check adds health checks.
func (h *Host) Check(checks ...Check) { h.s.health.add(checks...) }

// Metrics takes collectors whose metrics /metrics is to show with those of the server.
func (h *Host) Metrics() prometheus.Registerer { return h.s.metrics.Registerer() }

// Handle serves a fixed path ("/debug/state") and, when it ends with "/", all below it, behind the filter chain. Paths
// of the API and those the server has itself are refused.
func (h *Host) Handle(path string, handler http.Handler) error {
	if !strings.HasPrefix(path, "/") || path == "/" || strings.ContainsAny(path, "{}*") {
		return fmt.Errorf("server: path %q: want an absolute path other than / and without patterns", path)
	}
	for _, taken := range []string{"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz", "/metrics"} {
		if path == taken || strings.HasPrefix(path, taken+"/") {
			return fmt.Errorf("server: path %q: the server serves %s itself; choose another path, or add to it by Serve, Check or Metrics", path, taken)
		}
	}
	if handler == nil {
		return fmt.Errorf("server: path %q: the handler is nil", path)
	}
	return h.s.fixed.handle(path, handler)
}

// Go runs work in the background until it returns, which it must soon after ctx ends; the server waits for it
// before it closes the storage.
func (h *Host) Go(work func(ctx context.Context)) {
	h.s.background.Go(func() { work(h.s.life) })
}

// OnClose has the server call f when it ends: after the last request was answered, or had no more time, and all that was given
// to Go has returned, and before the caches and the storage are closed. What was given last is called first. It is for what
// requests need to the end. After the end f is called at once.
func (h *Host) OnClose(f func()) {
	h.s.mu.Lock()
	late := h.s.ended
	if !late {
		h.s.closers = append(h.s.closers, f)
	}
	h.s.mu.Unlock()
	if late {
		f()
	}
}
