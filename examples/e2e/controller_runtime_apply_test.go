package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// direct returns a controller-runtime client without a cache, and a recorder of its requests.
func direct(t *testing.T, hello *harness.Server) (client.Client, *harness.Recorder) {
	t.Helper()
	config, sent := hello.Config(), new(harness.Recorder)
	sent.Record(config)
	c, err := client.New(config, client.Options{Scheme: clientScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c, sent
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// inDefault is a widget to be created in the namespace of the tests.
func inDefault(name string, size int32) *Widget {
	w := newWidget(name, size)
	w.Namespace = namespace
	return w
}

// configuration returns a configuration for widget alpha with fields of spec and status; either may be nil.
func configuration(spec, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "alpha", "namespace": namespace},
	}}
	for field, value := range map[string]map[string]any{"spec": spec, "status": status} {
		if value != nil {
			u.Object[field] = value
		}
	}
	return u
}

func TestControllerRuntimeApply(t *testing.T) {
	hello := start(t)
	c, _ := direct(t, hello)
	ctx := withCheckedLog(t)
	apply := func(u *unstructured.Unstructured, opts ...client.ApplyOption) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	}
	mine := client.FieldOwner("mine")
	first := configuration(map[string]any{"size": int64(1), "color": "red"}, nil)
	if err := apply(first, mine); err != nil || first.GetUID() == "" {
		t.Fatalf("applied %v, %v", first, err)
	}
	wantManagers(t, first, `mine Apply {"f:spec":{"f:color":{},"f:size":{}}}`)
	again := configuration(map[string]any{"size": int64(1), "color": "red"}, nil)
	if err := apply(again, mine); err != nil || again.GetResourceVersion() != first.GetResourceVersion() {
		t.Errorf("applied again %v, %v", again, err)
	}
	if err := apply(configuration(map[string]any{"size": int64(2)}, nil)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "fieldManager: Required value") {
		t.Errorf("without an owner: %v", err)
	}
	err := apply(configuration(map[string]any{"size": int64(2)}, nil), client.FieldOwner("theirs"))
	wantConflict(t, err, `Apply failed with 1 conflict: conflict with "mine": .spec.size`, `conflict with "mine"`, ".spec.size")
	forced := configuration(map[string]any{"size": int64(2)}, nil)
	if err := apply(forced, client.FieldOwner("theirs"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, forced, `mine Apply {"f:spec":{"f:color":{}}}`, `theirs Apply {"f:spec":{"f:size":{}}}`)
	dry := configuration(map[string]any{"size": int64(3)}, nil)
	if err := apply(dry, client.FieldOwner("theirs"), client.DryRunAll); err != nil || dry.GetGeneration() != forced.GetGeneration()+1 {
		t.Errorf("a dry run made %v, %v", dry, err)
	}

	status := configuration(nil, map[string]any{"ready": true})
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), mine); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, status, `mine Apply {"f:spec":{"f:color":{}}}`, `mine Apply/status {"f:status":{"f:ready":{}}}`, `theirs Apply {"f:spec":{"f:size":{}}}`)

	// The older form: a typed object as a patch. It includes the status, which the main resource ignores.
	typed := inDefault("alpha", 2)
	typed.APIVersion, typed.Kind = "example.com/v1", "Widget"
	old := client.Apply //nolint:staticcheck // deprecated, but most controllers use it
	if err := c.Patch(ctx, typed, old, client.FieldOwner("theirs")); err != nil || typed.Spec != (WidgetSpec{Size: 2, Color: "red"}) || !typed.Status.Ready {
		t.Errorf("applied %+v, %v", typed, err)
	}
	if typed.ResourceVersion != status.GetResourceVersion() {
		t.Errorf("applying the same made resourceVersion %s of %s", typed.ResourceVersion, status.GetResourceVersion())
	}
}

func TestControllerRuntimePatch(t *testing.T) {
	hello := start(t)
	c, sent := direct(t, hello)
	ctx, key := withCheckedLog(t), client.ObjectKey{Namespace: namespace, Name: "alpha"}
	if err := c.Create(ctx, inDefault("alpha", 1), client.FieldOwner("creator")); err != nil {
		t.Fatal(err)
	}
	get := func() *Widget {
		t.Helper()
		w := new(Widget)
		if err := c.Get(ctx, key, w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	changed := func(w *Widget, change func(*Widget)) *Widget {
		w = w.DeepCopyObject().(*Widget)
		change(w)
		return w
	}

	// Two patches of different fields of the same old version do not conflict.
	old := get()
	painted := changed(old, func(w *Widget) { w.Spec.Color = "red" })
	if err := c.Patch(ctx, painted, client.MergeFrom(old), client.FieldOwner("painter")); err != nil {
		t.Fatal(err)
	}
	labelled := changed(old, func(w *Widget) { w.Labels = map[string]string{"a": "b"} })
	if err := c.Patch(ctx, labelled, client.StrategicMergeFrom(old), client.FieldOwner("labeller")); err != nil {
		t.Fatal(err)
	}
	if labelled.Spec.Color != "red" || labelled.Labels["a"] != "b" || labelled.Generation != 2 {
		t.Errorf("patched to %+v", labelled)
	}
	wantManagers(t, asUnstructured(t, labelled, "example.com/v1"), `creator Update {"f:spec":{"f:size":{}}}`,
		`labeller Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`, `painter Update {"f:spec":{"f:color":{}}}`)

	// With an optimistic lock they conflict.
	for name, patch := range map[string]client.Patch{
		"merge":     client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}),
		"strategic": client.StrategicMergeFrom(old, client.MergeFromWithOptimisticLock{}),
	} {
		err := c.Patch(ctx, changed(old, func(w *Widget) { w.Spec.Size = 9 }), patch)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the object has been modified; please apply your changes to the latest version and try again") {
			t.Errorf("%s patch of an old version: %v, want a conflict", name, err)
		}
	}
	now := get()
	if err := c.Patch(ctx, changed(now, func(w *Widget) { w.Spec.Size = 2 }), client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{})); err != nil {
		t.Error(err)
	}

	// The status, and an empty patch, which is sent and changes nothing.
	now = get()
	ready := changed(now, func(w *Widget) { w.Status.Ready, w.Spec.Size = true, 7 })
	if err := c.Status().Patch(ctx, ready, client.MergeFrom(now), client.FieldOwner("controller")); err != nil || !ready.Status.Ready || ready.Spec.Size != 2 {
		t.Errorf("patched the status to %+v, %v", ready, err)
	}
	writes := sent.Count(isWrite)
	for _, patch := range []client.Patch{client.MergeFrom(ready), client.StrategicMergeFrom(ready), client.RawPatch("application/json-patch+json", []byte("[]"))} {
		same := changed(ready, func(*Widget) {})
		if err := c.Patch(ctx, same, patch); err != nil || same.ResourceVersion != ready.ResourceVersion {
			t.Errorf("an empty patch made %+v, %v", same, err)
		}
	}
	if n := sent.Count(isWrite) - writes; n != 3 {
		t.Errorf("%d patches were sent, want 3", n)
	}
}

// Neither the client nor the server writes an object that is already as wanted.
func TestControllerRuntimeWritesNothingInVain(t *testing.T) {
	hello := start(t)
	c, sent := direct(t, hello)
	ctx := withCheckedLog(t)
	for name, ensure := range map[string]func(*Widget, controllerutil.MutateFn) (controllerutil.OperationResult, error){
		"update": func(w *Widget, f controllerutil.MutateFn) (controllerutil.OperationResult, error) {
			return controllerutil.CreateOrUpdate(ctx, c, w, f)
		},
		"patch": func(w *Widget, f controllerutil.MutateFn) (controllerutil.OperationResult, error) {
			return controllerutil.CreateOrPatch(ctx, c, w, f)
		},
	} {
		var last *Widget
		for _, step := range []struct {
			size   int32
			want   controllerutil.OperationResult
			writes int
		}{
			{1, controllerutil.OperationResultCreated, 1},
			{1, controllerutil.OperationResultNone, 0},
			{2, controllerutil.OperationResultUpdated, 1},
			{2, controllerutil.OperationResultNone, 0},
		} {
			w, before := inDefault(name, 0), sent.Count(isWrite)
			got, err := ensure(w, func() error { w.Spec.Size = step.size; return nil })
			if err != nil || got != step.want || w.Spec.Size != step.size {
				t.Errorf("CreateOr%s to size %d is %s with %+v, %v; want %s", name, step.size, got, w, err, step.want)
			}
			if n := sent.Count(isWrite) - before; n != step.writes {
				t.Errorf("CreateOr%s to size %d sent %d writes, want %d", name, step.size, n, step.writes)
			}
			last = w
		}
		if last.Generation != 2 {
			t.Errorf("CreateOr%s twice made generation %d", name, last.Generation)
		}

		// An update without a change is sent, and changes nothing.
		same := last.DeepCopyObject().(*Widget)
		if err := c.Update(ctx, same); err != nil || same.ResourceVersion != last.ResourceVersion {
			t.Errorf("an update of nothing made %+v, %v", same, err)
		}
	}
}

// Client wrappers of controller-runtime: for dry runs, a field owner, and field validation.
func TestControllerRuntimeWrappedClients(t *testing.T) {
	hello := start(t)
	c, _ := direct(t, hello)
	ctx := withCheckedLog(t)
	dry, owned := client.NewDryRunClient(c), client.WithFieldOwner(c, "owner")

	w := inDefault("alpha", 1)
	if err := dry.Create(ctx, w); err != nil || w.UID == "" || w.ResourceVersion != "" {
		t.Errorf("a dry run created %+v, %v", w, err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
	w = inDefault("alpha", 1)
	if err := owned.Create(ctx, w); err != nil {
		t.Fatal(err)
	}
	w.Status.Ready = true
	if err := owned.Status().Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	w.Spec.Color = "red"
	if err := owned.Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	applied := configuration(map[string]any{"data": "x"}, nil)
	if err := owned.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied)); err != nil {
		t.Fatal(err)
	}
	wantManagers(t, applied, `owner Apply {"f:spec":{"f:data":{}}}`, `owner Update {"f:spec":{"f:color":{},"f:size":{}}}`, `owner Update/status {"f:status":{"f:ready":{}}}`)

	stored := new(Widget)
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), stored); err != nil {
		t.Fatal(err)
	}
	for what, write := range map[string]func(w *Widget) error{
		"update": func(w *Widget) error { w.Spec.Size = 9; return dry.Update(ctx, w) },
		"patch": func(w *Widget) error {
			w.Spec.Size = 9
			return dry.Patch(ctx, w, client.MergeFrom(stored))
		},
		"status": func(w *Widget) error { w.Status.Ready = false; return dry.Status().Update(ctx, w) },
		"apply": func(*Widget) error {
			return dry.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration(map[string]any{"replicas": int64(9)}, nil)), client.FieldOwner("dry"))
		},
		"delete": func(w *Widget) error { return dry.Delete(ctx, w) },
		"all":    func(*Widget) error { return dry.DeleteAllOf(ctx, &Widget{}, client.InNamespace(namespace)) },
	} {
		if err := write(stored.DeepCopyObject().(*Widget)); err != nil {
			t.Errorf("dry %s: %v", what, err)
		}
		now := new(Widget)
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), now); err != nil || now.ResourceVersion != stored.ResourceVersion {
			t.Errorf("a dry %s left %+v, %v", what, now, err)
		}
	}

	// With strict validation an unknown field is refused.
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	typo := func(name string) *unstructured.Unstructured {
		u := configuration(map[string]any{"sise": int64(1)}, nil)
		u.SetName(name)
		return u
	}
	const unknown = `strict decoding error: unknown field "spec.sise"`
	if err := strict.Create(ctx, typo("beta")); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), unknown) {
		t.Errorf("created strictly: %v", err)
	}
	if err := strict.Patch(ctx, typo("alpha"), client.Merge); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), unknown) {
		t.Errorf("patched strictly: %v", err)
	}
	lax := client.WithFieldValidation(c, metav1.FieldValidationIgnore)
	if err := lax.Create(ctx, typo("beta")); err != nil {
		t.Errorf("created laxly: %v", err)
	}
}

// applying is a reconciler that applies the wanted state each time without comparing, and reports the result.
type applying struct {
	client.Client
	seen chan<- [2]string // resourceVersions: in the cache, and after the apply
}

func (r applying) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := new(Widget)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status := configuration(nil, map[string]any{"ready": true, "selector": "widget=" + req.Name})
	err := r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("reconciler"), client.ForceOwnership)
	if err != nil {
		return ctrl.Result{}, err
	}
	select {
	case r.seen <- [2]string{w.ResourceVersion, status.GetResourceVersion()}:
	case <-ctx.Done():
	}
	return ctrl.Result{}, nil
}

// A controller that applies unconditionally stops, because an apply without a change causes no event.
func TestControllerRuntimeReconcileByApply(t *testing.T) {
	hello := start(t)
	seen := make(chan [2]string, 1000) // large enough that sends never block
	ctx, c := runManager(t, hello, func(c client.Client) reconcile.Reconciler { return applying{c, seen} })
	if err := c.Create(ctx, inDefault("alpha", 1)); err != nil {
		t.Fatal(err)
	}
	rest := func() string {
		t.Helper()
		version := ""
		harness.Eventually(t, "the reconciler has applied what was there", func() bool {
			select {
			case versions := <-seen:
				version = versions[1]
				return versions[0] == versions[1]
			default:
				return false
			}
		})
		return version
	}
	first := rest()
	w := new(Widget)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "alpha"}, w); err != nil || w.ResourceVersion != first || !w.Status.Ready {
		t.Fatalf("got %+v, %v; want resourceVersion %s", w, err, first)
	}
	w.Labels = map[string]string{"changed": "by-somebody"}
	if err := c.Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	if second := rest(); second != w.ResourceVersion {
		t.Errorf("the reconciler rests at resourceVersion %s, want that of the last change, %s", second, w.ResourceVersion)
	}
}
