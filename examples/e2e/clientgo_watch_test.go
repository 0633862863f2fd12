package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

// revision returns a resourceVersion as a number.
func revision(t *testing.T, rv string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(rv, 10, 64)
	if err != nil {
		t.Fatalf("resourceVersion %q is no number", rv)
	}
	return n
}

// next waits for an event, and returns false when the watch has ended.
func next(t *testing.T, w watch.Interface) (watch.Event, bool) {
	t.Helper()
	timer := time.NewTimer(harness.Timeout)
	defer timer.Stop()
	select {
	case event, ok := <-w.ResultChan():
		return event, ok
	case <-timer.C:
		t.Fatal("no event came")
		return watch.Event{}, false
	}
}

// seen records the calls of an informer's handlers.
type seen struct {
	mu     sync.Mutex
	events []string // guarded by mu
}

func (s *seen) handler() cache.ResourceEventHandler {
	tell := func(what string, obj any) {
		if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, what+" "+obj.(metav1.Object).GetName())
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell("add", obj) },
		UpdateFunc: func(_, obj any) { tell("update", obj) },
		DeleteFunc: func(obj any) { tell("delete", obj) },
	}
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// wants waits until exactly these events were received, in any order.
func (s *seen) wants(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the informer told %q", s.all())
		}
	})
	harness.Eventually(t, fmt.Sprintf("the informer tells %q", want), func() bool {
		got := s.all()
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// run runs an informer until the test ends.
func run(ctx context.Context, t *testing.T, informer cache.SharedIndexInformer, events *seen) {
	t.Helper()
	if _, err := informer.AddEventHandler(events.handler()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	harness.Eventually(t, "the informer has synced", informer.HasSynced)
}

func isWatchList(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }
func isList(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets") && r.URL.Query().Get("watch") == ""
}

// An informer of each kind, with WatchList, the default of client-go: one stream has the existing objects and the changes, and
// there is no list.
func TestClientGoInformerWatchList(t *testing.T) {
	for name, make := range map[string]func(*testing.T, *rest.Config) cache.SharedIndexInformer{
		"typed": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
			lw := cache.NewListWatchFromClient(typed(t, c), "widgets", metav1.NamespaceAll, fields.Everything())
			return cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{})
		},
		"dynamic": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
			return dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(c), 0).ForResource(widgets).Informer()
		},
		"metadata": func(t *testing.T, c *rest.Config) cache.SharedIndexInformer {
			return metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(c), 0).ForResource(widgets).Informer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			hello := start(t)
			client := typed(t, hello.Config())
			alpha := post(t, client, newWidget("alpha", 1))
			post(t, client, newWidget("beta", 1))

			var sent harness.Recorder
			c := hello.Config()
			sent.Record(c)
			var events seen
			informer := make(t, c)
			run(withCheckedLog(t), t, informer, &events)
			events.wants(t, "add alpha", "add beta")

			alpha.Spec.Size = 2
			if _, err := put(t, client, alpha); err != nil {
				t.Fatal(err)
			}
			post(t, client, newWidget("gamma", 1))
			if err := client.Delete().Namespace(namespace).Resource("widgets").Name("beta").Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
			events.wants(t, "add alpha", "add beta", "update alpha", "add gamma", "delete beta")
			if keys := informer.GetStore().ListKeys(); len(keys) != 2 {
				t.Errorf("the store has %q, want alpha and gamma", keys)
			}
			if n := sent.Count(isWatchList); n != 1 {
				t.Errorf("%d requests with sendInitialEvents, want 1", n)
			}
			if n := sent.Count(isList); n != 0 {
				t.Errorf("the informer fell back to %d lists", n)
			}
		})
	}
}

// An informer outlives its server: when hello runs again on its port with its data, the informer continues.
func TestClientGoInformerOutlivesServer(t *testing.T) {
	hello := start(t)
	post(t, typed(t, hello.Config()), newWidget("alpha", 1))
	var events seen
	lw := cache.NewListWatchFromClient(typed(t, hello.Config()), "widgets", metav1.NamespaceAll, fields.Everything())
	log := harness.NewLog() // the missing server may be an error for the informer
	run(withLog(t, log), t, cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{}), &events)
	events.wants(t, "add alpha")

	again := restart(t, hello)
	post(t, typed(t, again.Config()), newWidget("beta", 1))
	// The existing objects are received again when the stream starts again.
	events.wants(t, "add alpha", "update alpha", "add beta")
}

// restart stops hello and starts it again on the same port and file.
func restart(t *testing.T, hello *harness.Server) *harness.Server {
	t.Helper()
	hello.Stop()
	return harness.Start(t, harness.Options{Dir: hello.Dir, Etcd: hello.Etcd, Listen: strings.TrimPrefix(hello.URL, "https://")})
}

// watchFrom watches the widgets after a resourceVersion.
func watchFrom(t *testing.T, client rest.Interface, rv string) watch.Interface {
	t.Helper()
	w, err := client.Get().Resource("widgets").VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: rv}, parameters(t)).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestClientGoWatchResume(t *testing.T) {
	hello := start(t)
	client := typed(t, hello.Config())
	alpha := post(t, client, newWidget("alpha", 1))
	from := alpha.ResourceVersion
	post(t, client, newWidget("beta", 1))

	first := watchFrom(t, client, from)
	wantEvents(t, first, "ADDED beta")
	first.Stop()

	// Events that happened without a watch are received when the watch is resumed, also after a restart.
	alpha.Spec.Size = 2
	if _, err := put(t, client, alpha); err != nil {
		t.Fatal(err)
	}
	hello = restart(t, hello)
	client = typed(t, hello.Config())
	post(t, client, newWidget("gamma", 1))
	wantEvents(t, watchFrom(t, client, from), "ADDED beta", "MODIFIED alpha", "ADDED gamma")

	// A RetryWatcher receives every event once, although its connections end repeatedly.
	lw := cache.NewListWatchFromClient(client, "widgets", namespace, fields.Everything())
	lw.WatchFuncWithContext = shortWatches(lw.WatchFuncWithContext)
	retrying, err := watchtools.NewRetryWatcherWithContext(withCheckedLog(t), from, lw)
	if err != nil {
		t.Fatal(err)
	}
	defer retrying.Stop()
	wantEvents(t, retrying, "ADDED beta", "MODIFIED alpha", "ADDED gamma")
	time.Sleep(1500 * time.Millisecond) // longer than a watch lasts
	post(t, client, newWidget("delta", 1))
	wantEvents(t, retrying, "ADDED delta")
}

// shortWatches makes watches end after a second.
func shortWatches(next cache.WatchFuncWithContext) cache.WatchFuncWithContext {
	return func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		second := int64(1)
		o.TimeoutSeconds = &second
		return next(ctx, o)
	}
}

func TestClientGoPagination(t *testing.T) {
	hello := start(t)
	client := dynamic.NewForConfigOrDie(hello.Config()).Resource(widgets).Namespace(namespace)
	rest := typed(t, hello.Config())
	var want []string
	for i := range 23 {
		want = append(want, fmt.Sprintf("w-%02d", i))
		post(t, rest, newWidget(want[i], 1))
	}
	ctx := withCheckedLog(t)

	pages := 0
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		pages++
		return client.List(ctx, o)
	})
	p.PageSize, p.PageBufferSize = 5, 0
	var got []string
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		got = append(got, obj.(*unstructured.Unstructured).GetName())
		return nil
	})
	if err != nil || !slices.Equal(got, want) || pages != 5 {
		t.Errorf("%d pages have %q, %v", pages, got, err)
	}

	// All pages of one list show the same state, whatever happens meanwhile.
	first, err := client.List(ctx, metav1.ListOptions{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if left := first.GetRemainingItemCount(); len(first.Items) != 10 || left == nil || *left != 13 {
		t.Errorf("the first page has %d items and says %v are left", len(first.Items), left)
	}
	if err := client.Delete(ctx, "w-15", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	post(t, rest, newWidget("w-155", 1))
	second, err := client.List(ctx, metav1.ListOptions{Limit: 10, Continue: first.GetContinue()})
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Items) != 10 || second.Items[5].GetName() != "w-15" || second.Items[6].GetName() != "w-16" || second.GetResourceVersion() != first.GetResourceVersion() {
		t.Errorf("the second page is not of the first's moment: %v at %s, want %s", second.Items, second.GetResourceVersion(), first.GetResourceVersion())
	}
	if _, err := client.List(ctx, metav1.ListOptions{Limit: 10, Continue: "bogus"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a bogus continue token: %v", err)
	}
	if _, err := client.List(ctx, metav1.ListOptions{Continue: first.GetContinue(), ResourceVersion: "1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a continue token with a resourceVersion: %v", err)
	}
}

func TestClientGoResourceVersions(t *testing.T) {
	hello := start(t)
	client := typed(t, hello.Config())
	alpha := post(t, client, newWidget("alpha", 1))
	beta := post(t, client, newWidget("beta", 1))
	if revision(t, beta.ResourceVersion) <= revision(t, alpha.ResourceVersion) {
		t.Errorf("beta has resourceVersion %s after alpha's %s", beta.ResourceVersion, alpha.ResourceVersion)
	}
	list := func(rv string, match metav1.ResourceVersionMatch) (*WidgetList, error) {
		l := new(WidgetList)
		return l, client.Get().Resource("widgets").VersionedParams(&metav1.ListOptions{ResourceVersion: rv, ResourceVersionMatch: match}, parameters(t)).MaxRetries(0).Do(t.Context()).Into(l)
	}
	for _, c := range []struct {
		rv    string
		match metav1.ResourceVersionMatch
		names int
		at    string // the list's resourceVersion; "" means any
	}{
		{"", "", 2, beta.ResourceVersion},
		{"0", "", 2, ""},
		{"0", metav1.ResourceVersionMatchNotOlderThan, 2, ""},
		{alpha.ResourceVersion, "", 2, beta.ResourceVersion},
		{alpha.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan, 2, beta.ResourceVersion},
		{alpha.ResourceVersion, metav1.ResourceVersionMatchExact, 1, alpha.ResourceVersion},
	} {
		l, err := list(c.rv, c.match)
		if err != nil || len(l.Items) != c.names || c.at != "" && l.ResourceVersion != c.at {
			t.Errorf("resourceVersion %q match %q: %d items at %s, %v; want %d at %s", c.rv, c.match, len(l.Items), l.ResourceVersion, err, c.names, c.at)
		}
	}
	if _, err := list("0", metav1.ResourceVersionMatchExact); !apierrors.IsInvalid(err) {
		t.Errorf("exactly 0: %v", err)
	}
	if _, err := list("", metav1.ResourceVersionMatchExact); !apierrors.IsInvalid(err) {
		t.Errorf("a match without resourceVersion: %v", err)
	}
	if _, err := list("abc", ""); !apierrors.IsBadRequest(err) {
		t.Errorf("resourceVersion abc: %v", err)
	}
	future := fmt.Sprint(revision(t, beta.ResourceVersion) + 1000)
	if _, err := list(future, metav1.ResourceVersionMatchNotOlderThan); !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("a list at a future resourceVersion: %v", err)
	}

	// A PUT without a resourceVersion overwrites the object. With one, it must be the current one.
	alpha.ResourceVersion, alpha.Spec.Size = "", 5
	updated, err := put(t, client, alpha)
	if err != nil || updated.Spec.Size != 5 {
		t.Fatalf("a PUT without resourceVersion made %+v, %v", updated, err)
	}
	if again, err := put(t, client, updated); err != nil || again.ResourceVersion != updated.ResourceVersion {
		t.Errorf("a PUT that changes nothing made resourceVersion %s of %s, %v", again.ResourceVersion, updated.ResourceVersion, err)
	}

	// A watch from 0, or without a resourceVersion, begins with the existing objects.
	for _, rv := range []string{"0", ""} {
		w, err := client.Get().Resource("widgets").VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: rv}, parameters(t)).Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for range 2 {
			if event, ok := next(t, w); ok && event.Type == watch.Added {
				names = append(names, event.Object.(*Widget).Name)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"alpha", "beta"}) {
			t.Errorf("a watch from %q begins with %q", rv, names)
		}
		w.Stop()
	}
}
