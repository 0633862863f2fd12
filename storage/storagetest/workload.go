package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// workload is concurrent clients and watches on few keys of one store, and their results.
type workload struct {
	t        *testing.T
	backends []storage.Backend // of one store
	prefix   string            // of all its keys, which nothing else uses
	keys     int
	calls    int           // maximum number of calls of a client; 0: until it is stopped
	pause    time.Duration // after each call
	faults   int           // number of faults meanwhile
	// incomplete means that results may lack their revision, that watches may lack previous values, and that there are no
	// unconditional writes.
	incomplete bool

	ctx      context.Context // ends with the test
	started  time.Time
	first    int64        // the store's revision before
	final    atomic.Int64 // the store's revision after; 0 until the clients have ended
	halfway  chan struct{}
	once     sync.Once // closes halfway
	stop     chan struct{}
	clients  []*client
	watchers []*watcher
	working  sync.WaitGroup // clients
	watching sync.WaitGroup // watchers
}

const workloadClients = 6

// begin starts the clients and the watches.
func (w *workload) begin() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(4+2*w.faults)*Timeout)
	w.t.Cleanup(cancel)
	w.ctx, w.started = ctx, time.Now()
	w.halfway, w.stop = make(chan struct{}), make(chan struct{})
	w.first = w.now()
	for i := range workloadClients {
		w.clients = append(w.clients, &client{
			w: w, id: i, b: w.backends[i%len(w.backends)], rnd: rand.New(rand.NewPCG(rand.Uint64(), 3)), seen: map[string]int64{},
		})
	}
	w.watchers = w.watches()
	for _, f := range w.watchers {
		w.watching.Go(f.run)
	}
	for _, c := range w.clients {
		w.working.Go(c.run)
	}
}

// finish waits for the clients, lets the watches read to the end, and judges all results.
func (w *workload) finish() {
	w.t.Helper()
	w.working.Wait()
	w.middle()
	w.final.Store(w.now())
	for _, f := range w.watchers {
		f.ask()
	}
	w.watching.Wait()
	late := w.lateWatches()
	for _, f := range late {
		f.run()
	}
	w.watchers = append(w.watchers, late...)
	w.judge()
}

// middle starts the watches that begin in the middle.
func (w *workload) middle() { w.once.Do(func() { close(w.halfway) }) }

// now returns the store's revision. If the store is unavailable, it tries again.
func (w *workload) now() int64 {
	w.t.Helper()
	revision, err := w.ask()
	if err != nil {
		w.t.Fatalf("reading the store's revision: %v", err)
	}
	return revision
}

func (w *workload) ask() (int64, error) {
	ctx, cancel := context.WithTimeout(w.ctx, Timeout)
	defer cancel()
	for {
		res, err := w.backends[0].Get(ctx, w.prefix, 0)
		if err == nil || !transient(err) || ctx.Err() != nil {
			return res.Revision, err
		}
		w.rest(ctx, 10*time.Millisecond)
	}
}

// rest waits for a time, or until ctx ends.
func (w *workload) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (w *workload) key(i int) string { return fmt.Sprint(w.prefix, "k", i) }

// client makes calls one after the other.
type client struct {
	w    *workload
	b    storage.Backend
	id   int
	rnd  *rand.Rand
	seen map[string]int64 // the last known revision of a key; 0: none
	last int64            // the greatest revision seen

	calls   []call
	bad     error        // the error that ended it too early
	over    atomic.Bool  // it has ended
	commits atomic.Int64 // number of acknowledged commits
	reads   atomic.Int64 // number of successful reads of the latest state
}

func (c *client) run() {
	defer c.over.Store(true)
	for i := 0; c.w.calls == 0 || i < c.w.calls; i++ {
		select {
		case <-c.w.stop:
			return
		case <-c.w.ctx.Done():
			c.bad = c.w.ctx.Err()
			return
		default:
		}
		if c.w.calls > 0 && i == c.w.calls/2 {
			c.w.middle()
		}
		done := c.step(i)
		c.calls = append(c.calls, done)
		if !done.tolerable() {
			c.bad = done.err
			return
		}
		if pause := c.w.pause; pause > 0 {
			if done.outcome == unknown {
				pause *= 10
			}
			c.w.rest(c.w.ctx, pause)
		}
	}
}

// step makes one random call.
func (c *client) step(i int) call {
	key := c.w.key(c.rnd.IntN(c.w.keys))
	ask := call{client: c.id, key: key}
	switch n := c.rnd.IntN(100); {
	case n < 25:
		ask.verb = verbGet
	case n < 35:
		ask.verb = verbRange
	case n < 40:
		ask.verb, ask.at = verbGet, c.earlier()
	case n < 44:
		ask.verb, ask.at = verbRange, c.earlier()
	default:
		ask.verb, ask.commit = verbCommit, c.commit(key, i)
	}
	ctx, cancel := context.WithTimeout(c.w.ctx, c.timeout())
	defer cancel()
	ask.begun = time.Since(c.w.started)
	switch ask.verb {
	case verbGet:
		ask.get(ctx, c.b)
	case verbRange:
		ask.list(ctx, c.b, c.w.prefix)
	case verbCommit:
		ask.make(ctx, c.b)
	}
	ask.ended = time.Since(c.w.started)
	c.learn(&ask)
	return ask
}

// timeout returns the timeout of a call. A few calls have a very short one.
func (c *client) timeout() time.Duration {
	switch c.rnd.IntN(40) {
	case 0:
		return time.Duration(c.rnd.IntN(2000)) * time.Microsecond
	case 1:
		return 100 * time.Millisecond
	}
	return 3 * time.Second
}

// earlier returns a revision that this client has seen before; 0 if there is none.
func (c *client) earlier() int64 {
	if c.last <= c.w.first {
		return 0
	}
	return c.w.first + c.rnd.Int64N(c.last-c.w.first+1)
}

// commit returns a random change of a key, with a value that nobody else writes.
func (c *client) commit(key string, i int) storage.Commit {
	done := storage.Commit{Key: key, Expect: c.seen[key], Value: fmt.Appendf(nil, "%d.%d", c.id, i)}
	switch n := c.rnd.IntN(10); {
	case n < 2:
		done.Expect = 0
	case n < 4 && !c.w.incomplete:
		done.Expect = storage.AnyRevision
	case n < 5:
		done.Expect, done.Delete = storage.AnyRevision, true
	case n < 7:
		done.Delete = true
	}
	if done.Delete {
		done.Value = nil
	}
	return done
}

// learn records what a call showed.
func (c *client) learn(done *call) {
	c.last = max(c.last, done.revision)
	switch {
	case done.outcome == conflicted, done.verb == verbGet && done.outcome == answered && done.at == 0:
		c.seen[done.key] = done.kv.Revision
	case done.verb == verbCommit && done.outcome == answered:
		c.seen[done.key] = done.revision
		if done.commit.Delete {
			c.seen[done.key] = 0
		}
	}
	switch {
	case done.outcome != answered || done.at != 0:
	case done.verb == verbCommit:
		c.commits.Add(1)
	default:
		c.reads.Add(1)
	}
}
