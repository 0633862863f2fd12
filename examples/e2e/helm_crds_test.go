package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// A chart with a folder crds: Helm creates the definition, waits for it, and then creates its objects. An upgrade and the end of
// the release do not change the definition.
func TestHelmCRDs(t *testing.T) {
	t.Parallel()
	for _, which := range []string{harness.Helm3, harness.Helm4} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			crds := harness.Start(t, harness.Options{Example: "crds"})
			chart, err := filepath.Abs("testdata/helm/fleet")
			if err != nil {
				t.Fatal(err)
			}
			program := harness.NewHelm(t, which, crds.Kubeconfig)
			helm := func(args ...string) harness.Result {
				t.Helper()
				return program.Run("", args...)
			}
			spec := func(want string) {
				t.Helper()
				crds.Kubectl("get", "boat", "one", "-n", "sea", "-o", "jsonpath={.spec.color} {.spec.sails} {.spec.port} {.metadata.generation}").Want(want, "")
			}
			helm("install", "one", chart, "-n", "sea", "--create-namespace").Contains("STATUS: deployed\n")
			spec("red 2 home 1")
			awaitEstablished(crds, "crd/boats.sea.example.com").OK()
			helm("upgrade", "one", chart, "-n", "sea", "--set", "color=blue").Contains("REVISION: 2\n")
			spec("blue 2 home 2")
			crds.Kubectl("get", "configmap", "one-fleet", "-n", "sea", "-o", "jsonpath={.data.served}").Want("true", "")
			helm("upgrade", "one", chart, "-n", "sea", "--set", "color=green").Fails(`spec.color: Unsupported value: "green": supported values: "red", "white", "blue"`)
			helm("rollback", "one", "1", "-n", "sea").OK()
			spec("red 2 home 3")
			helm("uninstall", "one", "-n", "sea", "--wait", "--timeout=50s").Contains(`release "one" uninstalled`)
			crds.Kubectl("get", "boats", "-A").Want("", "No resources found\n")
			helm("install", "two", chart, "-n", "sea", "--skip-crds", "--wait", "--timeout=50s").OK()
			crds.Kubectl("get", "boat", "two", "-n", "sea", "-o", "name").Want("boat.sea.example.com/two\n", "")
		})
	}
}
