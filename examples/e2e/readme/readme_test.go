// Package readme_test holds the README: its code is compiled, and its links lead somewhere.
package readme_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the README says about kinds.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec,omitempty"`
}

func (g *Gadget) DeepCopyObject() runtime.Object { return runtime.DeepCopy(g) }

type WidgetSpec struct {
	Size int32 `json:"size,omitempty"`
}

// What the README says about storage.
var storages = []storage.Opener{memory.Open(), bolt.At("widgets.db"), etcd.At("https://10.0.0.1:2379", "https://10.0.0.2:2379")}

// What the README says about extensions.
func install(srv *server.Server) error {
	return errors.Join(
		srv.Install(builtin.New(builtin.Options{})), // namespaces, ConfigMaps, Secrets, Leases and Events; garbage collection
		srv.Install(rbac.New(rbac.Options{})),       // roles and their bindings, with those of a new cluster
		srv.Install(reviews.New(reviews.Options{})), // what a user may do: kubectl auth can-i
		srv.Install(crd.New(crd.Options{})),         // CustomResourceDefinitions
	)
}

// Each block of Go in the README is part of a file that is compiled, which a comment above the block names.
func TestReadme(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{
		Storage: storages[0], // the others make a file, and need a cluster
		Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Gadget", server.KindOptions[*Gadget]{}),
		}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(install(srv), srv.Close()); err != nil {
		t.Error(err)
	}
	text := read(t, "README.md")
	if lines := strings.Count(text, "\n"); lines > 200 {
		t.Errorf("the README has %d lines, want at most 200", lines)
	}
	blocks := regexp.MustCompile("(?s)(?:<!-- (\\S+) -->\n)?```go\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Error("the README has no block of Go")
	}
	for _, block := range blocks {
		if block[1] == "" {
			t.Errorf("no comment names the file of this block:\n%s", block[2])
			continue
		}
		if source := read(t, block[1]); !strings.Contains(unindented(source), unindented(block[2])) {
			t.Errorf("%s does not have this block of the README:\n%s", block[1], block[2])
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, link[1])); err != nil {
			t.Errorf("the README links to a file that is not there: %v", err)
		}
	}
}

const root = "../../.."

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unindented returns lines without the blanks at their ends.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
