package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

// These are the names of the scenarios that are measured once in a server's life.
const (
	Start     = "life/start"      // from the start on an empty storage until it is ready
	Binary    = "life/binary"     // size of the stripped program
	Idle      = "life/idle"       // memory of an idle server without objects
	Filled    = "life/filled"     // memory after a restart and a first LIST
	FirstList = "life/first-list" // from the restart until the first LIST is answered
)

// collection is the path of the widgets of all namespaces.
const collection = "/apis/" + widget.Group + "/" + widget.Version + "/widgets"

// resource returns the path of the widgets of a namespace.
func resource(namespace string) string {
	return "/apis/" + widget.Group + "/" + widget.Version + "/namespaces/" + namespace + "/widgets"
}

// item returns the path of widget i.
func item(i int) string { return resource(widget.Namespace(i)) + "/" + widget.Name(i) }

// wants reports whether the plan has a scenario.
func (p Plan) wants(scenario string) bool { return p.Only.MatchString(scenario) }

// empty measures a server without objects.
func (b *Bench) empty(ctx context.Context, s *server) error {
	if b.plan.wants(Binary) {
		info, err := os.Stat(s.program)
		if err != nil {
			return err
		}
		b.results.Add(figures.Key{Scenario: Binary, Server: s.name, Metric: figures.Size}, float64(info.Size()))
	}
	starts := b.plan.Starts
	if !b.plan.wants(Start) {
		starts = 0
	}
	for range starts {
		p, err := b.start(ctx, s, 0)
		if err != nil {
			return err
		}
		b.results.Add(figures.Key{Scenario: Start, Server: s.name, Metric: figures.Time}, p.Ready.Seconds())
		b.logf(s, 0, "%s: %v", Start, p.Ready.Round(time.Millisecond))
		if err := p.stop(ctx); err != nil {
			return err
		}
	}
	if !b.plan.wants(Idle) && !b.plan.wants(Filled) { // Filled includes the memory of the idle server
		return nil
	}
	p, err := b.start(ctx, s, 0)
	if err != nil {
		return err
	}
	return errors.Join(b.memory(ctx, s, p, Idle, 0), p.stop(ctx))
}

// memory measures the memory of a server after it was idle for a while.
func (b *Bench) memory(ctx context.Context, s *server, p *process, scenario string, objects int) error {
	if err := sleep(ctx, b.plan.Settle); err != nil {
		return err
	}
	used, err := proc.MemoryOf(p.PID)
	if err != nil {
		return err
	}
	heap, err := p.Heap(ctx)
	if err != nil {
		return err
	}
	key := figures.Key{Scenario: scenario, Objects: objects, Server: s.name}
	for _, m := range []struct {
		total, each figures.Metric
		value       float64
	}{
		{figures.RSS, figures.RSSPerObject, float64(used.Resident)},
		{figures.Anonymous, figures.AnonymousPerObject, float64(used.Anonymous)},
		{figures.HeapLive, figures.HeapPerObject, float64(heap.HeapLive)},
	} {
		key.Metric = m.total
		b.results.Add(key, m.value)
		if scenario == Filled {
			b.perObject(key, m.each)
		}
	}
	b.logf(s, objects, "%s: %d MiB resident, %d MiB without files, %d MiB live heap",
		scenario, used.Resident>>20, used.Anonymous>>20, heap.HeapLive>>20)
	return nil
}

// perObject adds the metric per object: the excess over an idle server.
func (b *Bench) perObject(key figures.Key, each figures.Metric) {
	filled, _ := b.results.Median(key)
	idle, ok := b.results.Median(figures.Key{Scenario: Idle, Server: key.Server, Metric: key.Metric})
	if key.Metric = each; ok {
		b.results.Add(key, (filled-idle)/float64(key.Objects))
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fillers is the number of clients that fill a server. Bolt commits concurrent writes with one fsync.
const fillers = 64

// fill creates widgets through the API until the server has want of them.
func (b *Bench) fill(ctx context.Context, s *server, p *process, have, want int) error {
	if s.name == figures.Floor || have >= want {
		return nil
	}
	clients := p.target.DialAll(fillers)
	defer load.CloseAll(clients)
	var next atomic.Int64
	next.Store(int64(have))
	all := load.Limit{Least: want - have, Most: want - have}
	result, err := load.Loop(ctx, clients, all, func(ctx context.Context, c *load.Client, _, _ int) error {
		_, err := create(ctx, c, int(next.Add(1))-1)
		return err
	})
	if err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	b.logf(s, want, "filled with %d objects, %.0f/s", result.Ops, float64(result.Ops)/result.Elapsed.Seconds())
	return nil
}

// create creates widget i and returns the answer, which is valid until the client's next request.
func create(ctx context.Context, c *load.Client, i int) ([]byte, error) {
	namespace := widget.Namespace(i)
	answer, err := c.Do(ctx, load.Request{
		Method: http.MethodPost, Path: resource(namespace) + manager, Body: widget.JSON(namespace, i), Keep: load.KeepAll,
	})
	return answer.Head, err
}

// manager is the query of a write.
const manager = "?fieldManager=bench"

// session measures everything for a server with a number of objects, once.
func (b *Bench) session(ctx context.Context, s *server, objects, round int) (err error) {
	first := objects == b.plan.Objects[0]
	if !b.plan.wantsSession(first) {
		return nil
	}
	if s.keeps() && s.filled < objects {
		if err := b.fillStorage(ctx, s, objects); err != nil {
			return err
		}
	}
	p, err := b.start(ctx, s, objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	if err := b.firstList(ctx, s, p, objects); err != nil {
		return err
	}
	if round == 0 && b.plan.wants(Filled) && s.name != figures.Floor {
		if err := b.memory(ctx, s, p, Filled, objects); err != nil {
			return err
		}
	}
	b.measureAll(ctx, &session{Bench: b, server: s, process: p, objects: objects, round: round})
	return nil
}

// fillStorage fills a server with a persistent storage, and ends it.
func (b *Bench) fillStorage(ctx context.Context, s *server, objects int) error {
	p, err := b.start(ctx, s, objects)
	if err != nil {
		return err
	}
	err = errors.Join(b.fill(ctx, s, p, s.filled, objects), p.stop(ctx))
	if err == nil {
		s.filled = objects
	}
	return err
}

// sessionWithIndex measures the effect of an index of the label.
func (b *Bench) sessionWithIndex(ctx context.Context, s *server, objects, round int) (err error) {
	if !s.keelson() || !b.plan.wants(ListIndex) {
		return nil
	}
	p, err := b.start(ctx, s, objects, "-index", "group")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	if !s.keeps() {
		if err := b.fill(ctx, s, p, 0, objects); err != nil {
			return err
		}
	}
	return (&session{Bench: b, server: s, process: p, objects: objects, round: round}).indexed(ctx)
}

// firstList fills an empty server, and lists everything once.
func (b *Bench) firstList(ctx context.Context, s *server, p *process, objects int) error {
	if !s.keeps() {
		if err := b.fill(ctx, s, p, 0, objects); err != nil {
			return err
		}
	}
	c := p.target.Dial()
	defer c.Close()
	if err := answered(ctx, c, load.Request{Path: collection}); err != nil {
		return err
	}
	if took := time.Since(p.Began()); s.keeps() {
		b.results.Add(figures.Key{Scenario: FirstList, Objects: objects, Server: s.name, Metric: figures.Time}, took.Seconds())
		b.logf(s, objects, "%s: %v", FirstList, took.Round(time.Millisecond))
	}
	return nil
}

// answered repeats a request while the server answers that it is not ready. A server built on k8s.io/apiserver is ready before
// its cache is.
func answered(ctx context.Context, c *load.Client, r load.Request) error {
	const pause, most = 10 * time.Millisecond, 6000
	for n := 0; ; n++ {
		_, err := c.Do(ctx, r)
		refused := new(load.StatusError)
		if !errors.As(err, &refused) || refused.Code != http.StatusTooManyRequests || n == most {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// profileName returns the path for the profile of a scenario.
func (b *Bench) profileName(s *server, objects, round int, scenario string) string {
	name := fmt.Sprintf("%s-%d-%s-%d.pprof", s.name, objects, strings.ReplaceAll(scenario, "/", "-"), round)
	return filepath.Join(b.opts.Profiles, name)
}
