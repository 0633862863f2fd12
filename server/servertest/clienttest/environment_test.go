package clienttest_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// start starts an Environment that ends with the test.
func start(t *testing.T, e *clienttest.Environment) *clienttest.Environment {
	t.Helper()
	if _, err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func newClient(t *testing.T, c *rest.Config, s *runtime.Scheme) client.Client {
	t.Helper()
	out, err := client.New(c, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func websiteScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), website.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheZeroEnvironmentServesTheKindsOfClientGo(t *testing.T) {
	t.Parallel()
	e := start(t, &clienttest.Environment{})
	if e.Scheme != scheme.Scheme {
		t.Error("the Scheme is not client-go's")
	}
	c := newClient(t, e.Config, e.Scheme)
	for _, obj := range []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Errorf("%T: %v", obj, err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	pod.Status.Phase = corev1.PodRunning
	if err := c.Status().Patch(t.Context(), pod, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Running"}}`))); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %s, %v", pod.Status.Phase, err)
	}
	missing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "missing", Name: "p"}}
	if err := c.Create(t.Context(), missing); !apierrors.IsNotFound(err) {
		t.Errorf("a pod in a namespace that is missing: %v", err)
	}
}

func TestAnEnvironmentMayBeStartedAgain(t *testing.T) {
	t.Parallel()
	e := &clienttest.Environment{}
	if err := e.Stop(); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
	if _, err := e.AddUser(clienttest.User{Name: "u"}, nil); err == nil || !strings.Contains(err.Error(), "Start it first") {
		t.Errorf("AddUser before Start: %v", err)
	}
	first, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	if first != e.Config {
		t.Error("Start returns another Config than it sets")
	}
	if err := newClient(t, first, e.Scheme).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "Stop it first") {
		t.Errorf("Start of what runs: %v", err)
	}
	for range 2 {
		if err := e.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if e.Server != nil {
		t.Error("a stopped Environment has a server")
	}
	if _, err := first.Dial(t.Context(), "tcp", ""); err == nil {
		t.Error("a stopped Environment answers")
	}
	start(t, e)
	var left corev1.ConfigMapList
	if err := newClient(t, e.Config, e.Scheme).List(t.Context(), &left); err != nil || len(left.Items) != 0 {
		t.Errorf("there are %v, %v", left.Items, err)
	}
}

func TestMistakesOfAnEnvironment(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*clienttest.Environment{
		"leave Types.Scheme":         {Types: servertest.Types{Scheme: runtime.NewScheme()}},
		"and Types.AddToScheme":      {Types: servertest.Types{AddToScheme: website.AddToScheme}},
		`names the kind "Domian"`:    {Types: servertest.Types{ClusterScoped: []string{"Domian"}}},
		"clienttest: Start: ":        {Options: server.Options{Limits: server.Limits{CacheWindow: -1}}},
		"the registrar is not there": {Parts: []server.Extension{server.ExtensionFunc(func(*server.Host) error { return errors.New("the registrar is not there") })}},
	} {
		if c, err := e.Start(); err == nil || !strings.Contains(err.Error(), want) || c != nil || e.Server != nil {
			t.Errorf("Start: %v, %v; want an error with %q", c, err, want)
		}
	}
	e := start(t, &clienttest.Environment{})
	if _, err := e.AddUser(clienttest.User{}, nil); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("AddUser: %v", err)
	}
}

func TestKubeConfigIsForOtherProcesses(t *testing.T) {
	t.Parallel()
	e := start(t, &clienttest.Environment{Options: server.Options{Policy: server.Policy{Authorizer: only("reader", "get")}}})
	user, err := e.AddUser(clienttest.User{Name: "reader"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	users, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"admin": e.KubeConfig, "reader": users} {
		c, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		if c.Dial != nil || !strings.HasPrefix(c.Host, "https://127.0.0.1:") || c.Host != e.Config.Host {
			t.Errorf("%s: the address is %s", name, c.Host)
		}
		set := newClientset(t, c)
		if _, err := set.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := set.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); apierrors.IsForbidden(err) != (name == "reader") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// only returns an authorizer that allows one verb to a user, and everything to administrators.
func only(user, verb string) authz.Authorizer {
	return authz.Union(authz.Masters(), authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.Name == user && a.Verb == verb {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	}))
}

func TestUsers(t *testing.T) {
	t.Parallel()
	e := start(t, &clienttest.Environment{})
	rec := e.Server.Record(servertest.Match{Resources: []string{"namespaces"}, Verbs: []string{"list"}})
	wrapped := 0
	base := &rest.Config{UserAgent: "nobody", Host: "https://elsewhere", WrapTransport: func(rt http.RoundTripper) http.RoundTripper {
		wrapped++
		return rt
	}}
	nobody, err := e.AddUser(clienttest.User{Name: "nobody"}, base)
	if err != nil {
		t.Fatal(err)
	}
	if base.BearerToken != "" || base.Host != "https://elsewhere" {
		t.Error("the base has been changed")
	}
	admin, err := e.AddUser(clienttest.User{Name: "root", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClientset(t, nobody.Config()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := newClientset(t, admin.Config()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("root: %v", err)
	}
	did := rec.Requests()
	if len(did) != 2 || did[0].User != "nobody" || did[0].UserAgent != "nobody" || did[1].User != "root" {
		t.Errorf("requested was %+v", did)
	}
	if wrapped == 0 {
		t.Error("what the base wraps the transport in is not there")
	}
	for name, c := range map[string]*rest.Config{"nobody": nobody.Config(), "root": admin.Config(), "Config": e.Config} {
		if c.QPS != -1 {
			t.Errorf("%s throttles itself at %v requests a second", name, c.QPS)
		}
	}
	slow, err := e.AddUser(clienttest.User{Name: "slow"}, &rest.Config{QPS: 7})
	if err != nil {
		t.Fatal(err)
	}
	if first, second := slow.Config(), slow.Config(); first.QPS != 7 || first != second {
		t.Errorf("Config is %+v, and then %+v", first, second)
	}
}

func TestConfigOfAUser(t *testing.T) {
	srv := newServer(t)
	c := clienttest.ConfigOf(srv, "guessed")
	if _, err := newClientset(t, c).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token that nobody has: %v", err)
	}
}

func TestAnExistingCluster(t *testing.T) { // not parallel: it sets the environment
	cluster := start(t, &clienttest.Environment{})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, cluster.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	t.Setenv("USE_EXISTING_CLUSTER", "True")
	e := start(t, &clienttest.Environment{})
	if e.Server != nil || e.Config.Host != cluster.Config.Host || len(e.KubeConfig) == 0 {
		t.Errorf("the Environment is %+v", e)
	}
	if _, err := newClientset(t, e.Config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := e.AddUser(clienttest.User{Name: "u"}, nil); err == nil || !strings.Contains(err.Error(), "existing cluster") {
		t.Errorf("AddUser: %v", err)
	}
	own := &rest.Config{Host: "https://own"}
	if e := start(t, &clienttest.Environment{Config: own}); e.Config != own {
		t.Errorf("Config is %v", e.Config)
	}
	if e := start(t, &clienttest.Environment{UseExistingCluster: new(false)}); e.Server == nil {
		t.Error("UseExistingCluster is ignored")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := (&clienttest.Environment{}).Start(); err == nil || !strings.Contains(err.Error(), "existing cluster") {
		t.Errorf("Start: %v", err)
	}
}

// owned returns an object whose owner does not exist.
func owned(name string) *corev1.ConfigMap {
	m := configMap(name)
	m.Namespace = "doomed"
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "1"}}
	return m
}

func TestControllers(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		e := start(t, &clienttest.Environment{NoControllers: without})
		c := newClient(t, e.Config, e.Scheme)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
		for _, obj := range []client.Object{ns, owned("a")} {
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		if !without {
			until(t, "the garbage collector has taken what has no owner", func() bool {
				return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(owned("a")), &corev1.ConfigMap{}))
			})
		}
		if err := c.Delete(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		if !without {
			until(t, "the namespace is gone", func() bool {
				return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
			})
			continue
		}
		if err := c.Create(t.Context(), owned("b")); !apierrors.IsForbidden(err) {
			t.Errorf("something is made in a namespace that is deleted: %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("the namespace is %s, %v", ns.Status.Phase, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(owned("a")), &corev1.ConfigMap{}); err != nil {
			t.Errorf("somebody has collected garbage: %v", err)
		}
	}
}

// until waits until is returns true, and fails after a timeout.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestStopLeavesNothing(t *testing.T) { // not parallel: it looks at all goroutines
	before := goleak.IgnoreCurrent()
	e := &clienttest.Environment{Scheme: websiteScheme(t), Types: servertest.Types{ClusterScoped: []string{"Domain"}}}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(config, manager.Options{Scheme: e.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(t.Context(), &website.Website{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Error("the cache has not synced")
	}
	other, err := clientcmd.RESTConfigFromKubeConfig(e.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newClientset(t, other).CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{}) // by TCP
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	for range w.ResultChan() { // ends
		continue
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
