package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	keelson "github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Shelf is wardrobe's kind as clients define it.
type (
	ShelfSpec struct {
		Slots    *int32    `json:"slots,omitempty"`
		Garments []Garment `json:"garments,omitempty"`
	}
	Garment struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
	ShelfStatus struct {
		Used int32 `json:"used,omitempty"`
	}
	Shelf     = keelson.Resource[ShelfSpec, ShelfStatus]
	ShelfList = keelson.List[Shelf]
)

const shelfFinalizer = "wardrobe.example.com/folder"

// shelfScheme knows shelves and the kinds of Kubernetes.
func shelfScheme() (*runtime.Scheme, error) {
	known := keelson.NewScheme()
	kind := schema.GroupVersionKind{Group: "wardrobe.example.com", Version: "v1", Kind: "Shelf"}
	if err := keelson.Register(known, kind, keelson.KindOptions[*Shelf]{}); err != nil {
		return nil, err
	}
	s := runtime.NewScheme()
	if err := clientscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, known.AddTo(s)
}

// folder is a typical controller. It holds shelves with a finalizer, owns a ConfigMap for each through an owner reference,
// reports in the status and by events, and leaves the deletion of owned objects to the garbage collector.
type folder struct {
	client.Client
	recorder events.EventRecorder
}

func (f folder) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := new(Shelf)
	if err := f.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := f.fold(ctx, s)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache is outdated
	}
	return ctrl.Result{}, err
}

func (f folder) fold(ctx context.Context, s *Shelf) error {
	if !s.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(s, shelfFinalizer) {
			return f.Update(ctx, s)
		}
		return nil
	}
	if controllerutil.AddFinalizer(s, shelfFinalizer) {
		return f.Update(ctx, s)
	}
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "list-of-" + s.Name, Namespace: s.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, f.Client, list, func() error {
		list.Data = map[string]string{"garments": listOf(s)}
		return controllerutil.SetControllerReference(s, list, f.Scheme())
	})
	if err != nil {
		return err
	}
	if used := int32(len(s.Spec.Garments)); s.Status.Used != used {
		s.Status.Used = used
		f.recorder.Eventf(s, list, corev1.EventTypeNormal, "Folded", "Fold", "%d garments are folded", used)
		return f.Status().Update(ctx, s)
	}
	return nil
}

// listOf returns the content of a shelf's ConfigMap.
func listOf(s *Shelf) string {
	var names []string
	for _, g := range s.Spec.Garments {
		names = append(names, g.Name)
	}
	return strings.Join(names, ",")
}

// folderEnv is the environment variable with the kubeconfig that makes a process run a folder instead of tests: see runFolder.
const folderEnv = "KEELSON_E2E_FOLDER"

// runFolder runs a manager with leader election until SIGTERM, and writes a line of JSON to stderr for each error it logs.
// It returns the exit code.
func runFolder(kubeconfig string) int {
	logger := logr.New(errorsOnly{funcr.NewJSON(func(line string) { fmt.Fprintln(os.Stderr, line) }, funcr.Options{}).GetSink()})
	ctrllog.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := startFolder(ctx, kubeconfig); err != nil {
		text, _ := json.Marshal(err.Error())
		fmt.Fprintf(os.Stderr, `{"msg":"the manager ended","error":%s}`+"\n", text)
		return 1
	}
	return 0
}

func startFolder(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme, err := shelfScheme()
	if err != nil {
		return err
	}
	lease, renew, retry := 5*time.Second, 4*time.Second, time.Second
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "folder.wardrobe.example.com", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
	})
	if err != nil {
		return err
	}
	f := folder{mgr.GetClient(), mgr.GetEventRecorder("folder")}
	if err := ctrl.NewControllerManagedBy(mgr).For(&Shelf{}).Owns(&corev1.ConfigMap{}).Named("folder").Complete(f); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// errorsOnly is a LogSink that drops everything except errors.
type errorsOnly struct{ logr.LogSink }

func (errorsOnly) Info(int, string, ...any) {}

func (e errorsOnly) WithName(name string) logr.LogSink {
	return errorsOnly{e.LogSink.WithName(name)}
}

func (e errorsOnly) WithValues(kv ...any) logr.LogSink {
	return errorsOnly{e.LogSink.WithValues(kv...)}
}
