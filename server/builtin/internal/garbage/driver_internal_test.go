package garbage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// driver runs a collector without goroutines.
type driver struct {
	w       *world
	worker  *worker
	queue   *queue
	now     time.Time
	streams map[*worldKind]*stream
}

// stream is a driver's watch of a kind.
type stream struct {
	of      *kind
	initial []catalogue.Event
	at      int // in the log
	open    bool
	synced  bool
}

func newDriver(w *world) *driver {
	d := &driver{w: w, worker: newWorker(zap.NewNop(), Hooks{}, 1), queue: newQueue(), now: time.Unix(0, 0), streams: map[*worldKind]*stream{}}
	d.serve()
	return d
}

// serve passes the served kinds to the graph.
func (d *driver) serve() {
	var infos []kindInfo
	clear(d.worker.objects)
	for _, k := range d.w.kinds {
		if k.served {
			infos = append(infos, k.kindInfo)
			d.worker.objects[k.resource] = k
		}
	}
	g := d.worker.graph
	g.serve(infos)
	for _, k := range d.w.kinds {
		if of := g.kinds[k.resource]; d.streams[k] == nil || d.streams[k].of != of {
			d.streams[k] = &stream{of: of}
			if of != nil && k.unwatchable {
				g.fail(of, unseen)
			}
		}
	}
	d.drain()
}

func (d *driver) drain() { d.worker.graph.take(d.queue.add) }

// see passes the next event of a kind to the graph.
func (d *driver) see(k *worldKind) (more bool) {
	s, g := d.streams[k], d.worker.graph
	if s.of == nil || k.unwatchable || k.broken && !d.w.calm && !s.open {
		return false
	}
	defer d.drain()
	if !s.open {
		s.open, s.synced, s.at, s.initial = true, false, len(k.log), nil
		for _, name := range slices.Sorted(maps.Keys(k.items)) {
			s.initial = append(s.initial, catalogue.Event{Type: watch.Added, Object: *k.items[name].DeepCopy()})
		}
		s.initial = append(s.initial, catalogue.Event{Type: watch.Bookmark})
		g.begin(s.of)
	}
	switch {
	case len(s.initial) > 0:
		s.synced = g.see(s.of, &s.initial[0], s.synced)
		s.initial = s.initial[1:]
	case s.at < len(k.log):
		e := k.log[s.at]
		e.Object = *e.Object.DeepCopy()
		s.synced = g.see(s.of, &e, s.synced)
		s.at++
	default:
		return false
	}
	return true
}

// end ends the watch of a kind with an error.
func (d *driver) end(k *worldKind) {
	if s := d.streams[k]; s.of != nil && s.open {
		s.open = false
		d.worker.graph.fail(s.of, failing)
		d.drain()
	}
}

// work executes the next object in the queue.
func (d *driver) work() bool {
	it, _ := d.queue.next(d.now)
	if it == nil {
		return false
	}
	res, err := d.worker.do(d.w.t.Context(), it.uid, it.failures)
	if err != nil && d.w.calm && !errors.Is(err, errUnseen) {
		d.w.t.Errorf("in a calm world: %v", err)
	}
	d.queue.finished(it, d.now, res, err == nil)
	return true
}

func (w *world) String() string {
	out := ""
	objects, kinds := w.all()
	for i, m := range objects {
		out += fmt.Sprintf("%s %s/%s %s %v deleting=%v\n", kinds[i].resource.Resource, m.Namespace, m.Name, m.UID, m.Finalizers, m.DeletionTimestamp != nil)
		for _, ref := range m.OwnerReferences {
			out += fmt.Sprintf("    %s %s %s %s block=%v: %v\n", ref.APIVersion, ref.Kind, ref.Name, ref.UID, blocks(&ref), w.truth(m, &ref))
		}
	}
	return out
}

// checkGraph compares the graph of a driver that has received all events with the world, and checks its consistency.
func (d *driver) checkGraph() {
	t, g := d.w.t, d.worker.graph
	want := map[types.UID]bool{}
	objects, kinds := d.w.all()
	for i, m := range objects {
		if kinds[i].unwatchable {
			continue
		}
		want[m.UID] = true
		n := g.nodes[m.UID]
		if n == nil || !n.state.observed() || n.state != stateOf(&m.ObjectMeta) || n.name != m.Name || n.namespace.Value() != m.Namespace {
			t.Errorf("%s %s/%s is in the graph as %+v", kinds[i].resource, m.Namespace, m.Name, n)
			continue
		}
		if !kinds[i].collected {
			continue
		}
		if !g.linked(n, m.OwnerReferences) {
			t.Errorf("%s %s/%s: the graph has other references", kinds[i].resource, m.Namespace, m.Name)
		}
		for _, ref := range m.OwnerReferences {
			want[ref.UID] = true
		}
	}
	edges := 0
	for uid, n := range g.nodes {
		edges += len(n.edges)
		if !want[uid] || n.state.observed() && d.w.find(uid) == nil {
			t.Errorf("the graph has kept %s", uid)
		}
		blocking := int32(0)
		for e, prev := n.dependents, (*edge)(nil); e != nil; prev, e = e, e.next {
			edges--
			if e.owner != n || e.prev != prev || g.nodes[e.dependent.uid] != e.dependent {
				t.Errorf("the dependents of %s are no list", uid)
			}
			if e.counts() {
				blocking++
			}
		}
		if blocking != n.blocking {
			t.Errorf("%s counts %d blocking dependents, and has %d", uid, n.blocking, blocking)
		}
	}
	if edges != 0 || len(g.nodes) != len(want) || len(g.since) > 0 {
		t.Errorf("the graph has %d references too many, %d nodes for %d, %d that wait", edges, len(g.nodes), len(want), len(g.since))
	}
}
