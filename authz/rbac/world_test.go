package rbac_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// world has the objects of the four kinds with their history. It implements runtime.Readers for a store in memory.
type world struct {
	kinds map[string]*worldKind

	mu        sync.Mutex
	revision  int64
	compacted int64 // states before it are not retained
	fail      error // of Changes
	notReady  error
	hold      chan struct{} // if it is not nil, Changes waits for it
}

type worldKind struct {
	of         *world
	kind       string
	changed    atomic.Int64
	generation atomic.Int64
	reads      atomic.Int64 // number of calls of Changes
	expired    func()       // called when Changes answers Expired; may be nil
	asked      func()       // called when Changes is called without Exactly; may be nil
	log        []entry
	floor      int64 // changes after this revision are known
}

// entry is the state of an object since a revision.
type entry struct {
	revision int64
	runtime.Change[runtime.Object]
	spoiled bool // the object cannot be decoded
}

// newWorld returns an empty world at revision 1.
func newWorld() *world {
	w := &world{revision: 1, kinds: map[string]*worldKind{}}
	for _, kind := range []string{"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"} {
		w.kinds[kind] = &worldKind{of: w, kind: kind}
		w.kinds[kind].changed.Store(1)
	}
	return w
}

func kindName(obj runtime.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// put stores objects, each at a new revision, and returns the last revision.
func (w *world) put(objects ...runtime.Object) int64 { return w.write(false, objects) }

// drop deletes objects.
func (w *world) drop(objects ...runtime.Object) int64 { return w.write(true, objects) }

func (w *world) write(deleted bool, objects []runtime.Object) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, obj := range objects {
		m, err := meta.Accessor(obj)
		if err != nil {
			panic(err)
		}
		w.revision++
		c := runtime.Change[runtime.Object]{Namespace: m.GetNamespace(), Name: m.GetName(), Object: obj, Deleted: deleted}
		if deleted {
			c.Object = nil
		}
		k := w.kinds[kindName(obj)]
		k.log = append(k.log, entry{w.revision, c, false})
		k.changed.Store(w.revision)
	}
	return w.revision
}

// spoil makes an object unreadable.
func (w *world) spoil(obj runtime.Object) {
	revision := w.drop(obj)
	w.set(func() {
		log := w.kinds[kindName(obj)].log
		if last := &log[len(log)-1]; last.revision == revision {
			last.spoiled = true
		}
	})
}

// setBack makes an older state the newest, as restoring a backup does. All kinds notice it.
func (w *world) setBack(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
	for _, k := range w.kinds {
		k.log = slices.DeleteFunc(k.log, func(e entry) bool { return e.revision > revision })
		k.notice()
	}
}

// notice makes Changed report the reset.
func (k *worldKind) notice() {
	k.changed.Store(1)
	if n := len(k.log); n > 0 {
		k.changed.Store(k.log[n-1].revision)
	}
}

// at returns the objects at a revision.
func (w *world) at(revision int64) []runtime.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []runtime.Object
	for _, kind := range slices.Sorted(maps.Keys(w.kinds)) {
		for _, c := range w.kinds[kind].between(0, revision) {
			if !c.Deleted {
				all = append(all, c.Object)
			}
		}
	}
	return all
}

// between returns the changes after since, up to a revision, in the order of names.
func (k *worldKind) between(since, revision int64) []runtime.Change[runtime.Object] {
	last := map[string]runtime.Change[runtime.Object]{}
	for _, e := range k.log {
		if e.revision > since && e.revision <= revision {
			last[e.Namespace+"/"+e.Name] = e.Change
		}
	}
	var out []runtime.Change[runtime.Object]
	for _, key := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[key])
	}
	return out
}

// Reader implements runtime.Readers.
func (w *world) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	if kind.GroupVersion() != rbacv1.SchemeGroupVersion {
		panic(kind)
	}
	return w.kinds[kind.Kind]
}

// KindOf implements runtime.Readers.
func (w *world) KindOf(reflect.Type) (kind schema.GroupVersionKind, ok bool) { return kind, false }

// Changes implements runtime.Reader.
func (k *worldKind) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	k.reads.Add(1)
	w := k.of
	w.mu.Lock()
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return runtime.Changes[runtime.Object]{}, ctx.Err()
		}
	}
	revision, exactly := at.Exactly()
	if !exactly && k.asked != nil {
		k.asked()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.notReady != nil:
		return runtime.Changes[runtime.Object]{}, w.notReady
	case w.fail != nil:
		return runtime.Changes[runtime.Object]{}, w.fail
	case at.IsLive():
		k.notice()
		revision = w.revision
	case !exactly:
		revision = w.revision
	case revision > w.revision:
		err := apierrors.NewTimeoutError("in the future", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return runtime.Changes[runtime.Object]{}, err
	case revision < w.compacted:
		if k.expired != nil {
			k.expired()
		}
		return runtime.Changes[runtime.Object]{}, apierrors.NewResourceExpired("too old")
	}
	out := runtime.Changes[runtime.Object]{Revision: revision, Reset: since < w.compacted || since <= k.floor || since > revision}
	if out.Reset {
		since = 0
	}
	out.All = k.between(since, revision)
	if out.Reset {
		out.All = slices.DeleteFunc(out.All, func(c runtime.Change[runtime.Object]) bool { return c.Deleted })
	}
	for _, e := range k.log {
		if e.spoiled && e.revision > since && e.revision <= revision {
			return out, fmt.Errorf("%w: %q", runtime.ErrUnreadable, e.Name)
		}
	}
	return out, nil
}

// Changed implements runtime.Reader.
func (k *worldKind) Changed() runtime.LastChange {
	return runtime.LastChange{Revision: k.changed.Load(), Generation: k.generation.Load()}
}

// Ready implements runtime.Reader.
func (k *worldKind) Ready(context.Context) error {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	return k.of.notReady
}

// Get implements runtime.Reader. It is not used.
func (k *worldKind) Get(context.Context, string, string, runtime.Freshness) (runtime.Object, error) {
	return nil, runtime.ErrNotReady
}

// List implements runtime.Reader. It is not used.
func (k *worldKind) List(context.Context, runtime.Query) (runtime.Listed[runtime.Object], error) {
	return runtime.Listed[runtime.Object]{}, runtime.ErrNotReady
}

// set calls f with the lock of the world.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// reads returns the number of calls of Changes by kind.
func (w *world) reads() map[string]int64 {
	out := map[string]int64{}
	for kind, k := range w.kinds {
		out[kind] = k.reads.Load()
	}
	return out
}

func contains(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
}

// forget removes the history, which is long in benchmarks. Changes that were not read are lost.
func (w *world) forget() {
	w.set(func() {
		for _, k := range w.kinds {
			k.log = nil
		}
	})
}
