package e2e_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apiserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/bolt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// watchEnds records how the watches of a configuration's clients end. All methods may be called concurrently.
type watchEnds struct {
	mu    sync.Mutex // guards all below
	clean []time.Time
	errs  []error
}

func (e *watchEnds) record(c *rest.Config) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return endsOf{e, next} })
}

// state returns the times of the clean ends, in their order, and the errors of the others.
func (e *watchEnds) state() (clean []time.Time, errs []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clean, e.errs
}

type endsOf struct {
	ends *watchEnds
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e endsOf) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.next.RoundTrip(r)
	if err == nil && isWatch(r) && resp.StatusCode == http.StatusOK {
		resp.Body = &endingBody{ReadCloser: resp.Body, ends: e.ends}
	}
	return resp, err
}

// endingBody is the body of a watch.
type endingBody struct {
	io.ReadCloser
	ends *watchEnds
	once sync.Once
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(func() {
			b.ends.mu.Lock()
			defer b.ends.mu.Unlock()
			if err == io.EOF {
				b.ends.clean = append(b.ends.clean, time.Now())
			} else {
				b.ends.errs = append(b.ends.errs, err)
			}
		})
	}
	return n, err
}

// serveWidgets serves widgets at an address, with all that it keeps in a folder. stop ends the server and waits for the end.
func serveWidgets(t *testing.T, dir, listen string, grace time.Duration) (config *rest.Config, stop func()) {
	t.Helper()
	ready := make(chan string, 1)
	srv, err := apiserver.New(apiserver.Options{
		Storage: bolt.At(filepath.Join(dir, "widgets.db")),
		Groups: []apiserver.Group{{Name: groupVersion.Group, Versions: []apiserver.Version{{Name: groupVersion.Version, Resources: []apiserver.Resource{
			apiserver.Kind("Widget", apiserver.KindOptions[*Widget]{}),
		}}}}},
		Serving: apiserver.Serving{
			Listen: listen, Credentials: filepath.Join(dir, "pki"), Kubeconfig: filepath.Join(dir, "kubeconfig"), ShutdownWatchGrace: grace,
			Ready: func(_, kubeconfig string) { ready <- kubeconfig },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	config, err = clientcmd.BuildConfigFromFlags("", <-ready)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config, stop
}

// With ShutdownWatchGrace the watches of many informers end one after the other and cleanly. The informers go on at the successor
// of the server without a list.
func TestClientGoInformersOverAWatchGrace(t *testing.T) {
	const informers, grace = 500, 4 * time.Second
	dir := t.TempDir()
	config, stop := serveWidgets(t, dir, "127.0.0.1:0", grace)
	post(t, typed(t, config), newWidget("before", 1))

	var sent harness.Recorder
	var ends watchEnds
	watching := rest.CopyConfig(config)
	sent.Record(watching)
	ends.record(watching)
	client := typed(t, watching)
	ctx, cancel := context.WithCancel(withCheckedLog(t))
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	all := make([]cache.SharedIndexInformer, informers)
	for i := range all {
		all[i] = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client, "widgets", metav1.NamespaceAll, fields.Everything()), &Widget{}, 0, cache.Indexers{})
		running.Go(func() { all[i].RunWithContext(ctx) })
	}
	have := func(name string) func() bool {
		return func() bool {
			for _, informer := range all {
				if _, ok, err := informer.GetStore().GetByKey(namespace + "/" + name); err != nil || !ok {
					return false
				}
			}
			return true
		}
	}
	harness.Eventually(t, "all informers have what was there", have("before"))
	time.Sleep(time.Second) // client-go takes a watch that ends sooner as a fault of the server

	began := sent.Count(isWatch)
	stop()
	clean, errs := ends.state()
	if len(clean) != informers || len(errs) > 0 {
		t.Errorf("%d watches of %d ended cleanly, others with %v", len(clean), informers, errs)
	} else if spread := clean[informers-1].Sub(clean[0]); spread < grace/4 {
		t.Errorf("all watches ended within %v, want about %v", spread, grace)
	}

	next, _ := serveWidgets(t, dir, strings.TrimPrefix(config.Host, "https://"), 0)
	post(t, typed(t, next), newWidget("after", 1))
	harness.Eventually(t, "all informers have what came afterwards", have("after"))
	if lists, begun, again := sent.Count(isList), sent.Count(isWatchList), sent.Count(isWatch)-began; lists != 0 || begun != informers || again < informers {
		t.Errorf("the informers listed %d times, began %d times with sendInitialEvents, and then watched %d times", lists, begun, again)
	}
}
