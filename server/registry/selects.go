package registry

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Selects returns what says which objects the selectors of a list choose, for a Lister that computes them: by their
// labels, and by the fields metadata.name and metadata.namespace. A selector that cannot be read, or that names another
// field, is a BadRequest; requests by HTTP have none.
func Selects(opts *metav1.ListOptions) (func(m metav1.Object) bool, error) {
	byLabels, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range byFields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	return func(m metav1.Object) bool {
		return byLabels.Matches(labels.Set(m.GetLabels())) &&
			byFields.Matches(fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()})
	}, nil
}
