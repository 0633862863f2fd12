package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reader implements runtime.Reader.
type reader struct {
	of      *Readers
	kind    schema.GroupVersionKind // the hub version
	started sync.Once
	now     atomic.Pointer[view] // written under mu

	mu      sync.Mutex // guards the fields down to source, and refreshed
	history history
	source  *source

	refreshing atomic.Bool // a refresh is in progress
	refreshed  time.Time   // when the next refresh may begin; guarded by mu
}

func newReader(of *Readers, kind schema.GroupVersionKind) *reader {
	r := &reader{of: of, kind: kind, history: history{limits: of.opts.limits()}}
	r.now.Store(&view{next: make(chan struct{})})
	return r
}

// set replaces the view. The caller holds mu.
func (r *reader) set(change func(v *view)) {
	old := r.now.Load()
	v := *old
	v.next = make(chan struct{})
	change(&v)
	r.now.Store(&v)
	close(old.next)
}

// publish makes the state of the history, which came from src, the state that readers see. The caller holds mu.
func (r *reader) publish(src *source) {
	r.set(func(v *view) { v.state, v.source = r.history.publish(), src })
}

// fail records an error: the objects may be out of date.
func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(func(v *view) {
		if v.failed == nil {
			v.since = time.Now()
		}
		v.failed = err
	})
}

// works records that the server answers.
func (r *reader) works() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now.Load().failed != nil {
		r.set(func(v *view) { v.failed, v.since = nil, time.Time{} })
	}
}

func (r *reader) notReady(v *view) error {
	if v.failed == nil {
		return fmt.Errorf("reader of %s: %w: they are asked for", r.kind, runtime.ErrNotReady)
	}
	return fmt.Errorf("reader of %s: %w: since %s: %w", r.kind, runtime.ErrNotReady, v.since.UTC().Format(time.RFC3339), opaque(v.failed))
}

// forget drops all objects, and records the reason.
func (r *reader) forget(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.reset()
	r.set(func(v *view) {
		v.state, v.source = nil, nil
		if v.failed == nil {
			v.since = time.Now()
		}
		v.failed = err
	})
}

// view returns the current view. The first call starts the goroutine of the reader.
func (r *reader) view() *view {
	r.started.Do(func() { r.of.run(r.follow) })
	return r.now.Load()
}

func (s *source) target(namespace, name string) Target {
	return Target{Resource: s.resource.GroupVersionResource, Namespace: namespace, Name: name}
}

// tooLarge returns the error for a revision that did not arrive in time, with the text of kube-apiserver.
func tooLarge(revision int64, v *view) error {
	message := fmt.Sprintf("Too large resource version: %d, current: %d", revision, v.revision)
	if v.failed != nil {
		message += fmt.Sprintf(" (the server is away since %s)", v.since.UTC().Format(time.RFC3339))
	}
	err := apierrors.NewTimeoutError(message, 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// run runs f in a goroutine that Close waits for. It returns false after Close.
func (r *Readers) run(f func(ctx context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.runs.Go(func() { f(r.life) })
	return true
}

// opaque hides the type of a StatusError: a 404 for the resource must not look like a 404 for an object, and a 403 for this
// client must not look like a 403 for the user of the request.
func opaque(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return errors.New(err.Error())
	}
	return err
}

func (o ReadersOptions) limits() limits {
	return limits{objects: o.MaxObjects, bytes: o.MaxBytes, changes: o.Changes, logBytes: o.ChangesBytes}
}

func (r *reader) setSource(src *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = src
}

func (r *reader) sourceNow() *source {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source == nil {
		return &source{}
	}
	return r.source
}

// revision returns the revision of the history; 0 means none.
func (r *reader) revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.revision
}

func (r *reader) add(l *load, i *item) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.add(l, key(i.meta.GetNamespace(), i.meta.GetName()), i)
}

// replace makes the objects of a load the state. before is the revision of the state when the load began.
func (r *reader) replace(src *source, l *load, revision, before int64) {
	r.mu.Lock()
	r.history.replace(l, revision, before)
	r.publish(src)
	r.mu.Unlock()
	r.works()
	r.of.opts.Hooks.Loaded(r.kind, revision, len(l.items))
}
