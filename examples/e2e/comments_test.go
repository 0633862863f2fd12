package e2e_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// The commands in the package comment of each example work, in the order of the comment and as they are written there. A test starts
// the program itself, on a free port and with the flags of the comment. Its working directory stands for the root of a fresh clone.
func TestExampleComments(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{ // what the commands print, one after the other
		"hello": {"first ", "3 ", "red ", "second ", "12 ", "green ", "Size of the widget, in millimetres."},
		"wardrobe": {"shelf.wardrobe.example.com/top created\n", "shelf.wardrobe.example.com/bottom ", "outfit.wardrobe.example.com/summer ",
			"|white shirt|blue trousers|\n"},
		"crds": {"customresourcedefinition.apiextensions.k8s.io/caches.data.example.com created\n", " condition met\n",
			"cache.data.example.com/sessions created\n", "cache.data.example.com/pages scaled\n",
			"NAME       ENGINE      REPLICAS   READY   AGE\npages      memcached   3 ", "sessions   valkey      2 ", "Engine is the program of the servers."},
		"controlplane": {"default           Active ", "kube-system       Active "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clone(t)
			start, lines := commands(t, name)
			program, flags, _ := strings.Cut(start, " --")
			if program != "go run ./examples/"+name {
				t.Fatalf("the first command is %q", start)
			}
			o := harness.Options{Example: name, Dir: dir, Data: filepath.Join(dir, name+".db")}
			if flags != "" {
				o.Flags = strings.Fields("--" + flags)
			}
			harness.Start(t, o)

			kubectl := harness.NewKubectl(t, "") // the commands name the kubeconfig
			exports, printed := "", ""
			for _, line := range lines {
				if strings.HasPrefix(line, "export ") {
					exports += line + " && "
					continue
				}
				if !strings.HasPrefix(line, "kubectl ") {
					t.Fatalf("not a command of kubectl: %q", line)
				}
				printed += untilConditions(func() harness.Result { return kubectl.Shell(dir, exports+line) }).OK().Stdout
			}
			rest := printed
			for _, part := range want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("the commands do not print %q where they should:\n%s", part, printed)
				}
				rest = after
			}
		})
	}
}

// clone returns a new directory that has the folder examples of the repository.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	examples, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob("../*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests { // reading the manifests makes them inputs of the test
		read(t, file)
	}
	return dir
}

// commands returns the indented lines of an example's package comment: the command that starts the example, and the others.
func commands(t *testing.T, example string) (start string, others []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", example, "main.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(file.Doc.Text()) {
		if command, indented := strings.CutPrefix(line, "\t"); indented {
			all = append(all, strings.TrimSpace(command))
		}
	}
	if len(all) < 2 {
		t.Fatalf("the comment of %s has the commands %q", example, all)
	}
	return all[0], all[1:]
}

// The definition of examples/crds has the rules that its descriptions and messages promise.
func TestCRDsDefinition(t *testing.T) {
	crds := startCRDs(t)
	dir := clone(t)
	definition := filepath.Join(dir, "examples/crds/definition.yaml")
	crds.Kubectl("create", "-f", definition).OK()
	awaitEstablished(crds, "-f", definition).OK()
	crds.Kubectl("create", "-f", filepath.Join(dir, "examples/crds/caches.yaml")).OK()
	crds.Kubectl("get", "cache", "pages", "-o", "jsonpath={.spec}").Want(`{"engine":"memcached","memory":"256Mi","replicas":1}`, "")
	for patch, want := range map[string]string{
		`{"engine":"valkey"}`: `spec.engine: Invalid value: "valkey": the engine cannot be changed`,
		`{"engine":"disk"}`:   `spec.engine: Unsupported value: "disk": supported values: "memcached", "valkey"`,
		`{"persistent":true}`: `spec.persistent: Invalid value: only valkey can be persistent`,
		`{"memory":"much"}`:   `spec.memory: Invalid value: must be a quantity greater than 0, such as 256Mi`,
		`{"memory":0}`:        `spec.memory: Invalid value: must be a quantity greater than 0, such as 256Mi`,
		`{"replicas":10}`:     `spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9`,
	} {
		crds.Kubectl("patch", "cache", "pages", "--type=merge", "-p", `{"spec":`+patch+`}`).Fails(want)
	}
	crds.Kubectl("patch", "cache", "sessions", "--type=merge", "-p", `{"spec":{"memory":1073741824,"persistent":false}}`).OK()
	crds.Kubectl("patch", "cache", "sessions", "--subresource=status", "--type=merge", "-p",
		`{"status":{"replicas":2,"conditions":[{"type":"Ready","status":"True"}]}}`).OK()
	prints(t, crds.Kubectl("get", "cache", "sessions", "-o", "wide"), "NAME ENGINE REPLICAS MEMORY READY AGE", "sessions valkey 2 1073741824 True AGE")
}
