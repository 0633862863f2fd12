package garbage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objects accesses the objects of one kind. *catalogue.Objects implements it.
type objects interface {
	Get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error)
	List(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error)
	Change(ctx context.Context, namespace, name string, change func(m metav1.Object) error) error
	Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) error
}

var _ objects = (*catalogue.Objects)(nil)

// callTimeout and listTimeout bound one call. A call that hangs longer is an error and is tried again.
const (
	callTimeout = 30 * time.Second
	listTimeout = time.Minute
)

// bounded bounds every call and turns a panic into an error. The calls reach strategies, plug-ins and storages of the program, as
// a request does. For a request a panic would be answered with 500.
type bounded struct {
	objects
	panics *background.Panics
}

func (b bounded) Get(ctx context.Context, namespace, name string) (m *metav1.PartialObjectMetadata, err error) {
	defer b.panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.objects.Get(ctx, namespace, name)
}

func (b bounded) List(ctx context.Context, namespace string) (items []metav1.PartialObjectMetadata, err error) {
	defer b.panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return b.objects.List(ctx, namespace)
}

func (b bounded) Change(ctx context.Context, namespace, name string, change func(m metav1.Object) error) (err error) {
	defer b.panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.objects.Change(ctx, namespace, name, change)
}

func (b bounded) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (err error) {
	defer b.panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.objects.Delete(ctx, namespace, name, opts)
}

// worker does the tasks of the graph. All methods may be called concurrently, but only once at a time for one object.
type worker struct {
	log    *zap.Logger
	hooks  Hooks
	sweeps *sweeper
	atOnce int // maximum number of concurrent calls of one task

	mu      sync.Mutex // guards the fields below
	graph   *graph
	objects map[schema.GroupResource]objects // by the kinds of the graph
	invalid int                              // number of reported invalid references
}

func newWorker(log *zap.Logger, hooks Hooks, atOnce int) *worker {
	w := &worker{log: log, hooks: hooks, atOnce: atOnce, graph: newGraph(), objects: map[schema.GroupResource]objects{}}
	w.sweeps = &sweeper{turn: make(chan struct{}, 1), begin: w.begin, atOnce: atOnce}
	return w
}

// result says whether an object must be examined again although no change was observed.
type result int8

const (
	done  result = iota
	again        // after a delay: it depends on something that cannot be observed
)

// errMoved is returned if an object is no longer as it was read, so that the decision is not valid any more.
var errMoved = errors.New("garbage: the object has changed")

// where returns the namespace and name of the object of a task for messages.
func (t *task) where() string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}

// read returns the current object of a task. It returns nil if the object is gone or cannot be read at all.
func (t *task) read(ctx context.Context, of objects) (*metav1.PartialObjectMetadata, error) {
	m, err := of.Get(ctx, t.namespace, t.name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return nil, nil
	case err != nil:
		return nil, err
	case m.UID != t.uid:
		return nil, nil
	}
	return m, nil
}

// still reports whether the object of a task exists and in returns true for its state. If the kind cannot be read at all, the
// result is true: the graph decides.
func (t *task) still(ctx context.Context, of objects, in func(state) bool) (bool, error) {
	m, err := of.Get(ctx, t.namespace, t.name)
	switch {
	case apierrors.IsMethodNotSupported(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return m.UID == t.uid && in(stateOf(&m.ObjectMeta)), nil
}

// examineAttempts is how often an object that changes all the time is read before other objects are examined.
const examineAttempts = 5

// trim removes references from an object, so that refs, a part of the references in read, are left. It fails if the references,
// with all their fields, are not those in read. Otherwise it would undo a concurrent change.
func (t *task) trim(ctx context.Context, of objects, read, refs []metav1.OwnerReference) error {
	return of.Change(ctx, t.namespace, t.name, func(m metav1.Object) error {
		if m.GetUID() != t.uid || !equality.Semantic.DeepEqual(m.GetOwnerReferences(), read) {
			return errMoved
		}
		m.SetOwnerReferences(refs)
		return nil
	})
}

// remove deletes an object if it is still as it was read.
func (t *task) remove(ctx context.Context, of objects, resourceVersion string, policy metav1.DeletionPropagation) error {
	p := metav1.Preconditions{UID: &t.uid}
	if resourceVersion != "" {
		p.ResourceVersion = &resourceVersion
	}
	return of.Delete(ctx, t.namespace, t.name, &metav1.DeleteOptions{Preconditions: &p, PropagationPolicy: &policy})
}

// equalRefs reports whether references are the same, apart from controller.
func equalRefs(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && blocks(&a) == blocks(&b)
	})
}
