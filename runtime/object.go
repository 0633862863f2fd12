package runtime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// Object is any value with a kind. It is apimachinery's interface, which every Go API type written for Kubernetes implements.
type Object = apiruntime.Object

// Pointer is the constraint of a registered type: a pointer to a struct T that implements Object. Callers never write the type
// parameter T, because it is inferred: Register[*Widget] is enough.
type Pointer[T any] interface {
	*T
	Object
}

// Resource is a kind made of two plain structs, which may be any structs that encode to JSON. A resource without a status uses
// struct{} for Status.
//
// Clients can read and write a Resource in protobuf, beside JSON and YAML, if Spec and Status have protobuf tags on all their
// fields; no code is generated:
//
//	type WidgetSpec struct {
//		Size int32 `json:"size" protobuf:"varint,1,opt,name=size"`
//	}
//
// Package runtime/internal/protobuf lists the tags. A client that accepts only protobuf gets 406 (Not Acceptable) for a kind
// without them.
type Resource[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the desired state, which users write.
	Spec Spec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is the observed state, which the controller of the resource writes.
	Status Status `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// DeepCopyObject implements Object.
func (r *Resource[Spec, Status]) DeepCopyObject() Object { return DeepCopy(r) }

// List is the list type of a kind that has no list type of its own.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the objects. The codecs of this library encode no items as [], never as null.
	Items []T `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// DeepCopyObject implements Object.
func (l *List[T]) DeepCopyObject() Object { return DeepCopy(l) }
