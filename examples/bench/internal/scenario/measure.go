package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
)

// session is one server in one round.
type session struct {
	*Bench
	*server
	*process
	objects, round int

	// writeCost is the CPU time in seconds of one patch without watchers, by the number of writers.
	writeCost map[int]float64
}

// group is a set of scenarios that are measured one after the other, with common preparations.
type group struct {
	prefix string // prefix of the names of its scenarios
	first  bool   // measured only at the first size
	run    func(*session, context.Context) error
}

// groups returns everything that a session measures. Reads come before writes, because writes change the objects.
func groups() []group {
	return []group{
		{"get/", false, (*session).gets},
		{"list/", false, (*session).lists},
		{"watch/", true, (*session).watches},
		{"write/", true, (*session).writes},
		{"mixed", true, (*session).mixed},
	}
}

// measureAll measures the scenarios of the plan in a session. The floor cannot create objects.
func (b *Bench) measureAll(ctx context.Context, s *session) {
	for _, g := range groups() {
		if !b.plan.wantsGroup(g, s.objects == b.plan.Objects[0]) || s.name == figures.Floor && (g.prefix == "write/" || g.prefix == "mixed") {
			continue
		}
		b.try(ctx, s.server, s.objects, g.prefix, func(ctx context.Context, _ *server) error { return g.run(s, ctx) })
	}
}

// wantsGroup reports whether the plan has a scenario of the group, at the first size or at another one.
func (p Plan) wantsGroup(g group, first bool) bool {
	if g.first && !first {
		return false
	}
	return slices.ContainsFunc(p.Scenarios(), func(name string) bool {
		return strings.HasPrefix(name, g.prefix) && name != ListIndex && p.wants(name)
	})
}

// wantsSession reports whether the plan has anything that is measured in a session.
func (p Plan) wantsSession(first bool) bool {
	return p.wants(Filled) || p.wants(FirstList) || p.wants(ListIndex) ||
		slices.ContainsFunc(groups(), func(g group) bool { return p.wantsGroup(g, first) })
}

// fewest is the minimum number of small operations for a figure, even if the machine is slow for a moment.
const fewest = 50

// work describes the work of one measurement.
type work struct {
	ops       int
	elapsed   time.Duration
	latencies []time.Duration // sorted
	// beside is CPU time of the server for work that is not counted in ops.
	beside time.Duration
}

func worked(r load.Result) work {
	return work{ops: r.Ops, elapsed: r.Elapsed, latencies: r.Latencies}
}

// measure calls run, which loads the server, and adds the costs to the results under the scenario's name.
func (s *session) measure(ctx context.Context, scenario string, run func(context.Context) (work, error)) error {
	heap, err := s.Heap(ctx)
	if err != nil {
		return err
	}
	endProfile := func(context.Context, string) error { return nil }
	if s.opts.Profiles != "" {
		if endProfile, err = s.Profile(); err != nil {
			return err
		}
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	w, err := run(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", scenario, err)
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	if err := endProfile(ctx, s.profileName(s.server, s.objects, s.round, scenario)); err != nil {
		return err
	}
	heapAfter, err := s.Heap(ctx)
	if err != nil {
		return err
	}
	if w.ops == 0 {
		return fmt.Errorf("%s: nothing was done within %v", scenario, w.elapsed)
	}
	ops := float64(w.ops)
	cpu := max(0, after.server-before.server-w.beside).Seconds() / ops
	p50, p99 := load.Quantile(w.latencies, 0.50), load.Quantile(w.latencies, 0.99)
	s.add(scenario, figures.CPU, cpu)
	s.add(scenario, figures.Throughput, ops/w.elapsed.Seconds())
	s.add(scenario, figures.P50, p50.Seconds())
	s.add(scenario, figures.P99, p99.Seconds())
	s.add(scenario, figures.Mallocs, float64(heapAfter.Mallocs-heap.Mallocs)/ops)
	s.add(scenario, figures.AllocBytes, float64(heapAfter.AllocBytes-heap.AllocBytes)/ops)
	if s.etcd() {
		s.add(scenario, figures.EtcdCPU, (after.etcd-before.etcd).Seconds()/ops)
	}
	s.logf(s.server, s.objects, "%s: %.1f us CPU, %.0f/s, p50 %v, p99 %v, %.1f KB allocated", scenario, cpu*1e6,
		ops/w.elapsed.Seconds(), p50.Round(time.Microsecond), p99.Round(time.Microsecond), float64(heapAfter.AllocBytes-heap.AllocBytes)/ops/1e3)
	return nil
}

// etcd reports whether the server uses an etcd.
func (s *session) etcd() bool { return s.process.etcd != nil }

func (s *session) add(scenario string, metric figures.Metric, value float64) {
	s.results.Add(figures.Key{Scenario: scenario, Objects: s.objects, Server: s.name, Metric: metric}, value)
}

// used is CPU time.
type used struct{ server, etcd time.Duration }

func (s *session) cpu() (u used, err error) {
	u.server, err = proc.CPU(s.PID)
	if s.etcd() {
		var etcdErr error
		u.etcd, etcdErr = proc.CPU(s.process.etcd.PID)
		err = errors.Join(err, etcdErr)
	}
	return u, err
}

// loop measures operations of many clients after a warm-up. A large list has no warm-up except the request that checked it,
// because each request takes seconds.
func (s *session) loop(ctx context.Context, scenario string, clients []*load.Client, limit load.Limit, op load.Op) error {
	if !s.plan.wants(scenario) {
		return nil
	}
	warm, warmer := load.Limit{For: limit.For / 5}, op
	if s.objects >= Large && strings.HasPrefix(scenario, "list/") {
		warmer = func(ctx context.Context, c *load.Client, _, _ int) error {
			_, err := c.Do(ctx, load.Request{Path: item(0)})
			return err
		}
	}
	if _, err := load.Loop(ctx, clients, warm, warmer); err != nil {
		return fmt.Errorf("%s, warming up: %w", scenario, err)
	}
	return s.measure(ctx, scenario, func(ctx context.Context) (work, error) {
		r, err := load.Loop(ctx, clients, limit, op)
		return worked(r), err
	})
}
