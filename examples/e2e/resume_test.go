package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apiserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// away makes connections of a configuration's clients fail while it is set.
type away struct{ atomic.Bool }

func (a *away) cut(c *rest.Config) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return cut{a, next} })
}

type cut struct {
	away *away
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.away.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return c.next.RoundTrip(r)
}

func isWatch(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/widgets") && r.URL.Query().Get("watch") != ""
}

// onBoth runs a test with a file and with etcd, whatever the environment variable says.
func onBoth(t *testing.T, test func(t *testing.T, hello *harness.Server)) {
	t.Run("bolt", func(t *testing.T) { test(t, start(t)) })
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		test(t, onEtcd(t, harness.StartEtcd(t)))
	})
}

// An informer whose server restarts continues after its last event. It does not list again, and receives each event of the
// meantime once, also those of another server on the same etcd.
func TestClientGoInformerResumesAcrossRestart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, hello *harness.Server) {
		client := typed(t, hello.Config())
		alpha := post(t, client, newWidget("alpha", 1))
		var sent harness.Recorder
		var gone away
		c := hello.Config()
		sent.Record(c)
		gone.cut(c)
		var events seen
		lw := cache.NewListWatchFromClient(typed(t, c), "widgets", metav1.NamespaceAll, fields.Everything())
		informer := cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{})
		run(withCheckedLog(t), t, informer, &events)
		post(t, client, newWidget("beta", 1))
		events.wants(t, "add alpha", "add beta")
		watches := sent.Count(isWatch)

		gone.Store(true)
		hello.Stop()
		want := []string{"add alpha", "add beta"}
		if hello.Etcd != "" {
			other := typed(t, onEtcd(t, hello.Etcd).Config())
			post(t, other, newWidget("delta", 1))
			want = append(want, "add delta")
		}
		hello = restart(t, hello)
		client = typed(t, hello.Config())
		alpha.Spec.Size = 2
		if _, err := put(t, client, alpha); err != nil {
			t.Fatal(err)
		}
		if err := client.Delete().Namespace(namespace).Resource("widgets").Name("beta").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		gone.Store(false)
		want = append(want, "update alpha", "delete beta")
		events.wants(t, want...)
		post(t, client, newWidget("gamma", 1))
		events.wants(t, append(want, "add gamma")...)

		if n := sent.Count(isWatchList); n != 1 {
			t.Errorf("%d requests with sendInitialEvents, want 1", n)
		}
		if n := sent.Count(isList); n != 0 {
			t.Errorf("the informer listed %d times", n)
		}
		if sent.Count(isWatch) == watches {
			t.Error("the informer has not watched again: what did it resume?")
		}
	})
}

// A watch from a resourceVersion before a restart never gets a 410, and receives each event since then once.
func TestClientGoWatchResumesAcrossRestart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, hello *harness.Server) {
		client := typed(t, hello.Config())
		alpha := post(t, client, newWidget("alpha", 1))
		want := []string{}
		w := watchFrom(t, client, alpha.ResourceVersion)
		for i := range 20 {
			post(t, client, newWidget(fmt.Sprint("w", i), 1))
			want = append(want, fmt.Sprint("ADDED w", i))
		}
		wantEvents(t, w, want...) // the server has a cache of widgets with their history
		w.Stop()
		hello.Stop()
		if hello.Etcd != "" {
			post(t, typed(t, onEtcd(t, hello.Etcd).Config()), newWidget("other", 1))
			want = append(want, "ADDED other")
		}
		client = typed(t, restart(t, hello).Config())
		resumed := watchFrom(t, client, alpha.ResourceVersion)
		wantEvents(t, resumed, want...)
		post(t, client, newWidget("last", 1))
		wantEvents(t, resumed, "ADDED last")
	})
}

// kubectl get -w ends cleanly with its server, and a watch after the restart continues there.
func TestKubectlGetWatchAcrossRestart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, hello *harness.Server) {
		create(t, hello, "alpha")
		first := hello.Begin("get", "widgets", "-w", "--output-watch-events")
		harness.Eventually(t, "kubectl shows alpha", func() bool { return strings.Contains(first.Stdout.String(), "alpha") })
		create(t, hello, "beta") // alpha is in the list, and beta in the watch
		harness.Eventually(t, "kubectl shows beta", func() bool { return strings.Contains(first.Stdout.String(), "beta") })
		from := field(hello, "alpha", ".metadata.resourceVersion")

		hello = restart(t, hello)
		if code := first.Wait(); code != 0 || first.Stderr.String() != "" {
			t.Errorf("kubectl get -w ended with %d: %s", code, first.Stderr)
		}
		hello.Kubectl("label", "widget", "alpha", "a=b").OK()
		second := hello.Begin("get", "--raw", "/apis/example.com/v1/widgets?watch=true&timeoutSeconds=3600&resourceVersion="+from)
		last := hello.Begin("get", "widgets", "-w", "--output-watch-events")
		harness.Eventually(t, "kubectl shows what is there", func() bool { return strings.Contains(last.Stdout.String(), "beta") })
		create(t, hello, "gamma")
		harness.Eventually(t, "kubectl shows gamma", func() bool { return strings.Contains(last.Stdout.String(), "gamma") })
		harness.Eventually(t, "the raw watch shows gamma", func() bool { return strings.Contains(second.Stdout.String(), `"gamma"`) })
		hello.Stop()
		for _, p := range []*harness.Process{second, last} {
			if code := p.Wait(); code != 0 {
				t.Errorf("a kubectl that watched ended with %d: %s", code, p.Stderr)
			}
		}
		var types []string
		for line := range strings.Lines(second.Stdout.String()) {
			types = append(types, line[:min(len(line), len(`{"type":"MODIFIED"`))])
		}
		if got := strings.Join(types, " "); got != `{"type":"ADDED","o {"type":"MODIFIED" {"type":"ADDED","o` {
			t.Errorf("the watch from before the restart showed\n%s", second.Stdout)
		}
	})
}

// throttled is a connection that stops reading after most bytes until it is released.
type throttled struct {
	net.Conn
	most     int // used only by Read
	stuck    chan struct{}
	released <-chan struct{}
	once     sync.Once
}

func (c *throttled) Read(p []byte) (int, error) {
	if c.most <= 0 {
		c.once.Do(func() { close(c.stuck) })
		<-c.released
	}
	n, err := c.Conn.Read(p)
	c.most -= n
	return n, err
}

// The initial events of an informer with a slow connection take longer than the server keeps its history. The informer then
// receives the difference, and finally has the state of the server, without a 410 and without a list.
func TestClientGoSlowWatchListCatchesUp(t *testing.T) {
	t.Parallel()
	const objects, size, read = 1500, 4 << 10, 512 << 10
	srv := servertest.Start(t, apiserver.Options{
		Limits: apiserver.Limits{CacheWindow: 3 * time.Second}, // the informer needs it for the watch after the initial events; the test waits for it below
		Groups: []apiserver.Group{{Name: groupVersion.Group, Versions: []apiserver.Version{{Name: groupVersion.Version, Resources: []apiserver.Resource{
			apiserver.Kind("Widget", apiserver.KindOptions[*Widget]{}),
		}}}}},
	})
	config := func(dial func(ctx context.Context, network, address string) (net.Conn, error)) *rest.Config {
		return &rest.Config{
			Host: srv.URL, BearerToken: srv.Token, TLSClientConfig: rest.TLSClientConfig{CAData: srv.CA},
			Dial: dial, DisableCompression: true, QPS: -1,
		}
	}
	client := typed(t, config(srv.DialContext))
	text := func() string {
		var b strings.Builder
		for b.Len() < size {
			fmt.Fprintf(&b, "%016x", rand.Uint64())
		}
		return b.String()
	}
	made := make([]*Widget, objects)
	for i := range made {
		w := newWidget(fmt.Sprintf("w%04d", i), 1)
		w.Spec.Data = text()
		made[i] = post(t, client, w)
	}

	stuck, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	slow := config(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := srv.DialContext(ctx, network, address)
		return &throttled{Conn: c, most: read, stuck: stuck, released: released}, err
	})
	var sent harness.Recorder
	sent.Record(slow)
	lw := cache.NewListWatchFromClient(typed(t, slow), "widgets", metav1.NamespaceAll, fields.Everything())
	informer := cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(withCheckedLog(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { release(); cancel(); <-done })
	select {
	case <-stuck:
	case <-t.Context().Done():
		t.Fatal("the informer read too little")
	}

	// One object from the events already sent, one from those to be sent soon, and the last one.
	for _, i := range []int{0, 1, objects / 2, objects - 1} {
		made[i].Spec.Size = 2
		var err error
		if made[i], err = put(t, client, made[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{2, objects/2 + 1, objects - 2} {
		if err := client.Delete().Namespace(namespace).Resource("widgets").Name(made[i].Name).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	post(t, client, newWidget("a-new-first", 1))
	post(t, client, newWidget("z-new-last", 1))
	harness.Eventually(t, "the window has passed", func() bool {
		made[1].Spec.Size++
		var err error
		if made[1], err = put(t, client, made[1]); err != nil {
			t.Fatal(err)
		}
		w := watchFrom(t, client, made[objects-1].ResourceVersion)
		defer w.Stop()
		e, ok := next(t, w)
		return ok && e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object))
	})

	release()
	harness.Eventually(t, "the informer has synced", informer.HasSynced)
	post(t, client, newWidget("z-new-later", 1))
	want := map[string]string{}
	list := new(WidgetList)
	if err := client.Get().Resource("widgets").Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Items {
		want[namespace+"/"+w.Name] = w.ResourceVersion
	}
	if len(want) != objects {
		t.Errorf("there are %d widgets", len(want))
	}
	harness.Eventually(t, "the informer has what the server has", func() bool {
		keys := informer.GetStore().ListKeys()
		for _, key := range keys {
			obj, _, err := informer.GetStore().GetByKey(key)
			if err != nil || obj.(*Widget).ResourceVersion != want[key] {
				return false
			}
		}
		return len(keys) == len(want)
	})
	if lists, watchLists := sent.Count(isList), sent.Count(isWatchList); lists != 0 || watchLists != 1 {
		t.Errorf("the informer listed %d times and began %d times with sendInitialEvents", lists, watchLists)
	}
}
