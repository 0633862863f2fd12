package garbage

import (
	"context"
	"errors"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// These are the delays before a kind is watched again. They double each time, and start again after a watch that lasted.
const (
	watchFirst, watchMost = 100 * time.Millisecond, 30 * time.Second
	watchLasted           = time.Minute
)

var errWithdrawn = errors.New("garbage: the kind is not served any more")

// watch passes the events of a kind to the graph until ctx ends, or until it turns out that the kind cannot be watched. k may
// only be passed to the graph.
func (r *run) watch(ctx context.Context, k *kind, resource schema.GroupResource) {
	panics := panicsOf(r.log, resource)
	pauses := doubling(watchFirst, watchMost)
	for failures := 0; ; failures++ {
		began := time.Now()
		synced, err := r.show(ctx, k, resource, panics)
		if ctx.Err() != nil {
			return
		}
		to := failing
		if apierrors.IsMethodNotSupported(err) {
			to = unseen
		}
		w := r.worker
		w.mu.Lock()
		w.graph.fail(k, to)
		r.enqueue()
		w.mu.Unlock()
		if to == unseen {
			return
		}
		if synced && time.Since(began) > watchLasted {
			failures, pauses = 0, doubling(watchFirst, watchMost)
		}
		level := zap.DebugLevel
		if failures == loudFrom {
			level = zap.WarnLevel
		}
		r.log.Log(level, "garbage collector: the watch of a kind has ended, and will be begun again", zap.String("resource", resource.String()), zap.Error(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauses.Step()):
		}
	}
}

// panicsOf turns panics of calls of one kind into errors.
func panicsOf(log *zap.Logger, resource schema.GroupResource) *background.Panics {
	return background.NewPanics(log.With(zap.String("resource", resource.String())), "garbage collector: a call panicked")
}

// show passes all objects of a kind and then their changes to the graph, until an error. synced reports whether it has passed all
// objects.
func (r *run) show(ctx context.Context, k *kind, resource schema.GroupResource, p *background.Panics) (synced bool, err error) {
	r.watchedMu.Lock()
	objects := r.watched[resource]
	r.watchedMu.Unlock()
	if objects == nil {
		return false, errWithdrawn
	}
	stream, err := beginWatch(ctx, objects, p)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	w := r.worker
	w.mu.Lock()
	w.graph.begin(k)
	w.mu.Unlock()
	for {
		events, err := nextEvents(ctx, stream, p)
		if err != nil {
			return synced, err
		}
		w.mu.Lock()
		for i := range events {
			synced = w.graph.see(k, &events[i], synced)
		}
		r.enqueue()
		w.mu.Unlock()
	}
}

func beginWatch(ctx context.Context, objects *catalogue.Objects, p *background.Panics) (w *catalogue.Watch, err error) {
	defer p.Caught(&err)
	return objects.Watch(ctx)
}

func nextEvents(ctx context.Context, w *catalogue.Watch, p *background.Panics) (events []catalogue.Event, err error) {
	defer p.Caught(&err)
	return w.Next(ctx)
}

// see passes one event to the graph. synced says whether there was a bookmark since begin. The result says the same after this
// event.
func (g *graph) see(k *kind, e *catalogue.Event, synced bool) bool {
	switch e.Type {
	case watch.Added, watch.Modified:
		g.observe(k, &e.Object.ObjectMeta)
	case watch.Deleted:
		g.forget(k, e.Object.UID)
	case watch.Bookmark:
		if !synced {
			g.synced(k)
		}
		return true
	}
	return synced
}

// serve replaces the served kinds, and starts and stops their watches.
func (r *run) serve(ctx context.Context, served []catalogue.Kind) {
	infos := make([]kindInfo, 0, len(served))
	r.watchedMu.Lock()
	clear(r.watched)
	for i := range served {
		r.watched[served[i].Resource.GroupResource()] = served[i].Objects
		infos = append(infos, infoOf(&served[i]))
	}
	r.watchedMu.Unlock()

	w := r.worker
	w.mu.Lock()
	clear(w.objects)
	for i := range served {
		w.objects[infos[i].resource] = bounded{served[i].Objects, panicsOf(r.log, infos[i].resource)}
	}
	w.graph.serve(infos)
	now := make(map[*kind]schema.GroupResource, len(infos))
	for resource, k := range w.graph.kinds {
		now[k] = resource
	}
	r.enqueue()
	w.mu.Unlock()

	for k, stop := range r.watchers {
		if _, ok := now[k]; !ok {
			stop()
			delete(r.watchers, k)
		}
	}
	for k, resource := range now {
		if _, ok := r.watchers[k]; ok {
			continue
		}
		of, stop := context.WithCancel(ctx)
		r.watchers[k] = stop
		r.background.Go(func() { r.watch(of, k, resource) })
	}
}

// follow calls serve with the served kinds whenever they change.
func (r *run) follow(ctx context.Context, c Catalogue) {
	for ctx.Err() == nil {
		changed := c.Changed()
		r.serve(ctx, c.Kinds())
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
