package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// startCRDs starts examples/crds with a data file and makes the test parallel.
func startCRDs(t *testing.T, flags ...string) *harness.Server {
	t.Helper()
	t.Parallel()
	return harness.Start(t, harness.Options{Example: "crds", Flags: flags})
}

// onFileAndEtcd runs a test against examples/crds with a data file, and with an etcd.
func onFileAndEtcd(t *testing.T, test func(t *testing.T, crds *harness.Server)) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, harness.Start(t, harness.Options{Example: "crds", Data: filepath.Join(t.TempDir(), "crds.db")}))
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		test(t, harness.Start(t, harness.Options{Example: "crds", Etcd: harness.StartEtcd(t)}))
	})
}

// boats is the definition of the tests.
const boats = "testdata/crds/boats.yaml"

// boat is a manifest; spec is lines such as "sails: 1".
func boat(name string, spec ...string) string {
	return "apiVersion: sea.example.com/v1\nkind: Boat\nmetadata: {name: " + name + "}\nspec:\n  port: home\n  " + strings.Join(spec, "\n  ") + "\n"
}

// defineBoats creates the definition and waits for it as users do.
func defineBoats(t *testing.T, crds *harness.Server) {
	t.Helper()
	path, err := filepath.Abs(boats)
	if err != nil {
		t.Fatal(err)
	}
	crds.Kubectl("create", "-f", path).Want("customresourcedefinition.apiextensions.k8s.io/boats.sea.example.com created\n", "")
	awaitEstablished(crds, "crd/boats.sea.example.com").
		Want("customresourcedefinition.apiextensions.k8s.io/boats.sea.example.com condition met\n", "")
}

// awaitEstablished waits for a definition with kubectl wait.
func awaitEstablished(crds *harness.Server, what ...string) harness.Result {
	wait := append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, what...)
	return untilConditions(func() harness.Result { return crds.Kubectl(wait...) })
}

// untilConditions runs a command, and repeats it if it is a kubectl wait that fails because the definition has no conditions yet
// (status.conditions is null until the first are written, also in clusters).
func untilConditions(run func() harness.Result) harness.Result {
	r := run()
	for range 100 {
		if r.Code == 0 || !strings.Contains(r.Stderr, ".status.conditions accessor error: <nil>") {
			break
		}
		r = run()
	}
	return r
}

// At the ready line, the four namespaces exist, and the kinds of clusters that controllers need are served.
func TestCRDsIsReady(t *testing.T) {
	crds := startCRDs(t)
	crds.Kubectl("get", "namespaces", "-o", "name").Want("namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n", "")
	crds.Kubectl("api-resources", "--no-headers", "-o", "name").
		Contains("configmaps\n", "events\n", "namespaces\n", "secrets\n", "customresourcedefinitions.apiextensions.k8s.io\n", "leases.coordination.k8s.io\n")
	crds.Kubectl("get", "--raw", "/readyz").Want("ok", "")
	crds.Kubectl("get", "crds").Want("", "No resources found\n")
	for _, name := range []string{"crds.db", "crds.db.pki", "crds.kubeconfig"} {
		if _, err := os.Stat(filepath.Join(crds.Dir, name)); err != nil && (crds.Etcd == "" || name != "crds.db") {
			t.Error(err)
		}
	}
}

// A create in a missing namespace fails unless the flag is set. In both cases the deletion of a namespace deletes its objects.
func TestCRDsLenientNamespaces(t *testing.T) {
	t.Parallel()
	for flag, lenient := range map[string]bool{"-lenient-namespaces=false": false, "-lenient-namespaces": true} {
		crds := harness.Start(t, harness.Options{Example: "crds", Flags: []string{flag}})
		defineBoats(t, crds)
		created := crds.KubectlWith(boat("a"), "create", "-n", "sea", "-f", "-")
		if !lenient {
			created.Fails(`namespaces "sea" not found`)
			continue
		}
		created.OK()
		crds.Kubectl("create", "namespace", "lake").OK()
		crds.KubectlWith(boat("a"), "create", "-n", "lake", "-f", "-").OK()
		crds.Kubectl("delete", "namespace", "lake").OK()
		crds.Kubectl("get", "boats", "-A", "-o", "jsonpath={.items[*].metadata.namespace}").Want("sea", "")
	}
}

// Definitions and objects are served again after a restart, at the ready line.
func TestCRDsRestart(t *testing.T) {
	crds := startCRDs(t)
	defineBoats(t, crds)
	crds.KubectlWith(boat("a", "color: red"), "create", "-f", "-").OK()
	before := crds.Kubectl("get", "boat", "a", "-o", "json").OK().Stdout
	crds.Stop()
	again := harness.Start(t, harness.Options{Example: "crds", Dir: crds.Dir, Etcd: crds.Etcd})
	if after := again.Kubectl("get", "boat", "a", "-o", "json").OK().Stdout; after != before {
		t.Errorf("after the restart a is\n%s\nbefore it was\n%s", after, before)
	}
	again.KubectlWith(boat("b", "color: green"), "create", "-f", "-").Fails(`Unsupported value: "green"`)
	again.Kill()
	killed := harness.Start(t, harness.Options{Example: "crds", Dir: crds.Dir, Etcd: crds.Etcd})
	killed.Kubectl("get", "bt", "-o", "name").Want("boat.sea.example.com/a\n", "")
}

// Invalid flags and data cause a clear error.
func TestCRDsRefuses(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"more": `crds: unexpected argument "more"`, "-color=red": "flag provided but not defined: -color",
		"-services=sea/fleets": `crds: -services: "sea/fleets" is not namespace/name=address`,
	} {
		crds := harness.Launch(t, harness.Options{Example: "crds", Flags: []string{flag}})
		if code := crds.Wait(); code != 2 || !strings.Contains(crds.Stderr(), want) || crds.Stdout() != "" {
			t.Errorf("%s: exit code %d, %q, want 2 and %s", flag, code, crds.Stderr(), want)
		}
	}
	crds := harness.Launch(t, harness.Options{Example: "crds", Data: t.TempDir()})
	if code := crds.Wait(); code != 1 || !strings.HasPrefix(crds.Stderr(), "crds: ") {
		t.Errorf("a folder for data: exit code %d, %q", code, crds.Stderr())
	}
	memory := harness.Start(t, harness.Options{Example: "crds", Data: "memory"})
	defineBoats(t, memory)
}
