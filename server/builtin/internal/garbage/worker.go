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

// objects are those of one kind; a *catalogue.Objects.
type objects interface {
	Get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error)
	List(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error)
	Change(ctx context.Context, namespace, name string, change func(m metav1.Object) error) error
	Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) error
}

var _ objects = (*catalogue.Objects)(nil)

// How long one call may take. What hangs for longer is an error of its kind, and tried again.
const (
	callTimeout = 30 * time.Second
	listTimeout = time.Minute
)

// bounded bounds every call, and makes an error of a panic of the program's: its strategies, plug-ins and storages are
// called here as they are for a request, which would be answered with 500.
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

// worker does what the graph says. All methods may be called concurrently, though for one object by one at a time.
type worker struct {
	log    *zap.Logger
	hooks  Hooks
	sweeps *sweeper
	atOnce int // calls of one task

	mu      sync.Mutex // guards what follows
	graph   *graph
	objects map[schema.GroupResource]objects // of the kinds of the graph
	invalid int                              // references told of
}

func newWorker(log *zap.Logger, hooks Hooks, atOnce int) *worker {
	w := &worker{log: log, hooks: hooks, atOnce: atOnce, graph: newGraph(), objects: map[schema.GroupResource]objects{}}
	w.sweeps = &sweeper{turn: make(chan struct{}, 1), begin: w.begin, atOnce: atOnce}
	return w
}

// result says whether an object has to be looked at again, though nothing is seen to happen.
type result int8

const (
	done  result = iota
	again        // in a while: it hangs on what cannot be seen
)

// errMoved says that an object is not what was read; what was decided does not hold any more.
var errMoved = errors.New("garbage: the object has changed")

// where names the object of a task for a human.
func (t *task) where() string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}

// read returns the object of a task as it is now; nil when it is gone, or cannot be read at all.
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

// still says whether the object of a task is there, and its state such as in says. What cannot be read is believed to be as
// the graph has it.
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

// examineAttempts is how often an object that changes all the time is read before others have their turn.
const examineAttempts = 5

// trim leaves an object only the references refs, some of those that were read, if it has these: with all their fields, or
// a change of one by somebody else would be undone.
func (t *task) trim(ctx context.Context, of objects, read, refs []metav1.OwnerReference) error {
	return of.Change(ctx, t.namespace, t.name, func(m metav1.Object) error {
		if m.GetUID() != t.uid || !equality.Semantic.DeepEqual(m.GetOwnerReferences(), read) {
			return errMoved
		}
		m.SetOwnerReferences(refs)
		return nil
	})
}

// remove deletes an object, if it is what was read.
func (t *task) remove(ctx context.Context, of objects, resourceVersion string, policy metav1.DeletionPropagation) error {
	p := metav1.Preconditions{UID: &t.uid}
	if resourceVersion != "" {
		p.ResourceVersion = &resourceVersion
	}
	return of.Delete(ctx, t.namespace, t.name, &metav1.DeleteOptions{Preconditions: &p, PropagationPolicy: &policy})
}

// equalRefs says whether references are the same, whoever controls.
func equalRefs(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && blocks(&a) == blocks(&b)
	})
}
