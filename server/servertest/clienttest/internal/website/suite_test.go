package website_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// testEnv serves the whole suite. Each case has its own namespace in it, and its own manager, which is restricted to the
// namespace.
var testEnv = &clienttest.Environment{
	Scheme: schemeOf(clientScheme),
	Types:  servertest.Types{ClusterScoped: []string{"Domain"}},
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // each manager has a logger of its own
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the one that logs; the other one delays by a clock of the process, also in bubbles
	// Cases mostly wait for caches, which managers poll every 100 ms. The flag -parallel has precedence.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	if _, err := testEnv.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := testEnv.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func clientScheme(s *runtime.Scheme) error {
	return errors.Join(scheme.AddToScheme(s), website.AddToScheme(s))
}

func schemeOf(add func(*runtime.Scheme) error) *runtime.Scheme {
	s := runtime.NewScheme()
	if err := add(s); err != nil {
		panic(err) // no test could run
	}
	return s
}

// suite is one case: a namespace, and a client without a cache.
type suite struct {
	client.Client
	t      *testing.T
	ctx    context.Context
	srv    *servertest.Server
	config *rest.Config
	ns     string
	pause  time.Duration // time between two checks of a wait
}

// in returns a case in the common Environment, in parallel with others.
func in(t *testing.T) *suite {
	t.Helper()
	t.Parallel()
	return at(t, testEnv.Server, testEnv.Config)
}

// at returns a case that uses a server.
func at(t *testing.T, srv *servertest.Server, config *rest.Config) *suite {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent = t.Name() // to distinguish the requests of the cases
	c, err := client.New(config, client.Options{Scheme: testEnv.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{Client: c, t: t, ctx: t.Context(), srv: srv, config: config, pause: 2 * time.Millisecond}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}}
	s.create(ns)
	s.ns = ns.Name
	return s
}

// log stores the errors that a manager logs.
type log struct {
	mu     sync.Mutex // guards below
	errors []string
}

func (l *log) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errors = append(l.errors, prefix+" "+args)
	}, funcr.Options{Verbosity: -1}) // errors have no level
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors
}

// run runs a manager with the controller until the case ends or stop is called. It must not log errors.
func (s *suite) run(options ...func(*manager.Options)) (stop func()) {
	s.t.Helper()
	l, stop := s.runLogged(options...)
	s.t.Cleanup(func() {
		stop()
		for _, line := range l.all() {
			if !slices.ContainsFunc(endings(), func(s string) bool { return strings.Contains(line, s) }) {
				s.t.Errorf("the manager reported an error: %s", line)
			}
		}
	})
	return stop
}

// endings returns errors that a manager may log when it is stopped during its work, or when its namespace is deleted.
func endings() []string {
	return []string{context.Canceled.Error(), "leader election lost", "Server rejected event"}
}

// runLogged is run for a manager that may log errors.
func (s *suite) runLogged(options ...func(*manager.Options)) (l *log, stop func()) {
	s.t.Helper()
	l = new(log)
	o := manager.Options{
		Scheme: testEnv.Scheme, Logger: l.logger(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.ns: {}}},
	}
	for _, set := range options {
		set(&o)
	}
	mgr, err := manager.New(s.config, o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	r := &website.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("websites")}
	// The process has a controller of this name for each case.
	if err := r.Setup(ctx, mgr, controller.Options{SkipNameValidation: new(true)}); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the manager ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return l, stop
}

// site returns a website with one server.
func (s *suite) site(name string) *website.Website {
	return &website.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec:       website.WebsiteSpec{Image: "web:1", Pages: map[string]string{"index.html": "hello"}},
	}
}

func (s *suite) create(obj client.Object) {
	s.t.Helper()
	if err := s.Create(s.ctx, obj); err != nil {
		s.t.Fatal(err)
	}
}

// get reads an object of the case; ok is false if there is none.
func (s *suite) get(obj client.Object, name string) (ok bool) {
	s.t.Helper()
	key := client.ObjectKey{Namespace: s.ns, Name: name}
	if _, cluster := obj.(*website.Domain); cluster {
		key.Namespace = ""
	}
	err := s.Get(s.ctx, key, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	return err == nil
}

// change applies do to an object and writes it, and repeats that after conflicts.
func (s *suite) change(obj client.Object, do func()) {
	s.t.Helper()
	s.write(obj, do, func() error { return s.Update(s.ctx, obj) })
}

// changeStatus is change of the status.
func (s *suite) changeStatus(obj client.Object, do func()) {
	s.t.Helper()
	s.write(obj, do, func() error { return s.Status().Update(s.ctx, obj) })
}

func (s *suite) write(obj client.Object, do func(), write func() error) {
	s.t.Helper()
	for range 100 {
		if err := s.Get(s.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			s.t.Fatal(err)
		}
		do()
		if err := write(); err == nil {
			return
		} else if !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
	s.t.Fatalf("%s is changed all the time", obj.GetName())
}

// answer acts as the cluster for the Deployment of a site: it makes all replicas ready.
func (s *suite) answer(name string) {
	s.t.Helper()
	s.until("the deployment of "+name+" exists", func() bool { return s.get(&appsv1.Deployment{}, name) })
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	s.changeStatus(d, func() { d.Status.Replicas, d.Status.ReadyReplicas = *d.Spec.Replicas, *d.Spec.Replicas })
}

// untilReady waits until the condition of a site has a reason for the newest spec, and returns the site.
func (s *suite) untilReady(name, reason string) *website.Website {
	s.t.Helper()
	w := new(website.Website)
	s.until(fmt.Sprintf("%s is %s", name, reason), func() bool {
		w = new(website.Website)
		return s.get(w, name) && len(w.Status.Conditions) == 1 && w.Status.Conditions[0].Reason == reason &&
			w.Status.Conditions[0].ObservedGeneration == w.Generation && w.Status.ObservedGeneration == w.Generation
	})
	return w
}

// until waits until is returns true, and fails after a timeout.
func (s *suite) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			s.t.Fatalf("never: %s", what)
		}
		time.Sleep(s.pause)
	}
}
