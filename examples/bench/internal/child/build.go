package child

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// module is the path of the module of this package and the programs.
const module = "github.com/keelson-dev/keelson/examples/bench/"

// Build builds the named program of this module into dir and returns its path. A stripped program is built as for a release:
// without symbols and without the paths of the machine. Other programs share the build cache with the tests. The working
// directory must be in the module, or in a workspace that has it.
func Build(ctx context.Context, dir, name string, stripped bool) (string, error) {
	program := filepath.Join(dir, name)
	args := []string{"build", "-o", program}
	if stripped {
		args = append(args, "-trimpath", "-ldflags", "-s -w")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, module+name)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return program, nil
}
