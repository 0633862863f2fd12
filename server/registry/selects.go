package registry

import (
	"github.com/keelson-dev/keelson/runtime/selector"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Selects returns what says which objects the selectors of a list choose, for a Lister that computes them: by their
// labels, and by the fields metadata.name and metadata.namespace. Other fields, which a request can name if the kind has
// them, are left to the Lister: what it returned is chosen whatever they say. A selector that cannot be read is a
// BadRequest; requests by HTTP have none.
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
		return "", "", nil // takes the requirement away
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
