package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(folderEnv); kubeconfig != "" { // a process that a test has started
		os.Exit(runFolder(kubeconfig))
	}
	harness.Main(m)
}

// start starts a hello with a data file and makes the test parallel.
func start(t *testing.T) *harness.Server {
	t.Helper()
	t.Parallel()
	return harness.Start(t, harness.Options{})
}

// widget is a manifest; spec is lines such as "size: 1".
func widget(name string, spec ...string) string {
	return fmt.Sprintf("apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: %s\nspec:\n  %s\n", name, strings.Join(spec, "\n  "))
}

// labelled is a widget with one label.
func labelled(name, key, value string) string {
	return strings.Replace(widget(name, "size: 1"), "\nspec:", fmt.Sprintf("\n  labels:\n    %s: %q\nspec:", key, value), 1)
}

// create creates widgets of size 1.
func create(t *testing.T, hello *harness.Server, names ...string) {
	t.Helper()
	var all []string
	for _, n := range names {
		all = append(all, widget(n, "size: 1"))
	}
	hello.KubectlWith(strings.Join(all, "---\n"), "create", "-f", "-").OK()
}

// field returns the output of kubectl get -o jsonpath for one widget.
func field(hello *harness.Server, name, path string) string {
	return hello.Kubectl("get", "widget", name, "-o", "jsonpath={"+path+"}").OK().Stdout
}
