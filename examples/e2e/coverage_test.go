package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What COVERAGE.md says is shown by tests that exist, and each test of this folder shows something there. A folder of the repository
// that it names exists.
func TestCoverage(t *testing.T) {
	text, err := os.ReadFile("COVERAGE.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	exist, here := map[string]bool{}, map[string]bool{}
	const root = "../.."
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			exist[string(m[1])] = true
			if filepath.Dir(path) == filepath.Join(root, "examples", "e2e") && string(m[1]) != "TestMain" {
				here[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "\n## ")
	rows = regexp.MustCompile(`\w+\.\.\.`).ReplaceAllString(rows, "") // all tests whose names begin so
	for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`).FindAllString(rows, -1) {
		if !exist[name] {
			t.Errorf("COVERAGE.md names %s, which does not exist", name)
		}
		delete(here, name)
	}
	delete(here, "TestCoverage")
	var left []string
	for name := range here {
		left = append(left, name)
	}
	slices.Sort(left)
	if len(left) > 0 {
		t.Errorf("COVERAGE.md does not say what these show: %s", strings.Join(left, ", "))
	}
	for _, m := range regexp.MustCompile("`((?:runtime|storage|authn|authz|admission|flowcontrol|server|examples)(?:/[a-z0-9]+)*)`").FindAllStringSubmatch(rows, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("COVERAGE.md names the folder %s: %v", m[1], err)
		}
	}
}
