package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The Helms there are. Each is built from a module of its own, whose name this is, because one module cannot have the
// requirements of both and of these tests: go.work has neither.
const (
	Helm3 = "helm3"
	Helm4 = "helm4"
)

// Helm is a real Helm.
type Helm struct{ Program }

// NewHelm returns Helm3 or Helm4 with a kubeconfig file.
func NewHelm(t testing.TB, which, kubeconfig string) *Helm {
	t.Helper()
	binary := map[string]func() (string, error){Helm3: helm3Binary, Helm4: helm4Binary}[which]
	if binary == nil {
		t.Fatalf("there is no Helm %q", which)
	}
	return &Helm{newProgram(t, which, binary, kubeconfig, nil)}
}

// Each Helm is built when first asked for.
var (
	helm3Binary = sync.OnceValues(func() (string, error) { return buildHelm(Helm3, "helm.sh/helm/v3/cmd/helm") })
	helm4Binary = sync.OnceValues(func() (string, error) { return buildHelm(Helm4, "helm.sh/helm/v4/cmd/helm") })
)

// buildHelm builds what the module in dir has as its tool.
func buildHelm(dir, tool string) (string, error) {
	// Reading it makes the version of Helm an input of the tests.
	if _, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		return "", err
	}
	path, err := buildAs(dir, dir, []string{"GOWORK=off"}, tool, "-ldflags=-s -w") // as Helm's own Makefile links it
	if err != nil {
		return "", fmt.Errorf("%s cannot be built; the first time, its modules have to be downloaded: %w", dir, err)
	}
	return path, nil
}
