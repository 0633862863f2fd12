package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
)

// Storm is the scenario of a restart after which all informers return at once.
const Storm = "life/informers"

// stormTimeout is the timeout for overloaded servers.
const stormTimeout = 10 * time.Minute

// storm measures what a restarted server needs until all informers have all objects again. It skips servers without a persistent
// storage.
func (b *Bench) storm(ctx context.Context, s *server, objects, round int) (err error) {
	if !b.plan.wants(Storm) || !s.keeps() || round > 0 {
		return nil
	}
	if s.filled < objects {
		if err := b.fillStorage(ctx, s, objects); err != nil {
			return err
		}
	}
	p, err := b.start(ctx, s, objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	peak := watchMemory(p.PID)
	within, cancel := context.WithTimeout(ctx, stormTimeout)
	defer cancel()
	synced, err := p.target.Sync(within, collection, b.plan.Informers)
	most, memoryErr := peak()
	if err = errors.Join(err, memoryErr); err != nil {
		return err
	}
	var last time.Duration
	asked, mostAsked := 0, 0
	for i, one := range synced {
		if one.Objects < objects {
			return fmt.Errorf("informer %d has %d objects of %d", i, one.Objects, objects)
		}
		last, asked, mostAsked = max(last, one.Took), asked+one.Asked, max(mostAsked, one.Asked)
	}
	key := figures.Key{Scenario: Storm, Objects: objects, Server: s.name}
	mean := float64(asked) / float64(len(synced))
	for metric, value := range map[figures.Metric]float64{
		figures.Time: last.Seconds(), figures.Peak: float64(most.Resident), figures.PeakAnonymous: float64(most.Anonymous),
		figures.Asked: mean, figures.MostAsked: float64(mostAsked),
	} {
		key.Metric = metric
		b.results.Add(key, value)
	}
	b.logf(s, objects, "%s: %d synced after %v, %.1f requests each and %d at most, %d MiB resident at most, %d MiB without files",
		Storm, len(synced), last.Round(time.Millisecond), mean, mostAsked, most.Resident>>20, most.Anonymous>>20)
	return nil
}

// watchMemory measures the memory of a process until peak is called, which returns the maximum.
func watchMemory(pid int) (peak func() (proc.Memory, error)) {
	const pause = 20 * time.Millisecond
	var most proc.Memory
	var failed error
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ends when peak is called
		defer close(done)
		ticks := time.NewTicker(pause)
		defer ticks.Stop()
		for {
			now, err := proc.MemoryOf(pid)
			if err != nil {
				failed = err
				return
			}
			most.Resident, most.Anonymous = max(most.Resident, now.Resident), max(most.Anonymous, now.Anonymous)
			select {
			case <-ticks.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (proc.Memory, error) {
		close(stop)
		<-done
		return most, failed
	}
}
