package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// dependent is an object that refers to an owner.
type dependent struct {
	task
	of        objects
	waitedFor bool // a foreground deletion of the owner waits for it
}

// findings are the dependents of one owner.
type findings struct {
	dependents []dependent
	errs       []error // of kinds that could not be listed
}

func (f *findings) failed() error { return errors.Join(f.errs...) }

// dependentsOf lists the dependents of an object at some moment after the call began.
func (w *worker) dependentsOf(ctx context.Context, t task) (*findings, error) {
	w.mu.Lock()
	k := w.graph.kinds[t.kind]
	w.mu.Unlock()
	if k == nil {
		return nil, errMoved
	}
	return w.sweeps.join(ctx, sweptOwner{task: t, info: k.kindInfo})
}

// begin starts a sweep and returns the kinds that may have dependents, and the number of the sweep.
func (w *worker) begin() (kinds []sweptKind, number int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.graph.sweeps++
	var out []sweptKind
	for r, k := range w.graph.kinds {
		if of := w.objects[r]; k.collected && k.stage != unseen && of != nil {
			out = append(out, sweptKind{k.resource, k.namespaced, of})
		}
	}
	return out, w.graph.sweeps
}

type sweptKind struct {
	resource   schema.GroupResource
	namespaced bool
	of         objects
}

type sweptOwner struct {
	task
	info kindInfo
}

// sweeper lists kinds for many owners at once. Callers that come during a sweep share the next one. It needs no goroutine of its
// own: one of the waiting callers runs the sweep.
type sweeper struct {
	begin  func() (kinds []sweptKind, number int64)
	atOnce int           // maximum number of concurrent lists
	turn   chan struct{} // holds a value while a sweep is under way

	mu   sync.Mutex // guards the fields below
	next *sweep
	last *sweep // the last successful sweep; nil after forget
}

// sweep is one pass over all kinds, for the owners that joined before it began.
type sweep struct {
	owners map[types.UID]sweptOwner
	done   chan struct{} // closed when the fields below are set
	found  map[types.UID]*findings
	err    error

	number int64
	listed []string           // the listed namespaces; "" means all objects
	named  map[types.UID]bool // all owners that any object refers to
}

// join returns what the next sweep finds for an owner. It may run that sweep.
func (s *sweeper) join(ctx context.Context, owner sweptOwner) (*findings, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &sweep{owners: map[types.UID]sweptOwner{}, done: make(chan struct{})}
	}
	mine := s.next
	mine.owners[owner.uid] = owner
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-mine.done:
		return mine.found[owner.uid], mine.err
	case s.turn <- struct{}{}:
	}
	defer func() { <-s.turn }()
	s.mu.Lock()
	if s.next != mine { // another caller has run it
		s.mu.Unlock()
		<-mine.done
		return mine.found[owner.uid], mine.err
	}
	s.next = nil
	s.mu.Unlock()
	kinds, number := s.begin()
	mine.number = number
	mine.run(ctx, kinds, s.atOnce)
	close(mine.done)
	if mine.err == nil {
		s.mu.Lock()
		s.last = mine
		s.mu.Unlock()
	}
	return mine.found[owner.uid], mine.err
}

// owns reports whether an object had dependents at some moment after the sweep with number after began. A kind that cannot be
// listed counts as having none.
func (s *sweeper) owns(ctx context.Context, t sweptOwner, after int64) (bool, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil && last.number > after && last.covers(t.namespace) {
		return last.named[t.uid], nil
	}
	found, err := s.join(ctx, t)
	return err == nil && len(found.dependents) > 0, err
}

// forget drops the results of the last sweep.
func (s *sweeper) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// covers reports whether the objects of a namespace were listed; "" means all objects.
func (s *sweep) covers(namespace string) bool {
	return slices.Contains(s.listed, "") || namespace != "" && slices.Contains(s.listed, namespace)
}

// manyNamespaces is the maximum number of namespaces that are listed one by one. For more of them, all objects are listed.
const manyNamespaces = 8

// namespaces returns the namespaces to list, or "" for all objects.
func (s *sweep) namespaces() []string {
	seen := map[string]bool{}
	var out []string
	for _, o := range s.owners {
		switch {
		case !o.info.namespaced:
			return []string{""}
		case !seen[o.namespace]:
			seen[o.namespace] = true
			out = append(out, o.namespace)
		}
	}
	if len(out) > manyNamespaces {
		return []string{""}
	}
	return out
}

func (s *sweep) run(ctx context.Context, kinds []sweptKind, atOnce int) {
	s.found, s.named, s.listed = map[types.UID]*findings{}, map[types.UID]bool{}, s.namespaces()
	for uid := range s.owners {
		s.found[uid] = &findings{}
	}
	type listing struct {
		kind      sweptKind
		namespace string
	}
	var all []listing
	for _, ns := range s.listed {
		for _, k := range kinds {
			if k.namespaced || ns == "" { // a cluster-scoped object has no namespaced owner
				all = append(all, listing{k, ns})
			}
		}
	}
	var mu sync.Mutex // guards s.found and s.named
	parallel(len(all), atOnce, func(i int) {
		k, ns := all[i].kind, all[i].namespace
		items, err := k.of.List(ctx, ns)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			s.failed(ns, fmt.Errorf("list of %s: %w", k.resource, err))
			return
		}
		for j := range items {
			m := &items[j].ObjectMeta
			if m.UID == "" { // a Storage that gives no uids: such objects are never in the graph
				continue
			}
			for r := range m.OwnerReferences {
				ref := &m.OwnerReferences[r]
				s.named[ref.UID] = true
				owner, ok := s.owners[ref.UID]
				if !ok {
					continue
				}
				f := s.found[ref.UID]
				f.dependents = append(f.dependents, dependent{
					task:      task{do: examine, kind: k.resource, namespace: m.Namespace, name: m.Name, uid: m.UID},
					of:        k.of,
					waitedFor: blocks(ref) && owner.is(claimOf(ref), m.Namespace),
				})
			}
		}
	})
	s.err = ctx.Err()
}

// failed adds an error to the findings of all owners that the list of a namespace concerns.
func (s *sweep) failed(namespace string, err error) {
	for uid, o := range s.owners {
		if namespace == "" || o.namespace == namespace {
			s.found[uid].errs = append(s.found[uid].errs, err)
		}
	}
}

// is reports whether a reference from a namespace names this owner.
func (o *sweptOwner) is(content claim, namespace string) bool {
	return o.name == content.name && o.info.is(content.gvk) && (!o.info.namespaced || o.namespace == namespace)
}

func compareUID(a, b types.UID) int { return strings.Compare(string(a), string(b)) }
