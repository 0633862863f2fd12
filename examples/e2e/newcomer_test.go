package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// The program of the README builds in a module of its own, outside any workspace, has none of the machinery that the library
// replaces, and is reached by the command that it prints.
func TestNewcomersProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "go.mod", fmt.Sprintf("module example.org/newcomer\n\ngo 1.26.0\n\nrequire github.com/keelson-dev/keelson v0.0.0\n\nreplace github.com/keelson-dev/keelson => %s\n", checkout))
	// The library's own checksums are used, so that nothing must be downloaded that was not downloaded for these tests.
	write(t, dir, "go.sum", read(t, filepath.Join(checkout, "go.sum")))
	const address = "127.0.0.1:6443"
	source := read(t, "testdata/newcomer/main.go")
	if !strings.Contains(source, address) {
		t.Fatalf("the program does not listen on %s", address)
	}
	write(t, dir, "main.go", strings.Replace(source, address, "127.0.0.1:0", 1))

	run := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("go", "build", "-o", "newcomer", ".")
	run("go", "vet", ".")
	modules := strings.Fields(run("go", "list", "-m", "-f", "{{.Path}}", "all"))
	linked := strings.Fields(run("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	distinct := map[string]bool{}
	for _, m := range linked {
		distinct[m] = true
	}
	t.Logf("go list -m all names %d modules; the program is built from %d of them", len(modules), len(distinct))
	for _, m := range modules {
		switch m {
		case "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/kube-aggregator":
			t.Errorf("the program requires %s", m)
		}
	}
	for m := range distinct { // the program chooses the storage and whether it has custom resources; it needs only the types of these
		if strings.HasPrefix(m, "go.etcd.io/etcd/") || strings.HasPrefix(m, "google.golang.org/grpc") || m == "k8s.io/apiextensions-apiserver" {
			t.Errorf("the program is built from %s, and does not use it", m)
		}
	}

	cmd := exec.Command(filepath.Join(dir, "newcomer"))
	cmd.Dir = dir
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		args := strings.Fields(line) // ready: kubectl --kubeconfig FILE get widgets
		if len(args) != 6 || args[1] != "kubectl" || args[2] != "--kubeconfig" {
			t.Errorf("the program says %q", line)
		} else {
			kubectl := harness.NewKubectl(t, args[3])
			kubectl.Run(widget("first", "size: 3"), "create", "-f", "-").Want("widget.example.com/first created\n", "")
			kubectl.Run("", args[4:]...).Contains("NAME", "SIZE", "first")
			kubectl.Run(widget("second", "size: 30"), "create", "-f", "-").Fails("spec.size: Invalid value")
		}
	}
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
	if err = errors.Join(err, cmd.Wait()); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
