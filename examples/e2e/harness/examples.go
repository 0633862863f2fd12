package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// These are the other examples, each built when it is first needed.
var (
	wardrobeBinary = sync.OnceValues(func() (string, error) { return buildExample("wardrobe") })
	crdsBinary     = sync.OnceValues(func() (string, error) { return buildExample("crds") })

	controlPlaneBinary = sync.OnceValues(func() (string, error) { return buildExample("controlplane", "internal/kinds") })
)

// ControlPlane returns the path of the example controlplane, for tests that start kube-apiserver themselves.
func ControlPlane(t testing.TB) string {
	t.Helper()
	program, err := controlPlaneBinary()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// buildExample builds an example in a folder. below has the packages below it.
func buildExample(name string, below ...string) (string, error) {
	for _, folder := range append([]string{""}, below...) {
		files, err := filepath.Glob(filepath.Join(root, "examples", name, folder, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range files { // reading the source makes it an input of the tests
			if _, err := os.ReadFile(file); err != nil {
				return "", err
			}
		}
	}
	return build(root, "./examples/"+name)
}

// exampleBinary returns the path of an example.
func exampleBinary(name string) (string, error) {
	switch name {
	case "hello":
		return helloBinary()
	case "wardrobe":
		return wardrobeBinary()
	case "crds":
		return crdsBinary()
	case controlPlane:
		return controlPlaneBinary()
	}
	return "", fmt.Errorf("there is no example %q; want hello, wardrobe, crds or controlplane", name)
}

// controlPlane is the name of the example with the flags of kube-apiserver.
const controlPlane = "controlplane"

func (o Options) example() string { return cmp.Or(o.Example, "hello") }
