package builtin

import (
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// defaultEventTTL is the default of kube-apiserver's flag --event-ttl.
const defaultEventTTL = time.Hour

// Events returns the kind Event, which two groups serve, as in Kubernetes: core is the resource for v1 of the core group, in
// which objects are stored, and group is the group events.k8s.io. Both must be served in one call. An event is deleted when ttl
// has passed since its last write; a ttl of 0 is an hour.
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
func Events(ttl time.Duration) (core server.Resource, group server.Group) {
	if ttl == 0 {
		ttl = defaultEventTTL
	}
	core = server.Kind("Event", server.KindOptions[*corev1.Event]{
		ShortNames:       []string{"ev"},
		Strategy:         eventStrategy(),
		SelectableFields: append([]string{"reason", "reportingComponent", "type"}, referenceFields("involvedObject")...),
		SelectableFrom:   map[string][]string{"source": {"source.component", "reportingComponent"}},
		Columns:          eventColumns(func(e *corev1.Event) *corev1.Event { return e }),
		TTL:              ttl,
	})
	renamed := map[string]string{"reportingController": "reportingComponent"}
	for i, hub := range referenceFields("involvedObject") {
		renamed[referenceFields("regarding")[i]] = hub
	}
	group = server.Group{
		Name: eventsv1.GroupName,
		Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Event", server.KindOptions[*eventsv1.Event]{
				ShortNames:       []string{"ev"},
				SelectableFields: []string{"reason", "type"},
				RenamedFields:    renamed,
				Columns: eventColumns(func(e *eventsv1.Event) *corev1.Event {
					out := &corev1.Event{ObjectMeta: e.ObjectMeta}
					intoCore(e, out)
					return out
				}),
			}),
		}}},
		Conversions: []server.Conversion{server.Convert(
			func(in *eventsv1.Event, out *corev1.Event) error { intoCore(in, out); return nil },
			func(in *corev1.Event, out *eventsv1.Event) error { fromCore(in, out); return nil },
		)},
	}
	return core, group
}

// referenceFields returns the selectable fields of a reference to an object.
func referenceFields(at string) []string {
	out := []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}
	for i, name := range out {
		out[i] = at + "." + name
	}
	return out
}

// eventStrategy returns the strategy of kube-apiserver for events: a PUT may create and overwrite them.
func eventStrategy() registry.Strategy[*corev1.Event] {
	return registry.Strategy[*corev1.Event]{
		HubFieldNames:   true,
		Validate:        validateEvent,
		ValidateUpdate:  validateEventUpdate,
		ValidateName:    func(string, bool) []string { return nil }, // any path segment; see validateEvent
		PlainFinalizers: true,                                       // see validateEvent
		MetadataLast:    true,
		LimitAtAny:      true,
		NoDependents:    true,
		NoGeneration:    true,
		CreateOnUpdate:  true,
	}
}

// eventColumns returns the table columns of events. hub returns an object as one of the core group; the result need not be a
// copy.
func eventColumns[P runtime.Object](hub func(P) *corev1.Event) []server.Column[P] {
	doc, meta := corev1.Event{}.SwaggerDoc(), metav1.ObjectMeta{}.SwaggerDoc()
	column := func(name, description string, priority int32, value func(*corev1.Event) any) server.Column[P] {
		return server.Column[P]{Name: name, Description: description, Priority: priority, Value: func(obj P) any { return value(hub(obj)) }}
	}
	name := column("Name", meta["name"], 1, func(e *corev1.Event) any { return e.Name })
	name.Format = "name"
	return []server.Column[P]{
		column("Last Seen", doc["lastTimestamp"], 0, func(e *corev1.Event) any { _, last, _ := occurrences(e); return last }),
		column("Type", doc["type"], 0, func(e *corev1.Event) any { return e.Type }),
		column("Reason", doc["reason"], 0, func(e *corev1.Event) any { return e.Reason }),
		column("Object", doc["involvedObject"], 0, func(e *corev1.Event) any { return involved(e.InvolvedObject) }),
		column("Subobject", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"], 1, func(e *corev1.Event) any { return e.InvolvedObject.FieldPath }),
		column("Source", doc["source"], 1, func(e *corev1.Event) any { return source(e) }),
		column("Message", doc["message"], 0, func(e *corev1.Event) any { return strings.TrimSpace(e.Message) }),
		column("First Seen", doc["firstTimestamp"], 1, func(e *corev1.Event) any { first, _, _ := occurrences(e); return first }),
		column("Count", doc["count"], 1, func(e *corev1.Event) any { _, _, count := occurrences(e); return count }),
		name,
	}
}

// occurrences returns how long ago an event first and last happened, and how often. Recorders of the core group count in the
// event itself. Recorders of events.k8s.io count in its series, and only if it happened more than once.
func occurrences(e *corev1.Event) (first, last string, count int64) {
	first = ago(e.FirstTimestamp.Time)
	if e.FirstTimestamp.IsZero() {
		first = ago(e.EventTime.Time)
	}
	switch {
	case e.Series != nil:
		return first, ago(e.Series.LastObservedTime.Time), int64(e.Series.Count)
	case e.LastTimestamp.IsZero():
		last = first
	default:
		last = ago(e.LastTimestamp.Time)
	}
	if e.Count == 0 {
		return first, last, 1
	}
	return first, last, int64(e.Count)
}

// ago returns the time since t as tables show it.
func ago(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

// involved returns the object of an event in the form of kubectl: pod/web-0.
func involved(o corev1.ObjectReference) string {
	kind := strings.ToLower(o.Kind)
	if o.Name == "" {
		return kind
	}
	return kind + "/" + o.Name
}

// source returns the reporter of an event and its host.
func source(e *corev1.Event) string {
	component, instance := e.Source.Component, e.Source.Host
	if component == "" {
		component = e.ReportingController
	}
	if instance == "" {
		instance = e.ReportingInstance
	}
	if instance == "" {
		return component
	}
	return component + ", " + instance
}
