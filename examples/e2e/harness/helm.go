package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// These are the versions of Helm. The constants are the names of the modules that they are built from. Each needs a module of its
// own, which is not in go.work, because one module cannot have the requirements of both and of these tests.
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

// Each Helm is built when it is first needed.
var (
	helm3Binary = sync.OnceValues(func() (string, error) { return buildHelm(Helm3, "helm.sh/helm/v3/cmd/helm") })
	helm4Binary = sync.OnceValues(func() (string, error) { return buildHelm(Helm4, "helm.sh/helm/v4/cmd/helm") })
)

// buildHelm builds the tool of the module in dir.
func buildHelm(dir, tool string) (string, error) {
	// Reading the file makes the version of Helm an input of the tests.
	if _, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		return "", err
	}
	path, err := buildAs(dir, dir, []string{"GOWORK=off"}, tool, "-ldflags=-s -w") // the flags of Helm's own Makefile
	if err != nil {
		return "", fmt.Errorf("%s cannot be built; the first time, its modules have to be downloaded: %w", dir, err)
	}
	return path, nil
}
