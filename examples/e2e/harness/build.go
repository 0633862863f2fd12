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

	// go test detects changes in packages that a test imports, but not in programs that it builds. With these imports a change in
	// the library makes the tests run again instead of showing a cached result.
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
	root           = "../.." // the library's module, relative to the tests' directory
	helloPackage   = "./examples/hello"
	helloSource    = root + "/examples/hello/main.go"
	versionPackage = "k8s.io/component-base/version"
)

// binDir returns the directory of the binaries.
var binDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "keelson-e2e-") })

// Main runs the tests and removes the binaries that they built. It does not return. Log lines of client libraries without a
// logger of their own go to a Log; an error among them makes the run fail.
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

// These are kubectl and hello, each built when it is first needed.
var (
	kubectlBinary = sync.OnceValues(func() (string, error) {
		return build(".", "./kubectl", kubectlVersion("37", "2"))
	})
	helloBinary = sync.OnceValues(func() (string, error) {
		// Reading the source makes it an input of the tests, like the imports above.
		if _, err := os.ReadFile(helloSource); err != nil {
			return "", err
		}
		return build(root, helloPackage)
	})
)

// kubectlVersion returns the flag of go build for the version that kubectl says it has.
func kubectlVersion(minor, patch string) string {
	return fmt.Sprintf("-ldflags=-X %[1]s.gitVersion=v1.%[2]s.%[3]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=%[2]s", versionPackage, minor, patch)
}

// build builds pkg in the directory dir, and returns the path of the program.
func build(dir, pkg string, flags ...string) (string, error) {
	return buildAs(filepath.Base(pkg), dir, nil, pkg, flags...)
}

// buildAs is build with a name for the program, which may have a folder, and with environment variables, NAME=value, for the go command.
func buildAs(name, dir string, env []string, pkg string, flags ...string) (string, error) {
	bin, err := binDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(bin, name)
	if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", program}, flags...), pkg)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
