package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"
)

func TestFlags(t *testing.T) {
	c, err := parse(strings.Fields("-quick -servers floor,keelson-etcd -objects 100,200 -rounds 5 -only ^get/ -out report.md -profile p"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.plan.Servers, []string{"floor", "keelson-etcd"}) || !slices.Equal(c.plan.Objects, []int{100, 200}) || c.plan.Rounds != 5 ||
		c.plan.Only.String() != "^get/" || c.out != "report.md" || c.profiles != "p" || c.plan.Get != scenario.Quick().Get {
		t.Errorf("the flags make %+v", c)
	}
	if want := "go run ./examples/bench -quick -servers floor,"; !strings.HasPrefix(c.command, want) {
		t.Errorf("the command is %q, want %q...", c.command, want)
	}
	c, err = parse(nil)
	if err != nil || c.plan.Get != scenario.Full().Get || !slices.Equal(c.plan.Objects, []int{10_000, 100_000}) {
		t.Errorf("without flags: %+v, %v", c, err)
	}
	for _, args := range []string{"more", "-only (", "-objects x", "-objects 200,100", "-servers x", "-unknown"} {
		if _, err := parse(strings.Fields(args)); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v, want an error", args, err)
		}
	}
}

func TestARunLeavesAReportAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "report.md")
	// The size of the binary can be measured without running a server.
	c, err := parse([]string{"-only", "^life/binary$", "-servers", "floor", "-out", out, "-dir", dir})
	if err != nil {
		t.Fatal(err)
	}
	complete, err := c.run(t.Context())
	if err != nil || !complete {
		t.Fatalf("run = %v, %v", complete, err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), "| stripped binary |") {
		t.Errorf("the report is %q, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}
