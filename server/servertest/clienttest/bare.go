package clienttest

import (
	"fmt"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/lifecycle"
	"go.uber.org/zap"
)

// bare serves the kinds of builtin without its controllers: what kube-apiserver does itself happens, and what
// kube-controller-manager does beside it does not.
type bare struct{ logger *zap.Logger }

// Install implements server.Extension.
func (b bare) Install(h *server.Host) error {
	finalizer := &lifecycle.Finalizer{}
	coreEvents, events := builtin.Events(0)
	err := h.Serve(
		server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			builtin.Namespace(finalizer), builtin.ConfigMap(), builtin.Secret(), coreEvents,
		}}}},
		server.Group{Name: "coordination.k8s.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.Lease()}}}},
		events,
	)
	if err != nil {
		return fmt.Errorf("builtin kinds: %w", err)
	}
	if _, err := lifecycle.Install(h, finalizer, lifecycle.Options{Logger: b.logger}); err != nil {
		return fmt.Errorf("builtin kinds: %w", err)
	}
	return nil
}
