package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "example.com/widget"

// reconciler sets the status of widgets according to their spec, and holds them with a finalizer until it has seen their
// deletion.
type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := new(Widget)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, w)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: 1}, nil // the cache is outdated; the next event has the new state
	}
	return ctrl.Result{}, err
}

func (r reconciler) reconcile(ctx context.Context, w *Widget) error {
	if !w.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return r.Update(ctx, w)
		}
		return nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		return r.Update(ctx, w)
	}
	want := WidgetStatus{Ready: true, Replicas: w.Spec.Replicas, Selector: "widget=" + w.Name}
	if w.Status == want {
		return nil
	}
	w.Status = want
	return r.Status().Update(ctx, w)
}

func TestControllerRuntimeManager(t *testing.T) {
	hello := start(t)
	ctx, c := runManager(t, hello, func(c client.Client) reconcile.Reconciler { return reconciler{c} })

	const many = 10
	for i := range many {
		w := newWidget(fmt.Sprintf("w-%d", i), 1)
		w.Namespace, w.Spec.Replicas = namespace, int32(i)
		if err := c.Create(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(ctx, t, c, many, func(i int) int32 { return int32(i) })

	list := new(WidgetList)
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) != many {
		t.Fatalf("listed %d widgets, %v", len(list.Items), err)
	}
	for _, w := range list.Items {
		if err := c.Patch(ctx, &w, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`))); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(ctx, t, c, many, func(int) int32 { return 7 })

	if err := c.DeleteAllOf(ctx, &Widget{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the reconciler has let all widgets go", func() bool {
		left := new(WidgetList)
		if err := c.List(ctx, left); err != nil {
			t.Fatal(err)
		}
		return len(left.Items) == 0
	})
}

// wantStatus waits until every widget has the status that the reconciler sets.
func wantStatus(ctx context.Context, t *testing.T, c client.Client, many int, replicas func(i int) int32) {
	t.Helper()
	for i := range many {
		name := fmt.Sprintf("w-%d", i)
		harness.Eventually(t, "the status of "+name+" is right", func() bool {
			w := new(Widget)
			if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, w); err != nil {
				t.Fatal(err)
			}
			return w.Status == WidgetStatus{Ready: true, Replicas: replicas(i), Selector: "widget=" + name}
		})
	}
}

// runManager runs a manager with the reconciler that of makes, until the test ends. An error in its log, or in that of the
// libraries below it, fails the test. The client of of reads and writes without the manager's cache.
func runManager(t *testing.T, hello *harness.Server, of func(c client.Client) reconcile.Reconciler) (context.Context, client.Client) {
	t.Helper()
	log := harness.NewLog()
	ctx, cancel := context.WithCancel(withLog(t, log))
	scheme := clientScheme(t)
	mgr, err := ctrl.NewManager(hello.Config(), ctrl.Options{
		Scheme: scheme, Logger: log.Logger(), BaseContext: func() context.Context { return ctx },
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	// controller-runtime requires unique names of controllers in a process, and with -count a test runs several times.
	again := true
	widgets := ctrl.NewControllerManagedBy(mgr).For(&Widget{}).WithOptions(controller.Options{SkipNameValidation: &again})
	reconciling := &unhurried{Reconciler: of(mgr.GetClient())}
	if err := widgets.Complete(reconciling); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		reconciling.end(cancel)
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		for _, line := range log.Errors() {
			t.Errorf("the manager logged an error: %s", line)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the manager's cache did not sync")
	}
	c, err := client.New(hello.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, c
}

// unhurried lets a reconciler finish before the manager ends. A test may see the result of a write before the reconciler has read
// the answer. If the read were canceled, the manager would log an error.
type unhurried struct {
	reconcile.Reconciler
	busy sync.RWMutex
}

func (u *unhurried) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u.busy.RLock()
	defer u.busy.RUnlock()
	if ctx.Err() != nil {
		return ctrl.Result{}, nil
	}
	return u.Reconciler.Reconcile(ctx, req)
}

// end calls cancel when no reconciliation is in progress.
func (u *unhurried) end(cancel context.CancelFunc) {
	u.busy.Lock()
	defer u.busy.Unlock()
	cancel()
}

// Widget and its list implement the interfaces of controller-runtime without code of their own.
var (
	_ client.Object     = (*Widget)(nil)
	_ client.ObjectList = (*WidgetList)(nil)
)
