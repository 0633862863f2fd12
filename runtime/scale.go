package runtime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scale is the object of a scale subresource: the kind Scale of autoscaling/v1. Its JSON, protobuf and schema are those of the type
// in k8s.io/api/autoscaling/v1. That type is not used, because a program that imports its package links all of k8s.io/api/core/v1.
type Scale struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the desired state.
	Spec ScaleSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is the observed state.
	Status ScaleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ScaleSpec is the desired state of a Scale.
type ScaleSpec struct {
	// Replicas is the desired number of instances.
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
}

// ScaleStatus is the observed state of a Scale.
type ScaleStatus struct {
	// Replicas is the observed number of instances.
	Replicas int32 `json:"replicas" protobuf:"varint,1,opt,name=replicas"`
	// Selector selects the instances by their labels, in the form of a query parameter. It may be empty.
	Selector string `json:"selector,omitempty" protobuf:"bytes,2,opt,name=selector"`
}

// ScaleKind returns the kind of a [Scale].
func ScaleKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
}

// DeepCopyObject implements Object.
func (s *Scale) DeepCopyObject() Object { return DeepCopy(s) }

const scaleModel = "io.k8s.api.autoscaling.v1."

// OpenAPIModelName returns the name of the type's schema.
func (Scale) OpenAPIModelName() string { return scaleModel + "Scale" }

// OpenAPIModelName returns the name of the type's schema.
func (ScaleSpec) OpenAPIModelName() string { return scaleModel + "ScaleSpec" }

// OpenAPIModelName returns the name of the type's schema.
func (ScaleStatus) OpenAPIModelName() string { return scaleModel + "ScaleStatus" }

const conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#"

// SwaggerDoc returns the descriptions in the type's schema, by JSON name. The description of the type itself is at "".
func (Scale) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "Scale represents a scaling request for a resource.",
		"metadata": "metadata is the standard object metadata; " + conventions + "metadata.",
		"spec":     "spec defines the behavior of the scale. " + conventions + "spec-and-status.",
		"status":   "status is the current status of the scale. " + conventions + "spec-and-status. Read-only.",
	}
}

// SwaggerDoc returns the descriptions in the type's schema, by JSON name. The description of the type itself is at "".
func (ScaleSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "ScaleSpec describes the attributes of a scale subresource.",
		"replicas": "replicas is the desired number of instances for the scaled object.",
	}
}

// SwaggerDoc returns the descriptions in the type's schema, by JSON name. The description of the type itself is at "".
func (ScaleStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "ScaleStatus represents the current status of a scale subresource.",
		"replicas": "replicas is the actual number of observed instances of the scaled object.",
		"selector": "selector is the label query over pods that should match the replicas count. This is same as the label selector but in the string " +
			"format to avoid introspection by clients. The string will be in the same format as the query-param syntax. " +
			"More info about label selectors: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
	}
}
