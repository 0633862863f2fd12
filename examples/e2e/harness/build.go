package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	// go test sees what a test package imports, not what its child processes are built from. These make a change
	// in the library run the tests again instead of showing a remembered result.
	_ "github.com/keelson-dev/keelson/server"
	_ "github.com/keelson-dev/keelson/server/builtin"
	_ "github.com/keelson-dev/keelson/server/crd"
	_ "github.com/keelson-dev/keelson/server/options"
	_ "github.com/keelson-dev/keelson/storage/bolt"
	_ "github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	root          = "../.." // the library's module, seen from the tests' directory
	helloPackage  = "./examples/hello"
	helloSource   = root + "/examples/hello/main.go"
	kubectlModule = "k8s.io/component-base/version"
)

// binDir is where the binaries go, from Main.
var binDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "keelson-e2e-") })

// Main runs the tests and removes the binaries that they built. What the client libraries log without a logger of
// their own goes to a Log: an error there makes the run fail. It does not return.
func Main(m *testing.M) {
	log := NewLog()
	klog.SetLoggerWithOptions(log.Logger(), klog.ContextualLogger(true))
	ctrllog.SetLogger(log.Logger())
	code := m.Run()
	if lines := log.Errors(); len(lines) > 0 {
		fmt.Fprintf(os.Stderr, "the client libraries logged errors:\n%s\n", strings.Join(lines, "\n"))
		code = max(code, 1)
	}
	if dir, err := binDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// Kubectl and hello, each built when first asked for.
var (
	kubectlBinary = sync.OnceValues(func() (string, error) {
		ldflags := fmt.Sprintf("-X %[1]s.gitVersion=v1.37.2 -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=37", kubectlModule)
		return build(".", "./kubectl", "-ldflags", ldflags)
	})
	helloBinary = sync.OnceValues(func() (string, error) {
		// Reading the source makes it an input of the tests, as the imports above make the library one.
		if _, err := os.ReadFile(helloSource); err != nil {
			return "", err
		}
		return build(root, helloPackage)
	})
)

// build builds pkg, seen from dir, and returns the path of the program.
func build(dir, pkg string, flags ...string) (string, error) {
	return buildAs(filepath.Base(pkg), dir, nil, pkg, flags...)
}

// buildAs is build with the program's name, and with environment variables, NAME=value, for the go command.
func buildAs(name, dir string, env []string, pkg string, flags ...string) (string, error) {
	bin, err := binDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(bin, name)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", program}, flags...), pkg)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
