package website

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// controller-gen would generate these functions.

// DeepCopyInto copies w into out.
func (w *Website) DeepCopyInto(out *Website) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Replicas != nil {
		out.Spec.Replicas = new(*w.Spec.Replicas)
	}
	out.Spec.Pages = maps.Clone(w.Spec.Pages)
	out.Spec.Expires = w.Spec.Expires.DeepCopy()
	if w.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(w.Status.Conditions))
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
		}
	}
}

// DeepCopy returns a copy.
func (w *Website) DeepCopy() *Website {
	out := new(Website)
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (w *Website) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	out := &WebsiteList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Website, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

// DeepCopyInto copies d into out.
func (d *Domain) DeepCopyInto(out *Domain) {
	*out = *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject implements runtime.Object.
func (d *Domain) DeepCopyObject() runtime.Object {
	out := new(Domain)
	d.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *DomainList) DeepCopyObject() runtime.Object {
	out := &DomainList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Domain, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
