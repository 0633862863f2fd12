package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// inBubble runs a test with its own server and clientset in a bubble.
func inBubble(t *testing.T, f func(t *testing.T, srv *servertest.Server, set kubernetes.Interface)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}))
		f(t, srv, newClientset(t, clienttest.Config(srv)))
	})
}

// An informer begins with one watch that has the initial state. For half a day its watches end and are resumed. It misses no
// event and sends no list.
func TestAnInformerInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *servertest.Server, set kubernetes.Interface) {
		asked := srv.Record(servertest.Match{Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}, UserAgent: "informer"})
		config := clienttest.Config(srv)
		config.UserAgent = "informer"
		maps := set.CoreV1().ConfigMaps("default")
		create := func(name string) {
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create("first")
		factory := informers.NewSharedInformerFactoryWithOptions(newClientset(t, config), 5*time.Hour, informers.WithNamespace("default"))
		informer := factory.Core().V1().ConfigMaps().Informer()
		var mu sync.Mutex // guards seen
		var seen []string
		begin := time.Now()
		note := func(what string, obj any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(time.Since(begin), " ", what, " ", obj.(*corev1.ConfigMap).Name))
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { note("add", obj) },
			UpdateFunc: func(old, obj any) {
				if old.(*corev1.ConfigMap).ResourceVersion == obj.(*corev1.ConfigMap).ResourceVersion {
					note("resync", obj)
				} else {
					note("update", obj)
				}
			},
			DeleteFunc: func(obj any) { note("delete", obj) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer stop()
		synctest.Wait() // in place of WaitForCacheSync, which polls every 100 ms
		if !informer.HasSynced() {
			t.Error("the informer has not synced although all are at rest")
		}
		time.Sleep(4 * time.Hour)
		create("second")
		time.Sleep(8 * time.Hour)
		if err := maps.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{"0s add first", "4h0m0s add second", "5h0m0s resync first", "5h0m0s resync second", "10h0m0s resync first", "10h0m0s resync second", "12h0m0s delete first"}
		mu.Lock()
		defer mu.Unlock()
		for _, round := range []int{2, 4} {
			slices.Sort(seen[min(round, len(seen)):min(round+2, len(seen))]) // objects are resynced in any order
		}
		if !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
		requests := asked.Requests()
		if len(requests) < 72 || requests[0].Query.Get("sendInitialEvents") != "true" { // a watch of client-go lasts 10 minutes at most
			t.Errorf("%d requests, the first with %v; want 72 at least, and one that asks for the initial events", len(requests), requests[0].Query)
		}
		for _, r := range requests[1:] {
			if r.Verb != "watch" || r.Query.Get("resourceVersion") == "" || r.Query.Has("sendInitialEvents") {
				t.Errorf("after %v a %s with %v, want a watch that goes on", r.Time.Sub(begin), r.Verb, r.Query)
			}
		}
	})
}

// One of two candidates of client-go leads. When it cannot be reached any more, the other one leads after the 15 s of the first
// one's claim.
func TestLeaderElectionInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *servertest.Server, _ kubernetes.Interface) {
		var (
			mu      sync.Mutex // guards what follows
			began   = map[string]time.Time{}
			ended   = map[string]time.Time{}
			running sync.WaitGroup
		)
		run := func(ctx context.Context, who string) {
			config := clienttest.Config(srv)
			config.UserAgent = who
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "crown"}, Client: newClientset(t, config).CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: who},
				},
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { mu.Lock(); began[who] = time.Now(); mu.Unlock() },
					OnStoppedLeading: func() { mu.Lock(); ended[who] = time.Now(); mu.Unlock() },
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() { elector.Run(ctx) })
		}
		ctx, stop := context.WithCancel(t.Context())
		run(ctx, "first")
		synctest.Wait()
		run(ctx, "second")
		time.Sleep(5*time.Minute + time.Second) // between two renewals
		lease, err := newClientset(t, clienttest.Config(srv)).CoordinationV1().Leases("default").Get(t.Context(), "crown", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// From now on the first candidate gets no answer in time.
		srv.Inject(servertest.Fault{Match: servertest.Match{UserAgent: "first"}, Delay: time.Hour})
		time.Sleep(time.Minute)
		stop()
		running.Wait()
		synctest.Wait() // the callbacks run in other goroutines
		mu.Lock()
		defer mu.Unlock()
		// The first candidate tries again 2 s after its last renewal, and then for 10 s.
		renewed := lease.Spec.RenewTime.Time
		if lost := ended["first"].Sub(renewed); lost != 12*time.Second {
			t.Errorf("the first led until %v after its last renewal, want 12s", lost)
		}
		const looks = 4400 * time.Millisecond // maximum time between reads: the retry period and up to 1.2 of it
		if won := began["second"].Sub(renewed); won < 15*time.Second || won > 15*time.Second+2*looks {
			t.Errorf("the second leads from %v after the last renewal of the first, want 15s and two looks at the Lease at most", won)
		}
	})
}

// client-go delays callers that report errors, by a clock of the process. In a bubble it is the year 2000, and after an error
// outside of a bubble the delay would last until today.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the one that logs
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// The handling of errors by client-go works in a bubble too, whatever its delays are.
func TestErrorsInABubble(t *testing.T) {
	utilruntime.HandleError(errors.New("in real time"))
	inBubble(t, func(t *testing.T, srv *servertest.Server, set kubernetes.Interface) {
		factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace("default"))
		informer := factory.Core().V1().ConfigMaps().Informer()
		ctx, stop := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer stop()
		synctest.Wait()
		names := func() []string {
			synctest.Wait()
			return informer.GetStore().ListKeys()
		}

		of := servertest.Match{Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}, Namespace: "default"}
		down := srv.Inject(servertest.Fault{Match: of, Error: apierrors.NewInternalError(errors.New("down"))})
		time.Sleep(time.Hour) // longer than any watch lasts
		if _, err := set.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := names(); len(got) != 0 {
			t.Errorf("the informer has %q although nobody told it", got)
		}
		down()
		time.Sleep(time.Minute) // the reflector waits for 30 s, more or less
		if got := names(); !slices.Equal(got, []string{"default/a"}) {
			t.Errorf("the informer has %q a minute after the server is back", got)
		}
	})
}
