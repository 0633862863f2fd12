package clienttest_test

import (
	"context"
	"net"
	"net/http/httptrace"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// websites are the kinds of package website.
func websites() server.Extension {
	return servertest.Types{AddToScheme: website.AddToScheme, ClusterScoped: []string{"Domain"}}
}

// newServer returns a server for a parallel test.
func newServer(t *testing.T) *servertest.Server {
	t.Helper()
	t.Parallel()
	return servertest.New(t, builtin.New(builtin.Options{}), websites())
}

func newClientset(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestTypedAndDynamicClientsSeeTheSame(t *testing.T) {
	srv := newServer(t)
	typed := newClientset(t, clienttest.Config(srv)).CoreV1().ConfigMaps("default")
	all, err := dynamic.NewForConfig(clienttest.Config(srv))
	if err != nil {
		t.Fatal(err)
	}
	untyped := all.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")

	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"},
	}}
	if _, err := untyped.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := typed.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Data["k"] != "v" {
		t.Errorf("%v, %v", got, err)
	}
	if err := typed.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := untyped.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
}

func TestDiscoveryKnowsTheKinds(t *testing.T) {
	srv := newServer(t)
	d, err := discovery.NewDiscoveryClientForConfig(clienttest.Config(srv))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if list.GroupVersion == website.GroupVersion().String() {
				names = append(names, r.Name)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"domains", "websites", "websites/status"}) {
		t.Errorf("there are %v", names)
	}

	http, err := rest.HTTPClientFor(clienttest.Config(srv))
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(clienttest.Config(srv), http)
	if err != nil {
		t.Fatal(err)
	}
	for kind, scope := range map[string]string{"Domain": "root", "Website": "namespace"} {
		m, err := mapper.RESTMapping(schema.GroupKind{Group: website.GroupVersion().Group, Kind: kind})
		if err != nil || string(m.Scope.Name()) != scope {
			t.Errorf("%s: %+v, %v", kind, m, err)
		}
	}
}

func TestInformersWatchLists(t *testing.T) {
	srv := newServer(t)
	rec := srv.Record(servertest.Match{Verbs: []string{"list", "watch"}, Resources: []string{"configmaps"}, UserAgent: "informer"})
	c := clienttest.Config(srv)
	c.UserAgent = "informer"
	set := newClientset(t, c)
	for _, name := range []string{"a", "b"} {
		if _, err := set.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(set, 0)
	maps := factory.Core().V1().ConfigMaps().Informer()
	seen := make(chan string, 10)
	if _, err := maps.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { seen <- obj.(*corev1.ConfigMap).Name }}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer stop()
	names := []string{<-seen, <-seen}
	slices.Sort(names)
	if _, err := set.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("c"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if names = append(names, <-seen); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("seen were %v", names)
	}
	did := rec.Requests()
	if len(did) != 1 || did[0].Query.Get("sendInitialEvents") != "true" {
		t.Errorf("requested was %+v", did)
	}
}

// conns counts the connections of requests.
type conns struct {
	mu   sync.Mutex // guards below
	used []net.Conn
}

func (c *conns) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.Contains(c.used, i.Conn) {
			c.used = append(c.used, i.Conn)
		}
	}})
}

// ask sends a request with a new client of a Config, and returns the number of connections used so far.
func (c *conns) ask(t *testing.T, config *rest.Config) int {
	t.Helper()
	if _, err := newClientset(t, config).CoreV1().ConfigMaps("default").List(c.trace(t.Context()), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.used)
}

func TestClientsOfOneConfigShareAConnection(t *testing.T) {
	srv := newServer(t)
	config, c := clienttest.Config(srv), new(conns)
	c.ask(t, config)
	copied := rest.AddUserAgent(rest.CopyConfig(config), "copy")
	copied.Timeout = time.Minute
	c.ask(t, copied)
	if n := c.ask(t, copied); n != 1 {
		t.Errorf("three clients have %d connections", n)
	}
	if n := c.ask(t, clienttest.Config(srv)); n != 2 {
		t.Errorf("with the client of another Config there are %d connections", n)
	}
}

func TestWhatAConfigSaysOfItsConnectionHolds(t *testing.T) {
	srv := newServer(t)
	creds := srv.Credentials()
	var dialled atomic.Int32
	for name, change := range map[string]func(*rest.Config){
		"client certificate": func(c *rest.Config) {
			c.BearerToken, c.CertData, c.KeyData = "", creds.ClientCertPEM, creds.ClientKeyPEM
		},
		"server name": func(c *rest.Config) { c.ServerName = "127.0.0.1" },
		"insecure":    func(c *rest.Config) { c.CAData, c.Insecure = nil, true },
		"HTTP/1.1":    func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} },
		"compression": func(c *rest.Config) { c.DisableCompression = true },
		"own dial": func(c *rest.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled.Add(1)
				return dial(ctx, network, address)
			}
		},
	} {
		config, c := clienttest.Config(srv), new(conns)
		c.ask(t, config)
		change(config)
		if n := c.ask(t, config); n != 2 {
			t.Errorf("%s: the client has the connection of one that is configured otherwise", name)
		}
	}
	if dialled.Load() != 1 {
		t.Errorf("dialled was %d times", dialled.Load())
	}
	config := clienttest.Config(srv)
	new(conns).ask(t, config)
	config.ServerName = "example.com"
	if _, err := newClientset(t, config).Discovery().ServerVersion(); err == nil {
		t.Error("the certificate is good for any name")
	}
}

func TestAClosedServerIsCollectedWhileItsClientsLive(t *testing.T) { // not parallel: it collects garbage
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{}), websites())
	if err != nil {
		t.Fatal(err)
	}
	config := clienttest.Config(srv)
	used := newClientset(t, config)
	if _, err := used.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	outer, inner := weak.Make(srv), weak.Make(srv.Server)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 0; outer.Value() != nil || inner.Value() != nil; i++ {
		if i == 200 {
			t.Fatalf("kept is the fixture: %t, the server: %t", outer.Value() != nil, inner.Value() != nil)
		}
		runtime.GC()
		time.Sleep(time.Millisecond) // let goroutines end
	}
	if _, err := config.Dial(t.Context(), "tcp", "localhost:443"); err == nil {
		t.Error("a closed server answers")
	}
	runtime.KeepAlive(config)
	runtime.KeepAlive(used)
}

// Clients, informers and the timers of the server work in a bubble, where an hour takes no time.
func TestInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{EventTTL: time.Hour}))
		set := newClientset(t, clienttest.Config(srv))
		begin := time.Now()
		for range 200 {
			if _, err := set.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the client has waited for %s", took)
		}

		factory := informers.NewSharedInformerFactory(set, 0)
		gone := make(chan time.Time, 1)
		_, err := factory.Core().V1().Events().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			DeleteFunc: func(any) { gone <- time.Now() },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer stop()
		factory.WaitForCacheSyncWithContext(ctx)
		begin = time.Now()
		_, err = set.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if after := (<-gone).Sub(begin); after < time.Hour || after > time.Hour+time.Minute {
			t.Errorf("the event went after %s", after)
		}
	})
}
