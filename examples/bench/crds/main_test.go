package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDefinitionsAreWhatTheReportSays checks that each definition has its own schema of about the stated length, and every second
// one has rules.
func TestDefinitionsAreWhatTheReportSays(t *testing.T) {
	seen := map[string]bool{}
	for i := range 4 {
		text, err := yaml.Marshal(schema(i))
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(text)] {
			t.Errorf("schema %d is that of another definition", i)
		}
		seen[string(text)] = true
		lines := strings.Count(string(text), "\n")
		if lines < schemaLines || lines > schemaLines+25 {
			t.Errorf("schema %d has %d lines, want %d and what the rules take", i, lines, schemaLines)
		}
		if rules := strings.Contains(string(text), "x-kubernetes-validations"); rules != (i%2 == 1) {
			t.Errorf("schema %d has rules: %v", i, rules)
		}
	}
}

func TestFlags(t *testing.T) {
	c, err := parse(strings.Fields("-definitions 5 -operations 3 -settle 1ms -rest 2ms -out report.md"))
	if err != nil || c.definitions != 5 || c.operations != 3 || c.out != "report.md" || !strings.HasSuffix(c.command, "-out report.md") {
		t.Errorf("%+v, %v", c, err)
	}
	for _, args := range []string{"more", "-definitions 1", "-operations 0", "-server https://x", "-server https://x -ca y", "-pid 3", "-unknown"} {
		if _, err := parse(strings.Fields(args)); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v, want an error", args, err)
		}
	}
}

// TestARunLeavesAReport checks that everything can be measured and is in the report.
func TestARunLeavesAReport(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a server")
	}
	out := filepath.Join(t.TempDir(), "report.md")
	c, err := parse([]string{"-definitions", "12", "-operations", "3", "-settle", "1ms", "-rest", "1ms", "-out", out})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"the last 12", "20 more", "with one definition", "all defined, none used", "all used once, 1ms later", "GET", "CREATE", "WATCH", "/openapi/v2, gzip", "discovery, aggregated"} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %s", row)) {
			t.Errorf("the report has no row of %q:\n%s", row, text)
		}
	}
}
