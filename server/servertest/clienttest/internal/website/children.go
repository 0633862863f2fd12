package website

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// contentAnnotation is an annotation of the Pod template with a hash of the content that Pods read at their start. A change of
// the content changes it, so that the Pods are replaced.
const contentAnnotation = "web.example.com/content"

// children creates or updates the objects that a website owns, and returns its Deployment.
func (r *Reconciler) children(ctx context.Context, w *Website, secret *corev1.Secret) (*appsv1.Deployment, error) {
	where := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	pages := &corev1.ConfigMap{ObjectMeta: where}
	if err := r.make(ctx, w, pages, func() { pages.Data = maps.Clone(w.Spec.Pages) }); err != nil {
		return nil, err
	}
	content, err := contentHash(w.Spec.Pages, secret.Data)
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: where}
	if err := r.make(ctx, w, deployment, func() { fillDeployment(deployment, w, content) }); err != nil {
		return nil, err
	}
	service := &corev1.Service{ObjectMeta: where}
	return deployment, r.make(ctx, w, service, func() {
		service.Spec.Selector = podLabels(w)
		if len(service.Spec.Ports) != 1 { // a port keeps what the cluster adds to it
			service.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		service.Spec.Ports[0].Port, service.Spec.Ports[0].TargetPort = 80, intstr.FromInt32(8080)
	})
}

// make creates an object that a website owns, or updates it to what fill makes of it.
func (r *Reconciler) make(ctx context.Context, w *Website, obj client.Object, fill func()) error {
	// An update reports a conflict. A merge patch computed from an outdated cache would undo changes of others in lists.
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, obj, func() error {
		fill()
		return controllerutil.SetControllerReference(w, obj, r.Scheme())
	})
	if err == nil && done == controllerutil.OperationResultCreated {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		if gvk, err := r.GroupVersionKindFor(obj); err == nil {
			kind = gvk.Kind
		}
		r.Recorder.Eventf(w, obj, corev1.EventTypeNormal, "Created", "Create", "%s %s was created", kind, obj.GetName())
	}
	return err
}

func podLabels(w *Website) map[string]string {
	return map[string]string{"web.example.com/site": w.Name}
}

// fillDeployment sets the fields of a Deployment that a website determines, and keeps the other fields.
func fillDeployment(d *appsv1.Deployment, w *Website, content string) {
	d.Spec.Replicas = new(int32(1))
	if w.Spec.Replicas != nil {
		d.Spec.Replicas = new(*w.Spec.Replicas)
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: podLabels(w)}
	template := &d.Spec.Template
	template.Labels = podLabels(w)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[contentAnnotation] = content
	i := slices.IndexFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == "web" })
	if i < 0 {
		i = len(template.Spec.Containers)
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "web"})
	}
	template.Spec.Containers[i].Image = w.Spec.Image
}

func contentHash(pages map[string]string, secret map[string][]byte) (string, error) {
	text, err := json.Marshal([]any{pages, secret})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// report writes the status of a website that has everything.
func (r *Reconciler) report(ctx context.Context, w *Website, d *appsv1.Deployment) error {
	ready := d.Status.ReadyReplicas
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionTrue, Reason: ReasonServing, Message: fmt.Sprintf("%d of %d servers answer", ready, *d.Spec.Replicas)}
	if ready < *d.Spec.Replicas {
		c.Status, c.Reason = metav1.ConditionFalse, ReasonStarting
	}
	return r.writeStatus(ctx, w, ready, c)
}

// notReady writes the status of a website that waits for something, and records an event once.
func (r *Reconciler) notReady(ctx context.Context, w *Website, eventType, reason, message string) error {
	before := meta.FindStatusCondition(w.Status.Conditions, Ready)
	if err := r.writeStatus(ctx, w, w.Status.ReadyReplicas, metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: reason, Message: message}); err != nil {
		return err
	}
	if before == nil || before.Reason != reason {
		r.Recorder.Eventf(w, nil, eventType, reason, "Wait", "%s", message)
	}
	return nil
}

// writeStatus writes the status if it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, w *Website, ready int32, c metav1.Condition) error {
	was := w.DeepCopy()
	w.Status.ObservedGeneration, w.Status.ReadyReplicas = w.Generation, ready
	c.ObservedGeneration = w.Generation
	meta.SetStatusCondition(&w.Status.Conditions, c)
	if equality.Semantic.DeepEqual(was.Status, w.Status) {
		return nil
	}
	return r.Status().Update(ctx, w)
}
