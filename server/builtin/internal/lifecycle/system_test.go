package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// systemNamespaces returns the uids of the system namespaces that are active.
func (n *node) systemNamespaces() map[string]types.UID {
	n.t.Helper()
	list, err := n.namespaces.List(n.t.Context(), "", registry.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	out := map[string]types.UID{}
	for _, ns := range list {
		if slices.Contains(lifecycle.SystemNamespaces(), ns.Name) && ns.Status.Phase == corev1.NamespaceActive {
			out[ns.Name] = ns.UID
		}
	}
	return out
}

func TestSystemNamespacesExistAfterInstall(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	first := n.systemNamespaces()
	if len(first) != 4 {
		t.Fatalf("there are %v", first)
	}
	n.must(200, "GET", "/readyz/namespaces", "")
	_ = n.srv.Close()
	n = start(t, b, lifecycle.Options{})
	for name, uid := range n.systemNamespaces() {
		if first[name] != uid {
			t.Errorf("%s was made anew by a restart", name)
		}
	}
}

func TestServersMakeSystemNamespacesConcurrently(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	var nodes []*node
	ready := make(chan *node)
	for range 4 {
		go func() { ready <- start(t, b, lifecycle.Options{}) }()
	}
	for range 4 {
		nodes = append(nodes, <-ready)
	}
	for _, n := range nodes {
		if there := n.systemNamespaces(); len(there) != 4 {
			t.Errorf("there are %v", there)
		}
	}
}

// If the storage cannot be written to at the installation, the creation is repeated, and the server is not ready until it
// succeeds.
func TestSystemNamespacesAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	var asked atomic.Int64
	fail := func(key string) error {
		if key != "/registry/namespaces/kube-system" {
			return nil
		}
		asked.Add(1)
		return fmt.Errorf("%w: a test broke it", storage.ErrUnavailable)
	}
	b.broken.Store(&fail)
	n := start(t, b, lifecycle.Options{})
	if code, text, err := n.ask("GET", "/readyz/namespaces", "", ""); err != nil || code != 500 || !strings.Contains(text, "namespace kube-system: ") || !strings.Contains(text, "a test broke it") {
		t.Errorf("readyz: %d %s %v", code, text, err)
	}
	n.must(404, "GET", "/livez/namespaces", "")
	n.wait("it was tried again", func() bool { return asked.Load() > 2 })
	b.broken.Store(nil)
	n.wait("the server is ready", func() bool {
		code, _, err := n.ask("GET", "/readyz/namespaces", "", "")
		return err == nil && code == 200
	})
	if there := n.systemNamespaces(); len(there) != 4 {
		t.Errorf("there are %v", there)
	}
}

func TestSystemNamespacesAreMadeAnew(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	n.run()
	first := n.systemNamespaces()
	for range 3 {
		n.makeConfigMap(corev1.NamespaceNodeLease, "c")
		n.deleteNamespace(corev1.NamespaceNodeLease)
		n.wait("it is made anew", func() bool {
			uid := n.systemNamespaces()[corev1.NamespaceNodeLease]
			return uid != "" && uid != first[corev1.NamespaceNodeLease]
		})
		first = n.systemNamespaces()
		if left := n.content(corev1.NamespaceNodeLease); left != nil {
			t.Errorf("left: %v", left)
		}
	}
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		_, _, err := n.namespaces.Delete(t.Context(), "", name, nil)
		if !apierrors.IsForbidden(err) || err.Error() != fmt.Sprintf("namespaces %q is forbidden: this namespace may not be deleted", name) {
			t.Errorf("delete %s: %v", name, err)
		}
	}
}

// Install returns an error if a requirement is missing.
func TestInstallNeedsNamespaces(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	var failed error
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		_, failed = lifecycle.Install(h, &lifecycle.Finalizer{}, lifecycle.Options{})
		return failed
	}))
	if err == nil || !errors.Is(err, failed) || !strings.HasPrefix(err.Error(), "lifecycle of namespaces: ") {
		t.Errorf("Install: %v", err)
	}
	_, _, err = (&lifecycle.Finalizer{}).Update(registry.NewCall(t.Context(), authn.System(), ""), "a", nil, nil)
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("finalize before Install: %v", err)
	}
}
