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

// Catalogue says what is served; a *catalogue.Catalogue.
type Catalogue interface {
	Kinds() []catalogue.Kind
	Changed() <-chan struct{}
}

// Options are how a Collector works. Catalogue is required.
type Options struct {
	Catalogue Catalogue
	// Logger gets invalid references and kinds that cannot be watched as warnings, failures that last as warnings, too,
	// and what was done in debug lines; nil is silent.
	Logger *zap.Logger
	Hooks  Hooks
}

// Hooks are told what a Collector comes across; each may be nil. They must return soon, and may be called concurrently.
type Hooks struct {
	// Invalid is called once for a reference that cannot hold.
	Invalid func(Invalid)
}

// Collector deletes what has no owner any more.
type Collector struct{ opts Options }

// New returns a collector that does nothing before Run.
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
	background sync.WaitGroup // of everything that runs

	queueMu sync.Mutex // guards queue
	queue   *queue
	wake    chan struct{} // holds a value when the queue has to be looked at

	watchers map[*kind]context.CancelFunc // of follow alone

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

// enqueue puts what the graph says into the queue. The caller holds worker.mu.
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

// dispatch works on what is in the queue.
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

// loudFrom is how many failures in a row are logged as a warning: fewer are likely to pass. loudEvery is for how long no
// other object of the kind is: what fails for one fails for thousands.
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

// loud says whether a failure of an object of a kind may be logged as a warning now.
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
