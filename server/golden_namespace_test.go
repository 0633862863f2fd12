package server_test

import (
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/lifecycle"
	"github.com/keelson-dev/keelson/server/servertest"
)

// installNamespaces gives a server namespaces, as kube-apiserver has them without a controller: those that are deleted stay
// until something finalizes them.
func installNamespaces(t *testing.T, srv *servertest.Server) {
	t.Helper()
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		finalizer := &lifecycle.Finalizer{}
		err := h.Serve(server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.Namespace(finalizer)}}}})
		if err != nil {
			return err
		}
		_, err = lifecycle.Install(h, finalizer, lifecycle.Options{})
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
}
