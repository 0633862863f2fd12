package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// watches has the metrics of the bodies that handlers read, and of watches.
type watches struct {
	bodies, listed *prometheus.HistogramVec
	events         *events
}

func newWatches(in *prometheus.Registry) *watches {
	w := &watches{
		bodies: histograms(in, "apiserver_request_body_size_bytes", "Bytes of the bodies of requests.",
			prometheus.LinearBuckets(50_000, 100_000, 31), "group", "resource", "verb"),
		listed: histograms(in, "apiserver_watch_list_duration_seconds",
			"Time from when a watch was received to the end of its initial events.",
			append(sliBuckets(), 90, 120, 180, 300), "group", "version", "resource", "scope"),
		events: newEvents(),
	}
	in.MustRegister(w.events)
	return w
}

// bodyVerbs returns the values of the label verb of apiserver_request_body_size_bytes, by the verb of a request.
func bodyVerbs() map[string]string {
	return map[string]string{
		"create": "create", "update": "update", "patch": "patch", "delete": "delete", "deletecollection": "delete_collection",
	}
}

// Handlers returns the hooks that count what the handlers of a resource in a version do.
func (m *Registry) Handlers(of schema.GroupVersionResource) handlers.Hooks {
	w := m.watches
	bodies := map[string]func() prometheus.Observer{}
	for verb, label := range bodyVerbs() {
		bodies[verb] = sync.OnceValue(func() prometheus.Observer { return w.bodies.WithLabelValues(of.Group, of.Resource, label) })
	}
	return handlers.Hooks{
		Body: func(verb string, size int) {
			if body := bodies[verb]; body != nil {
				body().Observe(float64(size))
			}
		},
		Event: w.events.of(of).add,
		InitialEnd: func(ctx context.Context) {
			info := request.InfoFrom(ctx)
			at, ok := request.ReceivedFrom(ctx)
			if info == nil || !ok {
				return
			}
			w.listed.WithLabelValues(of.Group, of.Version, of.Resource, scopeOf(info, info.Name != "").String()).Observe(time.Since(at).Seconds())
		},
	}
}
