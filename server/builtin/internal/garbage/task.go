package garbage

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// duty is the kind of work that may be necessary for an object.
type duty int8

const (
	nothing duty = iota
	examine      // an owner may be absent or waiting
	release      // it is being deleted in the foreground, and waits for no dependent
	orphan       // its dependents must lose their references to it
)

// task is the work that may be necessary for one object. It is only a hint: the work begins with reading the object.
type task struct {
	do        duty
	kind      schema.GroupResource
	namespace string
	name      string
	uid       types.UID
}

// task returns the current task for an object.
func (g *graph) task(uid types.UID) task {
	n := g.nodes[uid]
	if n == nil {
		return task{}
	}
	do := g.duty(n)
	if do == nothing {
		return task{}
	}
	return taskOf(n, do)
}

func taskOf(n *node, do duty) task {
	return task{do: do, kind: n.kind.resource, namespace: n.namespace.Value(), name: n.name, uid: n.uid}
}

// take calls yield with each object that became due since the last call, and with its kind.
func (g *graph) take(yield func(types.UID, schema.GroupResource)) {
	for _, uid := range g.due {
		if n := g.nodes[uid]; n != nil && n.kind != nil {
			yield(n.uid, n.kind.resource)
		}
	}
	g.due = nil
}

// waitsFor reports whether, according to the graph, a foreground deletion of owner waits for dependent.
func (g *graph) waitsFor(owner, dependent types.UID) bool {
	d := g.nodes[dependent]
	if d == nil {
		return false
	}
	for i := range d.edges {
		if e := &d.edges[i]; e.owner.uid == owner && e.counts() {
			return true
		}
	}
	return false
}

// dependents returns tasks to examine all dependents of an object, whatever else their references say.
func (g *graph) dependents(uid types.UID) []task {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var out []task
	for e := n.dependents; e != nil; e = e.next {
		out = append(out, taskOf(e.dependent, examine))
	}
	return out
}

// observed reports whether an object was observed and is not gone.
func (g *graph) observed(uid types.UID) bool {
	n := g.nodes[uid]
	return n != nil && n.state.observed()
}

func (g *graph) considerAll() {
	for _, n := range g.nodes {
		g.consider(n)
	}
}

// parallel calls f with 0 to n-1, with at most atOnce calls at once, and returns when all calls have returned.
func parallel(n, atOnce int, f func(i int)) {
	if atOnce == 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
