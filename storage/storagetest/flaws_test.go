package storagetest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// flawVariable has the name of the flaw of the backend that TestFlawed tests, in a child process.
const flawVariable = "KEELSON_STORAGETEST_FLAW"

// TestFlaws shows that the tests can fail: for each flaw the test named with it fails.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for _, f := range flaws {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.slow && os.Getenv("KEELSON_SOAK") == "" {
				t.Skip("it takes the kit's patience")
			}
			red(t, "^TestFlawed$/"+f.red, flawVariable+"="+f.name)
		})
	}
}

// red runs a test of this binary in another process, where it must fail.
func red(t *testing.T, pattern, variable string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+strings.ReplaceAll(pattern, " ", "_"), "-test.short", "-test.timeout=100s", "-test.failfast")
	cmd.Env = append(os.Environ(), variable, "TMPDIR="+t.TempDir(), "KEELSON_SOAK=")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("the kit has found nothing:\n%s", out)
	case !strings.Contains(string(out), "--- FAIL: "):
		t.Errorf("it has not failed in a test: %v\n%.2000s", err, out)
	case testing.Verbose():
		t.Logf("%.1500s", out)
	}
}

// TestFlawed is the test that fails: it is run by TestFlaws.
func TestFlawed(t *testing.T) {
	name := os.Getenv(flawVariable)
	if name == "" {
		t.Skip("TestFlaws runs it")
	}
	for _, f := range flaws {
		if f.name == name {
			storagetest.Backend(t, func(*testing.T) storage.Backend {
				return &flawed{Backend: memory.New(memory.Options{}), flaw: f}
			})
			return
		}
	}
	t.Fatalf("there is no flaw %q", name)
}
