package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ Tabler = (*ScaleView)(nil)

// Columns implements Tabler. It returns the columns that kube-apiserver has for the Scale of a custom resource.
func (v *ScaleView) Columns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Desired", Type: "integer", Description: "Number of desired replicas"},
		{Name: "Available", Type: "integer", Description: "Number of actual replicas"},
		{Name: "Age", Type: "date", Description: docs["creationTimestamp"]},
	}
}

// Row implements Tabler. As in kube-apiserver, which takes the cells from the JSON of the Scale, the cell of no desired replicas is nil.
func (v *ScaleView) Row(_ context.Context, obj runtime.Object) ([]any, error) {
	s, ok := obj.(*runtime.Scale)
	if !ok {
		return nil, fmt.Errorf("table row: %T is no Scale", obj)
	}
	var desired any
	if s.Spec.Replicas != 0 {
		desired = s.Spec.Replicas
	}
	return []any{s.Name, desired, s.Status.Replicas, table.ConvertToHumanReadableDateType(s.CreationTimestamp)}, nil
}
