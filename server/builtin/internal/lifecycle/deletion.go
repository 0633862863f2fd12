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
	// maxPasses is how many namespaces are worked on at the same time.
	maxPasses = 4
	// Content that waits for others is looked at again after a time that grows between these.
	leastWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
	// System namespaces that could not be made are tried again after a time that grows between these, as is a watch that ended.
	systemLeast = 50 * time.Millisecond
	systemMost  = 5 * time.Second
	// How long one call may take. What hangs for longer is an error of its kind, and tried again.
	callTimeout = 30 * time.Second
	listTimeout = time.Minute
)

// Run deletes the content of namespaces that are being deleted, and lets these go, until ctx ends, whose error it returns.
// It is for one server of a storage at a time; two at once do no harm.
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
	wake chan struct{} // with room for one: the namespace has changed
}

// observe begins to work on a namespace that is being deleted, and ends that on one that is gone.
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

// leave ends the work on a namespace, unless it has changed meanwhile.
func (d *deletions) leave(name string, running *deletion) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[name] != running {
		return true // its end was told, and another may be at work on a namespace of that name
	}
	select {
	case <-running.wake:
		return false
	default:
		delete(d.running, name)
		return true
	}
}

// keepOnly ends the work on namespaces that went while nobody watched.
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

// empty works on one namespace until it is done, which leave has to agree to, or ctx ends.
func (l *Lifecycle) empty(ctx context.Context, name string, wake <-chan struct{}, leave func() bool) {
	defer l.gate.suspects.hold(name)()
	retry := background.Doubling(leastWait, mostWait)
	before := -1 // how many objects were there; -1: no pass was made
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
			continue // all that was there went: the next pass is to show that there is nothing
		case found != before:
			retry = background.Doubling(leastWait, mostWait)
		}
		before = found
		woken := wake
		if err == nil {
			failures = 0
		} else {
			woken = nil // or telling of a failure, in words that are others each time, would be the reason for the next pass
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

// loudFrom is which failure in a row is logged as a warning: earlier ones are likely to pass, and later ones say nothing
// new.
const loudFrom = 5

// pass does once what there is to do for a namespace. It reports whether that was all, or how many objects are there yet.
func (l *Lifecycle) pass(ctx context.Context, name string) (done bool, found int, err error) {
	defer l.panics.Caught(&err) // of a Storage of the program's
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

// tell keeps the conditions of a namespace.
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
