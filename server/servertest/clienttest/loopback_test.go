package clienttest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// readies is a reconciler that makes gadgets ready.
type readies struct{ client.Client }

func (r readies) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var g Gadget
	if err := r.Get(ctx, req.NamespacedName, &g); err != nil || g.Status.Ready {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g.Status.Ready = true
	return ctrl.Result{}, r.Status().Update(ctx, &g)
}

// A program runs controllers in the process of its server, with a manager that elects a leader.
func TestManagerOverTheLoopback(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{{Name: gadgets.Group, Versions: []server.Version{{
		Name: gadgets.Version, Resources: []server.Resource{server.Kind("Gadget", server.KindOptions[*Gadget]{})},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	scheme := runtime.NewScheme()
	if err := errors.Join(srv.Install(builtin.New(builtin.Options{})), srv.Scheme().AddTo(scheme)); err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: "http://loopback", QPS: -1, Transport: srv.Loopback(authn.System())}
	unnamed := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "gadgets",
		LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true, Controller: config.Controller{SkipNameValidation: &unnamed},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&Gadget{}).Named("readies").Complete(readies{mgr.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	if err := c.Create(ctx, g); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !g.Status.Ready; time.Sleep(5 * time.Millisecond) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil || time.Now().After(end) {
			t.Fatalf("the gadget is not ready: %+v, %v", g.Status, err)
		}
	}
}
