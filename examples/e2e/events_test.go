package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	keelsonserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// serveEvents serves widgets and the extension builtin from this process until the test ends. It makes the test parallel.
func serveEvents(t *testing.T) (kubeconfig string, config *rest.Config) {
	t.Helper()
	t.Parallel()
	c := runServer(t, keelsonserver.Options{
		Groups: []keelsonserver.Group{
			{Name: groupVersion.Group, Versions: []keelsonserver.Version{{Name: groupVersion.Version, Resources: []keelsonserver.Resource{
				keelsonserver.Kind("Widget", keelsonserver.KindOptions[*Widget]{}),
			}}}},
		},
	}, builtin.New(builtin.Options{}))
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return c.kubeconfig, config
}

// eventually waits until the only event with a reason is as wanted, and returns it in both groups.
func eventually(t *testing.T, client kubernetes.Interface, reason, what string, wanted func(*corev1.Event) bool) (*corev1.Event, *eventsv1.Event) {
	t.Helper()
	var found *corev1.Event
	harness.Eventually(t, what, func() bool {
		list, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", reason).String()})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 1 {
			t.Fatalf("there are %d events with the reason %s", len(list.Items), reason)
		}
		if len(list.Items) == 0 || !wanted(&list.Items[0]) {
			return false
		}
		found = &list.Items[0]
		return true
	})
	other, err := client.EventsV1().Events(namespace).Get(t.Context(), found.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if other.UID != found.UID || other.Note != found.Message || other.Regarding != found.InvolvedObject {
		t.Errorf("the groups have different events:\n%+v\n%+v", found, other)
	}
	return found, other
}

// The recorder of the core group creates the event, and then patches its count and time.
func TestClientGoRecorder(t *testing.T) {
	_, config := serveEvents(t)
	ctx := withCheckedLog(t)
	client := kubernetes.NewForConfigOrDie(config)
	w := post(t, typed(t, config), newWidget("alpha", 1))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(clientScheme(t), corev1.EventSource{Component: "old-recorder", Host: "here"})
	for range 3 {
		recorder.Eventf(w, corev1.EventTypeWarning, "Bent", "it is bent by %d", 7)
	}
	e, other := eventually(t, client, "Bent", "the event has been counted three times", func(e *corev1.Event) bool { return e.Count == 3 })
	if e.InvolvedObject.Kind != "Widget" || e.InvolvedObject.APIVersion != "example.com/v1" || e.InvolvedObject.UID != w.UID || e.Source.Host != "here" || e.Message != "it is bent by 7" {
		t.Errorf("the event is %+v", e)
	}
	if other.DeprecatedCount != 3 || other.DeprecatedSource.Component != "old-recorder" || other.DeprecatedFirstTimestamp.IsZero() || other.Type != corev1.EventTypeWarning {
		t.Errorf("in events.k8s.io it is %+v", other)
	}
}

// The recorder of events.k8s.io creates the event, and patches its series when it happens again.
func TestClientGoEventsRecorder(t *testing.T) {
	_, config := serveEvents(t)
	ctx := withCheckedLog(t)
	client := kubernetes.NewForConfigOrDie(config)
	w := post(t, typed(t, config), newWidget("alpha", 1))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(clientScheme(t), "example.com/new-recorder")
	note := func() { recorder.Eventf(w, nil, corev1.EventTypeNormal, "Straightened", "Bend", "it is straight") }
	note()
	eventually(t, client, "Straightened", "the event has been made", func(e *corev1.Event) bool { return e.Series == nil })
	note()
	e, other := eventually(t, client, "Straightened", "the event has a series", func(e *corev1.Event) bool { return e.Series != nil })
	if e.Series.Count != 2 || e.ReportingController != "example.com/new-recorder" || e.EventTime.IsZero() || !e.FirstTimestamp.IsZero() || e.Count != 0 {
		t.Errorf("in the core group the event is %+v", e)
	}
	if other.Action != "Bend" || other.Series.Count != 2 || !other.EventTime.Equal(&e.EventTime) {
		t.Errorf("the event is %+v", other)
	}
}

// A manager provides both recorders for controllers.
func TestControllerRuntimeRecorders(t *testing.T) {
	_, config := serveEvents(t)
	log := harness.NewLog()
	ctx, cancel := context.WithCancel(withLog(t, log))
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: clientScheme(t), Logger: log.Logger(), BaseContext: func() context.Context { return ctx }, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		for _, line := range log.Errors() {
			t.Errorf("the manager logged an error: %s", line)
		}
	})
	client := kubernetes.NewForConfigOrDie(config)
	w := post(t, typed(t, config), newWidget("alpha", 1))
	mgr.GetEventRecorder("widgets").Eventf(w, nil, corev1.EventTypeNormal, "Reconciled", "Reconcile", "all is well")
	mgr.GetEventRecorderFor("old-widgets").Event(w, corev1.EventTypeWarning, "Late", "it took long") //nolint:staticcheck // today's controllers use it
	if e, _ := eventually(t, client, "Reconciled", "the new recorder's event is there", func(*corev1.Event) bool { return true }); e.ReportingController != "widgets" || e.EventTime.IsZero() {
		t.Errorf("the event is %+v", e)
	}
	if e, _ := eventually(t, client, "Late", "the old recorder's event is there", func(*corev1.Event) bool { return true }); e.Source.Component != "old-widgets" || e.Count != 1 {
		t.Errorf("the event is %+v", e)
	}
}

// The output of kubectl for events, and for an object with events.
func TestKubectlEvents(t *testing.T) {
	kubeconfig, config := serveEvents(t)
	kubectl := harness.NewKubectl(t, kubeconfig).Run
	client := kubernetes.NewForConfigOrDie(config)
	w := post(t, typed(t, config), newWidget("alpha", 1))
	post(t, typed(t, config), newWidget("beta", 1))
	regarding := corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: namespace, Name: w.Name, UID: w.UID}
	now := metav1.Now()
	if _, err := client.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "old"}, InvolvedObject: regarding, Reason: "Bent", Message: "it is bent\n", Type: "Warning",
		Source: corev1.EventSource{Component: "bender", Host: "here"}, FirstTimestamp: now, LastTimestamp: now, Count: 3,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, Regarding: regarding, EventTime: metav1.NowMicro(), ReportingController: "example.com/bender",
		ReportingInstance: "b-1", Action: "Bend", Reason: "Straight", Note: "it is straight", Type: "Normal",
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The age in the table differs, and with it the width of columns.
	rows := func(args ...string) (out []string) {
		t.Helper()
		for line := range strings.Lines(kubectl("", args...).OK().Stdout) {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
		return out
	}
	like := func(got []string, want ...string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%d lines %q, want %q", len(got), got, want)
		}
		for i, w := range want {
			before, after, _ := strings.Cut(w, "AGE ")
			if !strings.HasPrefix(got[i], before) || !strings.HasSuffix(got[i], after) {
				t.Errorf("line %d is %q, want %q", i, got[i], w)
			}
		}
	}
	for _, resource := range []string{"events", "ev", "events.events.k8s.io", "events.v1."} {
		like(rows("get", resource),
			"LAST SEEN TYPE REASON OBJECT MESSAGE",
			"AGE Normal Straight widget/alpha it is straight",
			"AGE Warning Bent widget/alpha it is bent")
	}
	wide := rows("get", "events", "-o", "wide")
	if len(wide) != 3 || wide[0] != "LAST SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST SEEN COUNT NAME" ||
		!strings.Contains(wide[1], " widget/alpha example.com/bender, b-1 it is straight ") || !strings.HasSuffix(wide[1], " 1 new") ||
		!strings.Contains(wide[2], " widget/alpha bender, here it is bent ") || !strings.HasSuffix(wide[2], " 3 old") {
		t.Errorf("wide: %q", wide)
	}
	like(rows("get", "events", "--field-selector", "involvedObject.name=alpha,type=Warning", "--no-headers"), "AGE Warning Bent widget/alpha it is bent")
	like(rows("get", "events.events.k8s.io", "--field-selector", "regarding.uid="+string(w.UID)+",reason=Straight", "--no-headers"), "AGE Normal Straight widget/alpha it is straight")
	kubectl("", "get", "events", "-o", "name", "--field-selector", "source=bender").Want("event/old\n", "")

	for _, args := range [][]string{{"events"}, {"events", "--for", "widget/alpha"}} {
		if out := kubectl("", args...).OK().Stdout; !strings.Contains(out, "Widget/alpha") || strings.Count(out, "\n") != 3 {
			t.Errorf("kubectl %s shows\n%s", args, out)
		}
	}
	kubectl("", "events", "--for", "widget/beta").Want("", "No events found in default namespace.\n")
	if out := kubectl("", "describe", "widget", "alpha").OK().Stdout; !strings.Contains(out, "Events:") || !strings.Contains(out, "Bent") || !strings.Contains(out, "it is straight") {
		t.Errorf("kubectl describe shows\n%s", out)
	}
	kubectl("", "describe", "widget", "beta").Contains("Events:", "<none>")
	kubectl("", "describe", "event", "old").Contains("Involved Object:", "Reason:", "Bent")
	kubectl("", "delete", "events.events.k8s.io", "old").Want(fmt.Sprintf("event.events.k8s.io %q deleted from %s namespace\n", "old", namespace), "")
	kubectl("", "get", "event", "old").Fails(`Error from server (NotFound): events "old" not found` + "\n")
}
