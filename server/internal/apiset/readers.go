package apiset

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Readers implements server.Server.Readers.
func (s *Set) Readers() runtime.Readers { return readersOf{s} }

// readersOf implements runtime.Readers.
type readersOf struct{ s *Set }

// Reader implements runtime.Readers.
func (r readersOf) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return &kindReader{of: &r.s.readers, kind: kind}
}

// KindOf implements runtime.Readers.
func (r readersOf) KindOf(t reflect.Type) (kind schema.GroupVersionKind, ok bool) {
	rs := &r.s.readers
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	hubs := rs.types[t]
	if len(hubs) == 0 {
		return schema.GroupVersionKind{}, false
	}
	return hubs[0], true
}

// readers has the sources of the objects of each kind that is served. The zero readers has none.
type readers struct {
	mu      sync.RWMutex // guards the maps; held only for a short time, and locked after the set's mu
	kinds   map[schema.GroupVersionKind]*source
	types   map[reflect.Type][]schema.GroupVersionKind // hubs by the Go types of all their versions
	version atomic.Int64                               // increases with every change of the maps; written under mu

	answered highest        // the highest revision in answers of removed sources
	takings  sync.WaitGroup // goroutines of take
}

// highest is the highest number that was added to it.
type highest struct{ n atomic.Int64 }

func (h *highest) add(n int64) {
	for old := h.n.Load(); old < n && !h.n.CompareAndSwap(old, n); {
		old = h.n.Load()
	}
}

// exchange removes the sources of gone, and adds those of added, in one step. retired are resources that are not served any more,
// whose caches requests still use. The caller holds the set's mu. It ends and retires gone only afterwards, and no request
// reaches added before.
func (rs *readers) exchange(gone, added []*served, retired map[*served]bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.kinds == nil {
		rs.kinds, rs.types = map[schema.GroupVersionKind]*source{}, map[reflect.Type][]schema.GroupVersionKind{}
	}
	before := map[schema.GroupVersionKind]*source{} // keys are hubs
	for _, r := range gone {
		before[r.hub] = rs.kinds[r.gvk]
		delete(rs.kinds, r.gvk)
		rs.types[r.GoType] = slices.DeleteFunc(rs.types[r.GoType], func(hub schema.GroupVersionKind) bool { return hub == r.hub })
		if len(rs.types[r.GoType]) == 0 {
			delete(rs.types, r.GoType)
		}
	}
	after := map[schema.GroupVersionKind]*source{} // keys are hubs
	for _, r := range added {
		if after[r.hub] == nil || r.gvk == r.hub {
			after[r.hub] = newSource(r, rs.version.Load()+1)
		}
	}
	for _, r := range added {
		rs.kinds[r.gvk] = after[r.hub]
		if r.GoType != reflect.TypeFor[unstructured.Unstructured]() && !slices.Contains(rs.types[r.GoType], r.hub) {
			rs.types[r.GoType] = append(rs.types[r.GoType], r.hub)
		}
	}
	for hub, next := range after {
		inherit(next.of, slices.AppendSeq(slices.Clone(gone), maps.Keys(retired)))
		rs.succeed(before[hub], next)
	}
	rs.version.Add(1)
	for _, b := range before {
		if b == nil {
			continue
		}
		rs.answered.add(b.answered.n.Load())
		if shown := b.before.Load(); shown != nil {
			rs.answered.add(shown.answered.n.Load())
		}
	}
	for _, next := range after {
		if next.before.Load() == nil {
			next.floor.Store(rs.answered.n.Load())
		}
	}
}

// inherit lets the cache of a resource see the writes that requests make through an old cache of the same objects.
func inherit(r *served, from []*served) {
	if r.cache == nil {
		return
	}
	for _, old := range from {
		if old.cache != nil && old.path() == r.path() {
			r.cache.Inherit(old.cache)
			return
		}
	}
}

// succeed keeps the source before, which may be nil, in use until the cache of next is filled, and starts to fill that cache. It
// does nothing for a kind that has no readers. The caller holds mu.
func (rs *readers) succeed(before, next *source) {
	if before == nil || next.of.cache == nil {
		return
	}
	switch shown := before.before.Load(); {
	case shown != nil:
		before.over = true // next continues with shown
		next.before.Store(shown)
	case before.asked.Load() && before.of.cache != nil && before.of.cache.Changed() > 0 && before.of.inFlight.Enter():
		next.before.Store(before)
	default:
		return
	}
	next.asked.Store(true) // readers of shown will read next
	rs.takings.Go(func() { rs.take(next) })
}

// take waits until filling the cache of next has succeeded or failed, and then uses next in place of the source before.
func (rs *readers) take(next *source) {
	_ = next.of.cache.Fill(next.of.life) // if it fails, reads of next return the reason
	rs.mu.Lock()
	if next.over {
		rs.mu.Unlock()
		return
	}
	next.over = true
	shown := next.before.Load()
	next.before.Store(nil)
	rs.answered.add(shown.answered.n.Load()) // later answers of shown are not returned to callers
	rs.mu.Unlock()
	next.floor.Store(rs.answered.n.Load())
	shown.of.inFlight.Leave()
}

// kindReader is the Reader of a kind.
type kindReader struct {
	of   *readers
	kind schema.GroupVersionKind
	last atomic.Pointer[resolved]
}

// resolved is the source of a kind at a version of the readers.
type resolved struct {
	version int64
	source  *source // nil: the kind is not served
}

var _ runtime.Reader[runtime.Object] = (*kindReader)(nil)

// now returns the source of the kind, or nil if the kind is not served. next is the source that will replace it, if one is being
// prepared.
func (r *kindReader) now() (s, next *source) {
	last := r.last.Load()
	if last == nil || last.version != r.of.version.Load() {
		r.of.mu.RLock()
		last = &resolved{r.of.version.Load(), r.of.kinds[r.kind]}
		r.of.mu.RUnlock()
		r.last.Store(last)
	}
	s = last.source
	if s == nil {
		return nil, nil
	}
	if before := s.before.Load(); before != nil {
		return before, s
	}
	return s, nil
}

// settled reports whether an answer of s may be returned, which is so if s is still the source of the kind. Otherwise the answer
// could have objects, or a revision, that the present source does not have.
func (r *kindReader) settled(s *source) bool {
	now, _ := r.now()
	return now == s
}

func (r *kindReader) notServed() error {
	return fmt.Errorf("reader of %s: the kind is not served: %w", r.kind, runtime.ErrNotReady)
}

// failed reports whether the next source should be called instead: a source that is to be replaced may find objects in a version
// that it does not have.
func failed(err error) bool { return err != nil && !apierrors.IsNotFound(err) }

// Get implements runtime.Reader.
func (r *kindReader) Get(ctx context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	for {
		s, next := r.now()
		if s == nil {
			return nil, r.notServed()
		}
		if err := s.scope(namespace, true); err != nil {
			return nil, err
		}
		obj, err := s.reader().Get(ctx, namespace, name, at)
		if next != nil && failed(err) {
			obj, err = next.reader().Get(ctx, namespace, name, at)
		}
		switch {
		case r.settled(s):
			return obj, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

// List implements runtime.Reader.
func (r *kindReader) List(ctx context.Context, q runtime.Query) (runtime.Listed[runtime.Object], error) {
	for {
		s, next := r.now()
		if s == nil {
			return runtime.Listed[runtime.Object]{}, r.notServed()
		}
		if err := s.scope(q.Namespace, false); err != nil {
			return runtime.Listed[runtime.Object]{}, err
		}
		l, err := s.reader().List(ctx, q)
		if next != nil && failed(err) {
			l, err = next.reader().List(ctx, q)
		}
		s.answered.add(l.Revision)
		switch {
		case r.settled(s):
			return l, err
		case ctx.Err() != nil:
			return runtime.Listed[runtime.Object]{}, ctx.Err()
		}
	}
}

// Changes implements runtime.Reader.
func (r *kindReader) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	for {
		s, next := r.now()
		if s == nil {
			return runtime.Changes[runtime.Object]{}, r.notServed()
		}
		c, err := s.changes(ctx, since, at)
		if next != nil && failed(err) {
			c, err = next.changes(ctx, since, at)
		}
		s.answered.add(c.Revision)
		switch {
		case r.settled(s):
			return c, err
		case ctx.Err() != nil:
			return runtime.Changes[runtime.Object]{}, ctx.Err()
		}
	}
}

// Changed implements runtime.Reader.
func (r *kindReader) Changed() runtime.LastChange {
	for {
		s, _ := r.now()
		if s == nil {
			return runtime.LastChange{}
		}
		if last := s.reader().Changed(); last.Revision > 0 {
			return runtime.LastChange{Revision: last.Revision, Generation: s.generation}
		}
		if r.settled(s) { // so s was not closed because of a replacement
			return runtime.LastChange{}
		}
	}
}

// Ready implements runtime.Reader.
func (r *kindReader) Ready(ctx context.Context) error {
	for {
		s, _ := r.now()
		if s == nil {
			return r.notServed()
		}
		if err := s.reader().Ready(ctx); err == nil || r.settled(s) {
			return err
		}
	}
}
