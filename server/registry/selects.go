package registry

import (
	"github.com/keelson-dev/keelson/runtime/selector"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Selects returns a function that reports whether the selectors of a list select an object. It is for a Lister that computes its
// objects. The function checks labels and the fields metadata.name and metadata.namespace. It ignores other fields. If the kind
// has other selectable fields, the Lister must check these itself. The error for a selector that cannot be parsed is a
// BadRequest. Requests over HTTP never have such a selector.
func Selects(opts *metav1.ListOptions) (func(m metav1.Object) bool, error) {
	byLabels, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err = byFields.Transform(func(name, value string) (string, string, error) {
		if name == "metadata.name" || name == "metadata.namespace" {
			return name, value, nil
		}
		return "", "", nil // removes the requirement
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byLabels, byFields = selector.Labels(byLabels), selector.Fields(byFields)
	return func(m metav1.Object) bool {
		return byLabels.Matches(labels.Set(m.GetLabels())) &&
			byFields.Matches(fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()})
	}, nil
}
