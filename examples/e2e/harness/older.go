package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// OlderReleases are the releases of kubectl and client-go before the present one that the tests know. Each is the name of a module
// in the folder older, which has the requirements of that release. The modules are not in go.work, where all have the same ones.
var OlderReleases = []string{"v135", "v136"}

// Informers is the program of the folder older/informers.
type Informers struct{ Program }

// NewInformers returns the informers of one of OlderReleases with a kubeconfig file; env has further NAME=value pairs.
func NewInformers(t testing.TB, release, kubeconfig string, env ...string) *Informers {
	t.Helper()
	return &Informers{newProgram(t, "informers of "+release, older(t, release).informers, kubeconfig, env)}
}

// olderPrograms are the programs of a release, each built when it is first needed.
type olderPrograms struct{ kubectl, informers func() (string, error) }

var olderBinaries = sync.OnceValue(func() map[string]olderPrograms {
	all := map[string]olderPrograms{}
	for _, release := range OlderReleases {
		all[release] = olderPrograms{
			kubectl:   sync.OnceValues(func() (string, error) { return buildOlder(release, "kubectl") }),
			informers: sync.OnceValues(func() (string, error) { return buildOlder(release, "informers") }),
		}
	}
	return all
})

func older(t testing.TB, release string) olderPrograms {
	t.Helper()
	programs, ok := olderBinaries()[release]
	if !ok {
		t.Fatalf("there is no release %q; want one of %q", release, OlderReleases)
	}
	return programs
}

var kubectlRequired = regexp.MustCompile(`\sk8s\.io/kubectl v0\.(\d+)\.(\d+)\s`)

// buildOlder builds a program of the folder older in the module of a release.
func buildOlder(release, name string) (string, error) {
	const folder = "older"
	// Reading the files makes the source and the versions inputs of the tests.
	if _, err := os.ReadFile(filepath.Join(folder, name, "main.go")); err != nil {
		return "", err
	}
	dir := filepath.Join(folder, release)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	version := kubectlRequired.FindSubmatch(mod)
	if version == nil {
		return "", fmt.Errorf("the go.mod in %s does not require k8s.io/kubectl", dir)
	}
	tool := "github.com/keelson-dev/keelson/examples/e2e/" + folder + "/" + name
	// The program has its own name in a folder of the release: a client's user agent begins with it.
	path, err := buildAs(filepath.Join(release, name), dir, []string{"GOWORK=off"}, tool, kubectlVersion(string(version[1]), string(version[2])))
	if err != nil {
		return "", fmt.Errorf("%s of %s cannot be built; the first time, its modules have to be downloaded: %w", name, release, err)
	}
	return path, nil
}
