package report_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/report"
	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"
)

// figure is one sample.
type figure struct {
	scenario string
	objects  int
	metric   figures.Metric
	server   string
	value    float64
}

func write(t *testing.T, samples []figure, failures ...string) string {
	t.Helper()
	var r figures.Results
	for _, f := range samples {
		r.Add(figures.Key{Scenario: f.scenario, Objects: f.objects, Server: f.server, Metric: f.metric}, f.value)
	}
	for _, failure := range failures {
		r.Fail("%s", failure)
	}
	var b strings.Builder
	err := report.Write(&b, report.Run{
		Machine: proc.Machine{CPU: "Pocket Calculator", Cores: 2, Memory: 24 << 30, Kernel: "6.1", Go: "go1.26", Fsync: 250 * time.Microsecond},
		Plan:    scenario.Full(), Results: &r, Command: "bench -x", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 90 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wantLines checks that each line is in the text as a whole line.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("the report has no line\n%s\nit is\n%s", line, text)
		}
	}
}

func TestHead(t *testing.T) {
	wantLines(t, write(t, nil),
		"Made by `bench -x` on 2026-01-02 03:04 UTC in 1m30s, on this machine:",
		"| Pocket Calculator | 2 | 24.0 GiB | 6.1 | go1.26 | 250 µs |")
}

func TestWithoutFiguresThereAreNoTables(t *testing.T) {
	text := write(t, nil)
	for _, s := range []string{"Targets", "server CPU", "###", "memory is", "Not measured", "NaN"} {
		if strings.Contains(text, s) {
			t.Errorf("the report of nothing has %q", s)
		}
	}
}

func TestTablesHaveFiguresAndRatios(t *testing.T) {
	text := write(t, []figure{
		{scenario.GetAny16, 10_000, figures.CPU, figures.KeelsonBolt, 40e-6},
		{scenario.GetAny16, 10_000, figures.CPU, figures.KeelsonBolt, 50e-6},
		{scenario.GetAny16, 10_000, figures.CPU, figures.KeelsonBolt, 900e-6},
		{scenario.GetAny16, 10_000, figures.P50, figures.KeelsonBolt, 1.5e-3},
		{scenario.GetAny16, 10_000, figures.P99, figures.KeelsonBolt, 2},
		{scenario.GetAny16, 10_000, figures.Throughput, figures.KeelsonBolt, 12345.6},
		{scenario.GetAny16, 10_000, figures.AllocBytes, figures.KeelsonBolt, 10240},
		{scenario.GetAny16, 10_000, figures.Mallocs, figures.KeelsonBolt, 98.7},
		{scenario.GetAny16, 10_000, figures.CPU, figures.Peer, 1e-3},
		{scenario.GetAny16, 10_000, figures.CPU, figures.Floor, 25e-6},
		{scenario.GetAny16, 10_000, figures.EtcdCPU, figures.Peer, 2e-6},
	})
	wantLines(t, text,
		"## With 10,000 objects", "### GET",
		"| rv 0, 16 clients | – | 50.0 µs | – | 1.00 ms | 25.0 µs | – / 0.050 / – | – / 2.00 / – |",
		"| rv 0, 16 clients | – | 1.50 ms / 2.00 s | – | 0 / 0 | 0 / 0 |",
		"| rv 0, 16 clients | – | 12,346 | – | 0 | 0 |",
		"| rv 0, 16 clients | – | 10.0 KiB, 98.7 | – | 0 B, 0 | 0 B, 0 |",
		"| rv 0, 16 clients | – | 2.00 µs |",
		"| GET, rv 0, 16 clients, CPU | 10,000 | apiserver-etcd | ≤ 1/4 |  | 0.050 met |  |",
		"| GET, rv 0, 16 clients, CPU | 10,000 | floor | ≤ 1.80 |  | **2.00 missed** |  |",
		"## Targets: 1 met, 1 missed")
	if strings.Contains(text, "rv 0, 1 client") {
		t.Error("there is a row of what was not measured")
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples []figure
		want    string
	}{
		{"another bound for large sizes, met", []figure{
			{scenario.ListUnset, 100_000, figures.CPU, figures.KeelsonMemory, 0.24}, {scenario.ListUnset, 100_000, figures.CPU, figures.Peer, 1},
		}, "| LIST, rv unset, CPU | 100,000 | apiserver-etcd | ≤ 1/4 | 0.24 met |  |  |"},
		{"and for small ones, missed", []figure{
			{scenario.ListUnset, 10_000, figures.CPU, figures.KeelsonMemory, 0.24}, {scenario.ListUnset, 10_000, figures.CPU, figures.Peer, 1},
		}, "| LIST, rv unset, CPU | 10,000 | apiserver-etcd | ≤ 1/5 | **0.24 missed** |  |  |"},
		{"another one for each server", []figure{
			{scenario.GetUnset1, 10_000, figures.CPU, figures.KeelsonBolt, 4}, {scenario.GetUnset1, 10_000, figures.CPU, figures.KeelsonEtcd, 4},
			{scenario.GetUnset1, 10_000, figures.CPU, figures.Peer, 10},
		}, "| GET, rv unset, 1 client, CPU | 10,000 | apiserver-etcd | ≤ 1/4 |  | **0.40 missed** |  |\n" +
			"| GET, rv unset, 1 client, CPU | 10,000 | apiserver-etcd | ≤ 1/2 |  |  | 0.40 met |"},
		{"at least", []figure{
			{"write/patch/16", 10_000, figures.Throughput, figures.KeelsonBolt, 29}, {"write/patch/16", 10_000, figures.Throughput, figures.Peer, 10},
		}, "| patch, 16 clients, throughput | 10,000 | apiserver-etcd | ≥ 3.00 |  | **2.90 missed** |  |"},
		{"what has no size", []figure{
			{scenario.Binary, 0, figures.Size, figures.KeelsonBolt, 30}, {scenario.Binary, 0, figures.Size, figures.Peer, 90},
		}, "| stripped binary |  | apiserver-etcd | ≤ 1/3 |  | 0.33 met |  |"},
		{"an index makes independent", []figure{
			{scenario.ListIndex, 10_000, figures.CPU, figures.KeelsonMemory, 1}, {scenario.ListIndex, 100_000, figures.CPU, figures.KeelsonMemory, 11},
			{scenario.ListIndex, 10_000, figures.CPU, figures.KeelsonBolt, 1}, {scenario.ListIndex, 100_000, figures.CPU, figures.KeelsonBolt, 80},
		}, "| one result of LIST by an indexed label, CPU | 100,000 | itself with 10,000 | ≤ 1.25 | 1.10 met | **8.00 missed** |  |"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantLines(t, write(t, tt.samples), strings.Split(tt.want, "\n")...) })
	}
}

func TestWhatAnIndexDoesIsComparedWithNone(t *testing.T) {
	wantLines(t, write(t, []figure{
		{scenario.ListIndex, 10_000, figures.CPU, figures.KeelsonMemory, 1e-3}, {scenario.ListLabel, 10_000, figures.CPU, figures.Peer, 4e-3},
	}), "| 1% by a label with an index | 1.00 ms | – | – | – | – | 0.25 / – / – | – |")
}

func TestLife(t *testing.T) {
	wantLines(t, write(t, []figure{
		{scenario.Start, 0, figures.Time, figures.KeelsonEtcd, 0.02}, {scenario.Start, 0, figures.Time, figures.Peer, 0.2},
		{scenario.Filled, 100_000, figures.RSSPerObject, figures.KeelsonEtcd, 2048}, {scenario.Filled, 100_000, figures.RSSPerObject, figures.Peer, 4096},
	}),
		"| start to ready, without objects | – | – | 20.0 ms | 200 ms | – | – / – / 0.10 |",
		"| 100,000 objects: resident for each | – | – | 2.00 KiB | 4.00 KiB | – | – / – / 0.50 |")
}

func TestFailures(t *testing.T) {
	wantLines(t, write(t, nil, "floor: it fell\nand broke"), "## Not measured", "* floor: it fell", "  and broke")
}

// TestEachScenarioIsShown checks that the tables have all scenarios.
func TestEachScenarioIsShown(t *testing.T) {
	for _, name := range scenario.Full().Scenarios() {
		var samples []figure
		for _, metric := range []figures.Metric{figures.CPU, figures.Time, figures.Size, figures.RSS} {
			for _, objects := range []int{0, 10_000} {
				samples = append(samples, figure{name, objects, metric, figures.KeelsonBolt, 7})
			}
		}
		if text := write(t, samples); !regexp.MustCompile(`(?m)^\| .*\| – \| 7(\.00)? (s|B) \| –`).MatchString(text) {
			t.Errorf("%s is not in the report:\n%s", name, text)
		}
	}
}
