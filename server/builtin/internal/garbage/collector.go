package garbage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalogue provides the served kinds. *catalogue.Catalogue implements it.
type Catalogue interface {
	// Kinds returns the kinds that are served now.
	Kinds() []catalogue.Kind
	// Changed returns a channel that is closed when Kinds may return something else.
	Changed() <-chan struct{}
}

// Options are the options of a Collector. Catalogue is required.
type Options struct {
	Catalogue Catalogue // the kinds to collect
	// Logger receives invalid references, kinds that cannot be watched and lasting failures as warnings, and the collector's
	// changes as debug lines. With nil nothing is logged.
	Logger *zap.Logger
	Hooks  Hooks // called for what the collector finds
}

// Hooks are functions that a Collector calls. Each may be nil. They must return soon, and may be called concurrently.
type Hooks struct {
	// Invalid is called once for each invalid reference.
	Invalid func(Invalid)
}

// Collector deletes objects whose owners are gone.
type Collector struct{ opts Options }

// New returns a collector. It does nothing before Run.
func New(opts Options) (*Collector, error) {
	if opts.Catalogue == nil {
		return nil, errors.New("garbage: Options.Catalogue is required: the kinds to look after")
	}
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	return &Collector{opts}, nil
}

// run is one call of Run.
type run struct {
	worker     *worker
	log        *zap.Logger
	background sync.WaitGroup // all goroutines of the run

	queueMu sync.Mutex // guards queue
	queue   *queue
	wake    chan struct{} // holds a value when the queue must be checked

	watchers map[*kind]context.CancelFunc // belongs to follow

	watchedMu sync.Mutex // guards watched
	watched   map[schema.GroupResource]*catalogue.Objects
}

func infoOf(s *catalogue.Kind) kindInfo {
	has := func(verb string) bool { return slices.Contains(s.Verbs, verb) }
	return kindInfo{
		resource: s.Resource.GroupResource(), hub: s.Kind, known: s.Kinds, namespaced: s.Namespaced,
		collected: has("get") && has("delete"),
	}
}

// enqueue moves the objects to examine from the graph to the queue. The caller holds worker.mu.
func (r *run) enqueue() {
	r.queueMu.Lock()
	r.worker.graph.take(r.queue.add)
	r.queueMu.Unlock()
	r.awake()
}

func (r *run) awake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// dispatch starts the work on the objects in the queue.
func (r *run) dispatch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r.queueMu.Lock()
		it, wait := r.queue.next(time.Now())
		r.queueMu.Unlock()
		if it != nil {
			r.background.Go(func() { r.work(ctx, it) })
			continue
		}
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// loudFrom is the number of failures in a row after which one failure is logged as a warning, because earlier ones are likely to
// be temporary. loudEvery is the minimum time between two such warnings for objects of one kind, because a failure may affect
// thousands of objects.
const (
	loudFrom  = 5
	loudEvery = time.Minute
)

func (r *run) work(ctx context.Context, it *item) {
	res, err := r.worker.do(ctx, it.uid, it.failures)
	if err != nil && ctx.Err() == nil {
		level := zap.DebugLevel
		if it.failures == loudFrom && r.loud(it.lane) {
			level = zap.WarnLevel
		}
		r.log.Log(level, "garbage collector: an object could not be looked at, and will be again", zap.Error(err), zap.Int("failures", it.failures+1))
	}
	r.queueMu.Lock()
	r.queue.finished(it, time.Now(), res, err == nil)
	r.queueMu.Unlock()
	r.awake()
}

// loud reports whether a failure of an object of this kind may be logged as a warning now.
func (r *run) loud(l *lane) bool {
	r.queueMu.Lock()
	defer r.queueMu.Unlock()
	now := time.Now()
	if !l.loggedAt.IsZero() && now.Sub(l.loggedAt) < loudEvery {
		return false
	}
	l.loggedAt = now
	return true
}
