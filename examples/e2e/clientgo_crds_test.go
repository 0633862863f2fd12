package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	boatKind     = schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Boat"}
	boatResource = schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "boats"}
	crdResource  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// newBoat returns a boat as clients without its Go type have it.
func newBoat(name, color string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": color}}}
	u.SetGroupVersionKind(boatKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// The verbs of the dynamic client, and an informer, for objects of a definition that is created, changed and deleted.
func TestClientGoCRDs(t *testing.T) {
	crds := startCRDs(t)
	defineBoats(t, crds)
	all := dynamic.NewForConfigOrDie(crds.Config())
	boats := all.Resource(boatResource).Namespace(namespace)
	ctx := withCheckedLog(t)

	made, err := boats.Create(ctx, newBoat("a", "red"), metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	if sails, _, err := unstructured.NestedInt64(made.Object, "spec", "sails"); err != nil || sails != 1 {
		t.Errorf("it has %d sails, %v", sails, err)
	}
	if _, err := boats.Create(ctx, newBoat("b", "green"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.color: Unsupported value") {
		t.Errorf("a green one: %v", err)
	}
	if _, err := boats.Apply(ctx, "b", newBoat("b", "blue"), metav1.ApplyOptions{FieldManager: "e2e"}); err != nil {
		t.Fatal(err)
	}

	var events seen
	informer := dynamicinformer.NewDynamicSharedInformerFactory(all, 0).ForResource(boatResource).Informer()
	run(ctx, t, informer, &events)
	events.wants(t, "add a", "add b")
	made.SetLabels(map[string]string{"a": "b"})
	if _, err := boats.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := boats.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old one: %v, want a conflict", err)
	}
	if err := boats.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	events.wants(t, "add a", "add b", "update a", "delete b")

	// A new default in the schema is in the next event of an informer, because its watch ended with the old schema.
	schemaOf := []byte(`[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/flag", "value": {"type": "string", "default": "white"}}]`)
	if _, err := all.Resource(crdResource).Patch(ctx, "boats.sea.example.com", types.JSONPatchType, schemaOf, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the new default shows", func() bool {
		now, err := boats.Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		flag, _, _ := unstructured.NestedString(now.Object, "spec", "flag")
		return flag == "white"
	})
	if _, err := boats.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata": {"labels": {"c": "d"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the informer has seen the new default", func() bool {
		obj, ok, _ := informer.GetStore().GetByKey(namespace + "/a")
		if !ok {
			return false
		}
		flag, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "flag")
		return flag == "white"
	})
}

// An informer sees the deletion of the objects with their definition.
func TestClientGoDeleteCRDs(t *testing.T) {
	crds := startCRDs(t)
	defineBoats(t, crds)
	all := dynamic.NewForConfigOrDie(crds.Config())
	ctx := withLog(t, harness.NewLog()) // an informer for a kind that is gone logs errors repeatedly
	if _, err := all.Resource(boatResource).Namespace(namespace).Create(ctx, newBoat("a", "red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var events seen
	informer := dynamicinformer.NewFilteredDynamicInformer(all, boatResource, namespace, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, informer, &events)
	events.wants(t, "add a")
	if err := all.Resource(crdResource).Delete(ctx, "boats.sea.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	events.wants(t, "add a", "delete a")
	crds.Kubectl("wait", "--for=delete", "--timeout=60s", "crd/boats.sea.example.com").OK()
}

// sailor sets the status of boats according to their spec, without their Go type.
type sailor struct{ client.Client }

func (s sailor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	boat := &unstructured.Unstructured{}
	boat.SetGroupVersionKind(boatKind)
	if err := s.Get(ctx, req.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	want, _, _ := unstructured.NestedInt64(boat.Object, "spec", "sails")
	if got, found, _ := unstructured.NestedInt64(boat.Object, "status", "sails"); found && got == want {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(boat.Object, want, "status", "sails"); err != nil {
		return ctrl.Result{}, err
	}
	err := s.Status().Update(ctx, boat)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 1}, nil
	}
	return ctrl.Result{}, err
}

// A manager whose client and cache have no Go types for the objects.
func TestControllerRuntimeCRDs(t *testing.T) {
	crds := startCRDs(t)
	defineBoats(t, crds)
	log := harness.NewLog()
	ctx, cancel := context.WithCancel(withLog(t, log))
	mgr, err := ctrl.NewManager(crds.Config(), ctrl.Options{
		Logger: log.Logger(), BaseContext: func() context.Context { return ctx }, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	again := true
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(boatKind)
	err = ctrl.NewControllerManagedBy(mgr).For(of).WithOptions(controller.Options{SkipNameValidation: &again}).
		Complete(reconcile.Reconciler(sailor{mgr.GetClient()}))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		for _, line := range log.Errors() {
			t.Errorf("the manager logged an error: %s", line)
		}
	})
	c, err := client.New(crds.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := c.Create(ctx, newBoat(name, "red")); err != nil {
			t.Fatal(err)
		}
	}
	sails := func(want int64) {
		t.Helper()
		harness.Eventually(t, "the status of all is what the spec says", func() bool {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(boatKind.GroupVersion().WithKind("BoatList"))
			if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"spec.color": "red"}); err != nil || len(list.Items) != 3 {
				t.Fatalf("%d boats, %v", len(list.Items), err)
			}
			for _, boat := range list.Items {
				if got, _, _ := unstructured.NestedInt64(boat.Object, "status", "sails"); got != want {
					return false
				}
			}
			return true
		})
	}
	sails(1)
	for _, name := range []string{"a", "b", "c"} {
		if err := c.Patch(ctx, newBoat(name, "red"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sails":7}}`))); err != nil {
			t.Fatal(err)
		}
	}
	sails(7)
}
