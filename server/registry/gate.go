package registry

import (
	"context"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gate has admission judge what is asked of a resource that no Registry serves, or of a subresource: each method
// puts it in front of one capability, and leaves a missing one (nil) missing. A Registry and its views have admission
// judge their writes themselves and need no Gate.
//
// What admission is shown differs from a Registry's writes in two points: nothing is known of the object that a
// Delete is for, so Old is nil, and a DeleteCollection is one request without a name.
type Gate struct {
	Admission admission.Source // nil accepts all
	// Kind is that of the objects, in the version in which the capabilities get them.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
}

// Creater puts the gate before c.
func (g Gate) Creater(c Creater) Creater {
	if c == nil {
		return nil
	}
	return gatedCreater{g, c}
}

// Updater puts the gate before u: it judges every new state that is made.
func (g Gate) Updater(u Updater) Updater {
	if u == nil {
		return nil
	}
	return gatedUpdater{g, u}
}

// Deleter puts the gate before d.
func (g Gate) Deleter(d Deleter) Deleter {
	if d == nil {
		return nil
	}
	return gatedDeleter{g, d}
}

// CollectionDeleter puts the gate before d.
func (g Gate) CollectionDeleter(d CollectionDeleter) CollectionDeleter {
	if d == nil {
		return nil
	}
	return gatedCollectionDeleter{g, d}
}

// Connecter puts the gate before c.
func (g Gate) Connecter(c Connecter) Connecter {
	if c == nil {
		return nil
	}
	return gatedConnecter{g, c}
}

// admit asks the mutators, which may change obj, and then shows the validators copies.
func (g Gate) admit(ctx context.Context, op admission.Operation, name string, obj, old, opts runtime.Object, dryRun []string) error {
	chain := admission.CurrentOf(g.Admission)
	if chain.IsZero() {
		return nil
	}
	req := &admission.Request{
		Operation: op, Kind: g.Kind, Resource: g.Resource, Subresource: g.Subresource, Namespace: NamespaceFrom(ctx), Name: name,
		Object: obj, Old: old, Options: opts, DryRun: isDryRun(dryRun), User: authn.UserFrom(ctx),
	}
	if err := chain.Mutate(ctx, req); err != nil {
		return refused(err, g.Resource.GroupResource(), name)
	}
	shown := *req
	if obj != nil {
		shown.Object = obj.DeepCopyObject()
	}
	if old != nil {
		shown.Old = old.DeepCopyObject()
	}
	return refused(chain.Validate(ctx, &shown), g.Resource.GroupResource(), name)
}

// refused makes the error of an admission plug-in a StatusError: any plain error is a Forbidden.
func refused(err error, resource schema.GroupResource, name string) error {
	if err == nil || isStatus(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if name == "" {
		name = "Unknown"
	}
	return apierrors.NewForbidden(resource, name, err)
}

type gatedCreater struct {
	gate Gate
	next Creater
}

func (c gatedCreater) Create(ctx context.Context, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	name := ""
	if m, ok := obj.(metav1.Object); ok {
		name = m.GetName()
	}
	if err := c.gate.admit(ctx, admission.Create, name, obj, nil, opts, opts.DryRun); err != nil {
		return nil, err
	}
	return c.next.Create(ctx, obj, opts)
}

type gatedUpdater struct {
	gate Gate
	next Updater
}

func (u gatedUpdater) Update(ctx context.Context, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	judged := func(inner context.Context, current runtime.Object) (runtime.Object, error) {
		inner, end := context.WithCancel(inner) // which need not be one of ctx
		context.AfterFunc(ctx, end)
		ctx := createOnUpdateDone(inner)
		op, old := admission.Create, runtime.Object(nil)
		var options runtime.Object = creating(opts)
		if current != nil {
			op, old, options = admission.Update, current.DeepCopyObject(), opts
		}
		obj, err := update(ctx, current)
		if err != nil {
			return nil, err
		}
		return obj, u.gate.admit(ctx, op, name, obj, old, options, opts.DryRun)
	}
	return u.next.Update(ctx, name, judged, opts)
}

type gatedDeleter struct {
	gate Gate
	next Deleter
}

func (d gatedDeleter) Delete(ctx context.Context, name string, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := d.gate.admit(ctx, admission.Delete, name, nil, nil, opts, opts.DryRun); err != nil {
		return nil, false, err
	}
	return d.next.Delete(ctx, name, opts)
}

func (d gatedDeleter) ReturnsDeleted() bool {
	r, ok := d.next.(DeletedReturner)
	return ok && r.ReturnsDeleted()
}

type gatedCollectionDeleter struct {
	gate Gate
	next CollectionDeleter
}

func (d gatedCollectionDeleter) DeleteCollection(ctx context.Context, opts *metav1.DeleteOptions, list *metav1.ListOptions) (runtime.Object, error) {
	if err := d.gate.admit(ctx, admission.Delete, "", nil, nil, opts, opts.DryRun); err != nil {
		return nil, err
	}
	return d.next.DeleteCollection(ctx, opts, list)
}

type gatedConnecter struct {
	gate Gate
	next Connecter
}

func (c gatedConnecter) ConnectMethods() []string { return c.next.ConnectMethods() }

func (c gatedConnecter) Connect(ctx context.Context, name, subpath string, r *http.Request) (http.Handler, error) {
	if err := c.gate.admit(ctx, admission.Connect, name, nil, nil, nil, nil); err != nil {
		return nil, err
	}
	return c.next.Connect(ctx, name, subpath, r)
}
