package runtime

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// Object is any value with a kind. It is apimachinery's interface, so that every Go API type written for
// Kubernetes is one.
type Object = apiruntime.Object

// Pointer is the constraint of a registered type: the pointer to a struct T which is an Object. The type
// parameter T is always inferred: Register[*Widget] is all a caller writes.
type Pointer[T any] interface {
	*T
	Object
}

// Resource is a kind made of two plain structs. Spec is what its users ask for, Status what its controller
// reports; both may be any JSON-serialisable struct. A resource without a status uses struct{} there. One whose Spec and
// Status have protobuf tags on all their fields can be read and written in protobuf as well: see package protobuf.
type Resource[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Spec   Spec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	Status Status `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// DeepCopyObject implements Object.
func (r *Resource[Spec, Status]) DeepCopyObject() Object { return DeepCopy(r) }

// List is the list type of a kind that brings none of its own. Items is encoded as [] when empty, never null,
// once it has passed through this library's codecs.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Items []T `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// DeepCopyObject implements Object.
func (l *List[T]) DeepCopyObject() Object { return DeepCopy(l) }
