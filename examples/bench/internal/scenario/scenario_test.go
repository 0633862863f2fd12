package scenario_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"

	// The test builds the programs from these packages, which go test does not detect. With the imports, a change of one runs the
	// tests again.
	_ "github.com/keelson-dev/keelson/examples/bench/internal/program"
	_ "github.com/keelson-dev/keelson/examples/bench/internal/widget"
	_ "github.com/keelson-dev/keelson/server"
	_ "github.com/keelson-dev/keelson/storage/bolt"
	_ "github.com/keelson-dev/keelson/storage/etcd"
	_ "github.com/keelson-dev/keelson/storage/memory"
)

// tiny returns a plan that measures everything as briefly as possible.
func tiny(servers ...string) scenario.Plan {
	p := scenario.Quick()
	p.Servers, p.Objects = servers, []int{300}
	p.Get, p.List, p.Write, p.Mixed = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	p.Creates, p.Starts, p.Settle, p.Informers = 200, 1, 10*time.Millisecond, 5
	p.Watchers, p.StuckAmong, p.Deliveries, p.Paced = []int{10}, 10, 500, 100*time.Millisecond
	return p
}

// TestEverythingIsMeasured runs all scenarios with one server, and checks that there is a figure for each.
func TestEverythingIsMeasured(t *testing.T) {
	needsProc(t)
	if _, err := os.ReadFile("../../keelson/main.go"); err != nil { // makes its source an input of the test
		t.Fatal(err)
	}
	dir := t.TempDir()
	var results figures.Results
	var log strings.Builder
	plan := tiny(figures.KeelsonMemory)
	if err := scenario.Run(t.Context(), dir, plan, scenario.Options{Log: &log, Unstripped: true}, &results); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if failures := results.Failures(); len(failures) > 0 {
		t.Errorf("not measured: %s", strings.Join(failures, "\n"))
	}
	perServer := []string{scenario.Start, scenario.Binary, scenario.Idle}
	for _, name := range plan.Scenarios() {
		if name == scenario.FirstList || name == scenario.Storm { // these follow a restart, which objects in memory do not survive
			continue
		}
		key := figures.Key{Scenario: name, Objects: 300, Server: figures.KeelsonMemory}
		if slices.Contains(perServer, name) {
			key.Objects = 0
		}
		switch name {
		case scenario.Start:
			key.Metric = figures.Time
		case scenario.Binary:
			key.Metric = figures.Size
		case scenario.Idle, scenario.Filled:
			key.Metric = figures.RSS
		default:
			key.Metric = figures.Throughput // such a short CPU time may be less than a tick
		}
		if value, ok := results.Median(key); !ok || value <= 0 {
			t.Errorf("%s of %s is %v, %v", key.Metric, name, value, ok)
		}
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// TestInformersComeBack restarts a server while informers use it.
func TestInformersComeBack(t *testing.T) {
	needsProc(t)
	plan := tiny(figures.KeelsonBolt)
	plan.Only = regexp.MustCompile("^" + scenario.Storm + "$")
	var results figures.Results
	if err := scenario.Run(t.Context(), t.TempDir(), plan, scenario.Options{Unstripped: true}, &results); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []figures.Metric{figures.Time, figures.Peak, figures.PeakAnonymous, figures.Asked, figures.MostAsked} {
		key := figures.Key{Scenario: scenario.Storm, Objects: 300, Server: figures.KeelsonBolt, Metric: metric}
		if value, ok := results.Median(key); !ok || value <= 0 {
			t.Errorf("%s is %v, %v; %v", metric, value, ok, results.Failures())
		}
	}
}

func TestProfiles(t *testing.T) {
	needsProc(t)
	plan, profiles := tiny(figures.KeelsonMemory), t.TempDir()
	plan.Only = regexp.MustCompile("^get/0/1$")
	var results figures.Results
	if err := scenario.Run(t.Context(), t.TempDir(), plan, scenario.Options{Profiles: profiles, Unstripped: true}, &results); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(profiles, "keelson-memory-300-get-0-1-0.pprof"))
	if err != nil || info.Size() == 0 {
		t.Errorf("there is no profile of GET: %v, %v", err, results.Failures())
	}
}

// needsProc skips a test on systems where a server cannot be measured.
func needsProc(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the bench reads what a server uses from /proc: ", err)
	}
}

func TestABenchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	var results figures.Results
	err := scenario.Run(ctx, t.TempDir(), tiny(figures.KeelsonMemory), scenario.Options{Unstripped: true}, &results)
	if !errors.Is(err, stopped) {
		t.Errorf("Run = %v", err)
	}
}

func TestPlansAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*scenario.Plan)
		want string
	}{
		{"as they are", func(*scenario.Plan) {}, ""},
		{"quick", func(p *scenario.Plan) { *p = scenario.Quick() }, ""},
		{"a server that is none", func(p *scenario.Plan) { p.Servers = []string{"mainframe"} }, `no server "mainframe"`},
		{"too few objects", func(p *scenario.Plan) { p.Objects = []int{10} }, "a size is from"},
		{"too many", func(p *scenario.Plan) { p.Objects = []int{1_000_000} }, "a size is from"},
		{"sizes that fall", func(p *scenario.Plan) { p.Objects = []int{2000, 1000} }, "ascend"},
		{"nothing", func(p *scenario.Plan) { p.Only = regexp.MustCompile("^sing$") }, "no scenario matches"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := scenario.Full()
			tt.edit(&p)
			err := p.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check = %v, want %q", err, tt.want)
			}
		})
	}
}
