package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxPasses is the maximum number of namespaces that are worked on at the same time.
	maxPasses = 4
	// Content that is held by finalizers is checked again after a delay that grows from leastWait to mostWait.
	leastWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
	// Failed creates of system namespaces, and watches, are repeated after a delay that grows from systemLeast to systemMost.
	systemLeast = 50 * time.Millisecond
	systemMost  = 5 * time.Second
	// callTimeout and listTimeout bound one call. A call that hangs longer is an error and is tried again.
	callTimeout = 30 * time.Second
	listTimeout = time.Minute
)

// Run deletes the content of namespaces that are being deleted, and then their finalizer, until ctx ends. It returns the error of
// ctx. It should run on one server of a storage at a time; two at once do no harm.
func (l *Lifecycle) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &deletions{l: l, running: map[string]*deletion{}}
	l.follow(ctx, func(e storage.Event) { d.observe(ctx, e) }, func(present map[string]bool) { d.keepOnly(present) })
	cancel()
	d.work.Wait()
	return ctx.Err()
}

// deletions are the namespaces that Run works on.
type deletions struct {
	l    *Lifecycle
	work sync.WaitGroup

	mu      sync.Mutex // guards running
	running map[string]*deletion
}

// deletion is the work on one namespace.
type deletion struct {
	stop context.CancelFunc
	wake chan struct{} // capacity 1; receives a value when the namespace has changed
}

// observe starts the work on a namespace that is being deleted, and ends the work on one that is gone.
func (d *deletions) observe(ctx context.Context, e storage.Event) {
	name := e.Record.Key
	d.mu.Lock()
	defer d.mu.Unlock()
	running := d.running[name]
	switch {
	case e.Type == watch.Deleted:
		if running != nil {
			running.stop()
			delete(d.running, name)
		}
	case !terminating(e.Record):
	case running != nil:
		select {
		case running.wake <- struct{}{}:
		default:
		}
	default:
		ctx, stop := context.WithCancel(ctx)
		running = &deletion{stop: stop, wake: make(chan struct{}, 1)}
		d.running[name] = running
		d.work.Go(func() {
			defer stop()
			d.l.empty(ctx, name, running.wake, func() bool { return d.leave(name, running) })
		})
	}
}

// leave ends the work on a namespace, unless it has changed since.
func (d *deletions) leave(name string, running *deletion) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[name] != running {
		return true // its end was observed, and a new namespace of that name may be in work
	}
	select {
	case <-running.wake:
		return false
	default:
		delete(d.running, name)
		return true
	}
}

// keepOnly ends the work on namespaces that were removed while there was no watch.
func (d *deletions) keepOnly(present map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, running := range d.running {
		if !present[name] {
			running.stop()
			delete(d.running, name)
		}
	}
}

// empty works on one namespace until it is done and leave returns true, or until ctx ends.
func (l *Lifecycle) empty(ctx context.Context, name string, wake <-chan struct{}, leave func() bool) {
	defer l.gate.suspects.hold(name)()
	retry := background.Doubling(leastWait, mostWait)
	before := -1 // number of objects; -1 before the first pass
	failures := 0
	for ctx.Err() == nil {
		changed := l.catalogue.Changed()
		done, found, err := l.pass(ctx, name)
		switch {
		case ctx.Err() != nil:
			return
		case done && leave():
			return
		case done:
			continue
		case err != nil:
			l.log.Log(loudness(failures), "content of a namespace could not be deleted yet", zap.String("namespace", name), zap.Error(err))
			failures++
		case found == 0 && before != 0:
			before = 0
			continue // all objects are gone: the next pass verifies it
		case found != before:
			retry = background.Doubling(leastWait, mostWait)
		}
		before = found
		woken := wake
		if err == nil {
			failures = 0
		} else {
			woken = nil // the error text may change each time, and writing it would cause the next pass
		}
		timer := time.NewTimer(retry.Step())
		select {
		case <-timer.C:
		case <-changed:
		case <-woken:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// loudFrom is the number of failures in a row after which one failure is logged as a warning. Earlier failures are likely to be
// temporary, and later ones add nothing.
const loudFrom = 5

// pass does all work for a namespace once. It reports whether the work is done, or how many objects are left.
func (l *Lifecycle) pass(ctx context.Context, name string) (done bool, found int, err error) {
	defer l.panics.Caught(&err) // a Storage of the program may panic
	ns, err := l.toEmpty(ctx, name)
	if ns == nil || err != nil {
		return err == nil, 0, err
	}
	if err := l.gate.creates.wait(ctx, name); err != nil {
		return false, 0, err
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return false, 0, err
	}
	defer leave()
	content := l.deleteContent(ctx, ns)
	if err := ctx.Err(); err != nil {
		return false, 0, err
	}
	if err := l.tell(ctx, ns, content); err != nil {
		return false, content.objects(), err
	}
	if !content.empty() {
		return false, content.objects(), errors.Join(content.failures...)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return true, 0, l.finalizer.release(as(ctx), ns)
}

// tell updates the conditions of a namespace.
func (l *Lifecycle) tell(ctx context.Context, ns *corev1.Namespace, content *left) error {
	conditions := content.conditions()
	if now := metav1.Now(); !settle(ns.Status.DeepCopy(), conditions, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, _, err := l.status.UpdateRecord(as(ctx), ns.Name, func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		now, ok := current.(*corev1.Namespace)
		if !ok || now.UID != ns.UID {
			return nil, apierrors.NewNotFound(namespaceResource, ns.Name)
		}
		settle(&now.Status, conditions, metav1.Now())
		return now, nil
	}, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
