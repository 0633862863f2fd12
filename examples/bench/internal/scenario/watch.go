package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
)

// These are the speeds at which events are made.
const (
	FullSpeed = "full"  // as fast as a few writers can write
	AtAPace   = "50ps"  // 50 per second
	WithStuck = "stuck" // at full speed, with one more watcher that never reads
)

// pace is the number of events per second for AtAPace.
const pace = 50

// writersAtFullSpeed is the number of writers for FullSpeed.
const writersAtFullSpeed = 4

// WatchName returns the name of the scenario with a number of watchers.
func WatchName(watchers int, way string) string { return fmt.Sprintf("watch/%d/%s", watchers, way) }

// watches measures the delivery of changes to many watchers of the whole collection.
func (s *session) watches(ctx context.Context) error {
	if s.round >= s.plan.RoundsOfWatches() {
		return nil
	}
	if err := s.costOfWrites(ctx); err != nil {
		return err
	}
	for _, watchers := range s.plan.Watchers {
		ways := []string{FullSpeed, AtAPace}
		if watchers == s.plan.StuckAmong {
			ways = append(ways, WithStuck)
		}
		for _, way := range ways {
			if !s.plan.wants(WatchName(watchers, way)) {
				continue
			}
			// If one scenario fails, the others are still measured: it may be too much for a server.
			s.try(ctx, s.server, s.objects, WatchName(watchers, way), func(ctx context.Context, _ *server) error {
				return s.fanOut(ctx, watchers, way)
			})
		}
	}
	return nil
}

// costOfWrites measures the costs of the writes that make the events, without watchers.
func (s *session) costOfWrites(ctx context.Context) error {
	s.writeCost = make(map[int]float64)
	for _, n := range []int{1, writersAtFullSpeed} {
		clients := s.target.DialAll(n)
		defer load.CloseAll(clients)
		op := func(ctx context.Context, c *load.Client, _, _ int) error { return s.change(ctx, c) }
		if _, err := load.Loop(ctx, clients, load.Limit{Least: handful, Most: handful}, op); err != nil {
			return err
		}
		before, err := s.cpu()
		if err != nil {
			return err
		}
		r, err := load.Loop(ctx, clients, load.Limit{For: s.plan.Write, Least: handful}, op)
		if err != nil {
			return err
		}
		after, err := s.cpu()
		if err != nil {
			return err
		}
		s.writeCost[n] = (after.server - before.server).Seconds() / float64(r.Ops)
	}
	return nil
}

// change changes one of the first widgets of the server. Every change in a server's life differs from the one before: otherwise
// it would change nothing and make no event.
func (s *session) change(ctx context.Context, c *load.Client) error {
	n := int(s.changed.Add(1))
	return mergePatch(ctx, c, &object{number: n % handful}, sizeOf(0, n))
}

// watch opens streams of the changes from now on.
func (s *session) watch(ctx context.Context, w load.Watching) (*load.Crowd, error) {
	c := s.target.Dial()
	defer c.Close()
	answer, err := c.Do(ctx, load.Request{Path: collection + "?limit=1", Keep: 4 << 10})
	if err != nil {
		return nil, err
	}
	w.Collection, w.Revision = collection, text(answer.Head, "resourceVersion")
	return s.target.Watch(ctx, w)
}

// events returns the number of changes to make.
func (p Plan) events(watchers int, way string) int {
	const fewest, most = 20, 1000
	n := max(fewest, min(p.Deliveries/watchers, most))
	switch way {
	case AtAPace:
		return min(n, int(p.Paced.Seconds()*pace))
	case WithStuck:
		return max(n, 2*load.StuckAfter/1700) // events have about 1.7 KiB: the stuck reader must block the server
	}
	return n
}

// deliveryTimeout is the timeout for overloaded servers.
const deliveryTimeout = time.Minute

// fanOut measures the delivery to a number of watchers.
func (s *session) fanOut(ctx context.Context, watchers int, way string) error {
	events, writers, stuck := s.plan.events(watchers, way), writersAtFullSpeed, 0
	if way == AtAPace {
		writers = 1
	}
	if way == WithStuck {
		stuck = 1
	}
	crowd, err := s.watch(ctx, load.Watching{Watchers: watchers, Stuck: stuck, Events: events})
	if err != nil {
		return err
	}
	defer crowd.Close()
	clients := s.target.DialAll(writers)
	defer load.CloseAll(clients)
	for _, c := range clients { // connects the client
		if _, err := c.Do(ctx, load.Request{Path: item(0)}); err != nil {
			return err
		}
	}
	name := WatchName(watchers, way)
	err = s.measure(ctx, name, func(ctx context.Context) (work, error) {
		began := time.Now()
		if err := s.send(ctx, crowd, clients, events, way); err != nil {
			return work{}, err
		}
		err := crowd.Wait(ctx, deliveryTimeout)
		elapsed := time.Since(began)
		if err != nil {
			return work{}, err
		}
		beside := time.Duration(s.writeCost[writers] * float64(events) * float64(time.Second))
		return work{ops: watchers * events, elapsed: elapsed, latencies: crowd.Latencies(), beside: beside}, nil
	})
	if resumes := crowd.Resumes(); resumes > 0 {
		s.logf(s.server, s.objects, "%s: %d streams were ended by the server and opened again", name, resumes)
	}
	s.add(name, figures.Resumes, float64(crowd.Resumes()))
	return err
}

// send makes the changes that the crowd expects.
func (s *session) send(ctx context.Context, crowd *load.Crowd, clients []*load.Client, events int, way string) error {
	var tick <-chan time.Time
	if way == AtAPace {
		ticker := time.NewTicker(time.Second / pace)
		defer ticker.Stop()
		tick = ticker.C
	}
	_, err := load.Loop(ctx, clients, load.Limit{Least: events, Most: events}, func(ctx context.Context, c *load.Client, _, _ int) error {
		if tick != nil {
			<-tick
		}
		return crowd.Send(func() error { return s.change(ctx, c) })
	})
	return err
}
