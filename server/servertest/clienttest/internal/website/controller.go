package website

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Finalizer holds a website until its domain is free.
const Finalizer = "web.example.com/domain"

// These are the fields by which the cache indexes websites.
const (
	secretField = "spec.secretName"
	domainField = "spec.domain"
)

// Reconciler reconciles websites.
type Reconciler struct {
	client.Client
	// Recorder records events of websites.
	Recorder events.EventRecorder
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	for field, value := range map[string]func(*Website) string{
		secretField: func(w *Website) string { return w.Spec.SecretName },
		domainField: func(w *Website) string { return w.Spec.Domain },
	} {
		err := mgr.GetFieldIndexer().IndexField(ctx, &Website{}, field, func(obj client.Object) []string {
			if v := value(obj.(*Website)); v != "" {
				return []string{v}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, r.all(secretField)).
		Watches(&Domain{}, r.all(domainField)).
		WithOptions(o).
		Complete(r)
}

// all returns a handler that requests every website which names the object in a field. If the object has a namespace, only
// websites of that namespace are requested.
func (r *Reconciler) all(field string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		var list WebsiteList
		if err := r.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{field: obj.GetName()}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "websites are not told of a change", "field", field, "name", obj.GetName())
			return nil
		}
		var out []ctrl.Request
		for i := range list.Items {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := new(Website)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	again, err := r.reconcile(ctx, w)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // the cache is outdated: no error to report
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil // the website will be deleted with its namespace
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// reconcile takes the next steps for one website. It returns when to reconcile again without an event; 0 means never.
func (r *Reconciler) reconcile(ctx context.Context, w *Website) (time.Duration, error) {
	switch {
	case w.DeletionTimestamp != nil:
		return 0, r.finalize(ctx, w)
	case w.Spec.Paused:
		return 0, nil
	}
	var again time.Duration
	if w.Spec.Expires != nil {
		if again = time.Until(w.Spec.Expires.Time); again <= 0 {
			return 0, client.IgnoreNotFound(r.Delete(ctx, w, client.Preconditions{UID: &w.UID}))
		}
	}
	if controllerutil.AddFinalizer(w, Finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return 0, err
		}
	}
	if err := r.releaseDomains(ctx, w, w.Spec.Domain); err != nil {
		return 0, err
	}
	if mine, err := r.claimDomain(ctx, w); err != nil {
		return 0, err
	} else if !mine {
		return again, r.notReady(ctx, w, corev1.EventTypeWarning, ReasonDomainTaken, fmt.Sprintf("the domain %s is another website's", w.Spec.Domain))
	}
	secret := new(corev1.Secret)
	if name := w.Spec.SecretName; name != "" {
		err := r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			return again, r.notReady(ctx, w, corev1.EventTypeWarning, ReasonSecretMissing, fmt.Sprintf("there is no secret %s", name))
		}
		if err != nil {
			return 0, err
		}
	}
	deployment, err := r.children(ctx, w, secret)
	if err != nil {
		return 0, err
	}
	return again, r.report(ctx, w, deployment)
}

// finalize removes the finalizer of a deleted website when its domain is free.
func (r *Reconciler) finalize(ctx context.Context, w *Website) error {
	if !controllerutil.ContainsFinalizer(w, Finalizer) {
		return nil
	}
	if err := r.releaseDomains(ctx, w, ""); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(w, Finalizer)
	return client.IgnoreNotFound(r.Update(ctx, w))
}

// siteLabel is a label of a Domain: the UID of its website.
const siteLabel = "web.example.com/website-uid"

// releaseDomains deletes all domains of a website except one.
func (r *Reconciler) releaseDomains(ctx context.Context, w *Website, but string) error {
	var list DomainList
	if err := r.List(ctx, &list, client.MatchingLabels{siteLabel: string(w.UID)}); err != nil {
		return err
	}
	for i := range list.Items {
		if d := &list.Items[i]; d.Name != but {
			if err := r.Delete(ctx, d, client.Preconditions{UID: &d.UID}); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// claimDomain tries to get the domain of a website, and reports whether the website has it.
func (r *Reconciler) claimDomain(ctx context.Context, w *Website) (bool, error) {
	if w.Spec.Domain == "" {
		return true, nil
	}
	d := new(Domain)
	err := r.Get(ctx, client.ObjectKey{Name: w.Spec.Domain}, d)
	if !apierrors.IsNotFound(err) {
		return err == nil && d.Labels[siteLabel] == string(w.UID), err
	}
	d = &Domain{
		ObjectMeta: metav1.ObjectMeta{Name: w.Spec.Domain, Labels: map[string]string{siteLabel: string(w.UID)}},
		Spec:       DomainSpec{Namespace: w.Namespace, Website: w.Name},
	}
	return true, r.Create(ctx, d)
}
