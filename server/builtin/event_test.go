package builtin

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventGroups are the groups that serve events.
func eventGroups(ttl time.Duration) []server.Group {
	core, group := Events(ttl)
	return []server.Group{{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{core}}}}, group}
}

func TestEventsLoseNothingBetweenTheirGroups(t *testing.T) {
	t.Parallel()
	scheme, err := server.NewScheme(eventGroups(0)...)
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, scheme, roundtrip.Options{})
}

// An event is deleted an hour after its last write, in both groups.
func TestEventsGoAfterAWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ttl, lives time.Duration }{{0, time.Hour}, {time.Minute, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			srv, err := server.New(server.Options{Groups: eventGroups(c.ttl)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = srv.Close() }()
			var h *server.Host
			if err := srv.Install(server.ExtensionFunc(func(host *server.Host) error { h = host; return nil })); err != nil {
				t.Fatal(err)
			}
			reg, err := h.Registry(schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"})
			if err != nil {
				t.Fatal(err)
			}
			typed, err := registry.For[*corev1.Event](reg, authn.System())
			if err != nil {
				t.Fatal(err)
			}
			e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
			if _, err := typed.Create(t.Context(), "default", e); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.lives - time.Second)
			if _, err := typed.Change(t.Context(), "default", "a", func(e *corev1.Event) error { e.Count++; return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.lives - time.Second)
			if _, err := typed.Get(t.Context(), "default", "a"); err != nil {
				t.Errorf("%s after its last change: %v", c.lives-time.Second, err)
			}
			time.Sleep(2 * time.Second)
			if _, err := typed.Get(t.Context(), "default", "a"); !apierrors.IsNotFound(err) {
				t.Errorf("%s after its last change: %v", c.lives+time.Second, err)
			}
		})
	}
}

// The counts of tables that the files of server/testdata/wire/event do not show.
func TestOccurrences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		back := func(d time.Duration) time.Time { return now.Add(-d) }
		for name, c := range map[string]struct {
			event       corev1.Event
			first, last string
			count       int64
		}{
			"nothing":         {corev1.Event{}, "<unknown>", "<unknown>", 1},
			"old":             {corev1.Event{FirstTimestamp: metav1.NewTime(back(time.Hour)), LastTimestamp: metav1.NewTime(back(time.Minute)), Count: 4}, "60m", "60s", 4},
			"old, seen once":  {corev1.Event{FirstTimestamp: metav1.NewTime(back(time.Hour))}, "60m", "60m", 1},
			"new":             {corev1.Event{EventTime: metav1.NewMicroTime(back(time.Hour))}, "60m", "60m", 1},
			"new, seen again": {corev1.Event{EventTime: metav1.NewMicroTime(back(time.Hour)), Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(back(time.Minute))}}, "60m", "60s", 7},
		} {
			if first, last, count := occurrences(&c.event); first != c.first || last != c.last || count != c.count {
				t.Errorf("%s: %s, %s, %d", name, first, last, count)
			}
		}
	})
}

func TestSourceOfAnEvent(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]corev1.Event{
		"":     {},
		"c":    {Source: corev1.EventSource{Component: "c"}},
		"c, h": {Source: corev1.EventSource{Component: "c", Host: "h"}, ReportingController: "r", ReportingInstance: "i"},
		"r, i": {ReportingController: "r", ReportingInstance: "i"},
		", h":  {Source: corev1.EventSource{Host: "h"}},
	} {
		if got := source(&e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Calls in the process, whose context belongs to no request, are validated like requests of the core group.
func TestEventsOfCallersInProcess(t *testing.T) {
	t.Parallel()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	if errs := validateEvent(registry.NewCall(t.Context(), authn.System(), ""), e); len(errs) > 0 {
		t.Errorf("an old event: %v", errs)
	}
	call := registry.NewCall(t.Context(), authn.System(), "")
	call.APIGroup, call.APIVersion = eventsv1.GroupName, "v1"
	if errs := validateEvent(call, e); len(errs) == 0 {
		t.Error("events.k8s.io takes an event without a time")
	}
	call.APIGroup = ""
	if errs := validateEvent(call, e); len(errs) > 0 {
		t.Errorf("an old event in the core group: %v", errs)
	}
	e.Namespace = "Not_a_name"
	if errs := validateEvent(registry.NewCall(t.Context(), authn.System(), ""), e); len(errs) != 2 {
		t.Errorf("a namespace that is none: %v", errs)
	}
}
