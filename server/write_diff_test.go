package server_test

import (
	"encoding/json"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest/writemodel"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// For any writes to objects of these kinds, the answers, stored objects and managedFields are those that the libraries of
// kube-apiserver compute.
func TestWritesAreThoseOfApimachinery(t *testing.T) {
	t.Parallel()
	v1, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	writemodel.Run(t, writemodel.Options{Objects: 6, Kinds: []writemodel.Kind{
		writemodel.Of(apps.WithKind("Deployment"), server.KindOptions[*appsv1.Deployment]{
			Default: defaultDeployment, Scale: &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
		}),
		writemodel.Of(v1.WithKind("Pod"), server.KindOptions[*corev1.Pod]{}),
		writemodel.Of(v1.WithKind("Service"), server.KindOptions[*corev1.Service]{Default: defaultService, Strategy: registry.Strategy[*corev1.Service]{NoGeneration: true}}),
		writemodel.Of(v1.WithKind("ConfigMap"), server.KindOptions[*corev1.ConfigMap]{Strategy: registry.Strategy[*corev1.ConfigMap]{NoGeneration: true}}),
		writemodel.Of(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gear"}, server.KindOptions[*Gear]{Default: defaultGear}),
	}})
}

func defaultDeployment(d *appsv1.Deployment) {
	if d.Spec.Replicas == nil {
		d.Spec.Replicas = new(int32(1))
	}
	if d.Spec.Strategy.Type == "" {
		d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
}

func defaultService(s *corev1.Service) {
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].Protocol == "" {
			s.Spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
}

// Gear is a kind of the program, with every kind of merge.
type Gear struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GearSpec `json:"spec,omitempty"`
	// Extra is a field beside spec and status.
	Extra  apiruntime.RawExtension `json:"extra,omitempty"`
	Status GearStatus              `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (g *Gear) DeepCopyObject() runtime.Object { return runtime.DeepCopy(g) }

type GearSpec struct {
	Teeth   *int32                       `json:"teeth,omitempty"`
	Port    intstr.IntOrString           `json:"port,omitempty"`
	Weight  resource.Quantity            `json:"weight"`
	Limits  map[string]resource.Quantity `json:"limits,omitempty"`
	Tags    []string                     `json:"tags,omitempty" listType:"set" patchStrategy:"merge"`
	Steps   []string                     `json:"steps,omitempty"`
	Wheels  []Wheel                      `json:"wheels,omitempty" listType:"map" listMapKey:"name,side" patchStrategy:"merge" patchMergeKey:"name"`
	Spokes  []*Wheel                     `json:"spokes,omitempty" listType:"atomic"`
	Whole   map[string]string            `json:"whole,omitempty" mapType:"atomic"`
	Axle    *Wheel                       `json:"axle,omitempty" structType:"atomic"`
	Any     AnyValue                     `json:"any,omitzero"`
	Raw     *apiruntime.RawExtension     `json:"raw,omitempty"`
	Free    map[string]AnyValue          `json:"free,omitempty"`
	Nested  map[string]map[string][]int  `json:"nested,omitempty"`
	Every   metav1.Duration              `json:"every,omitzero"`
	Since   *metav1.Time                 `json:"since,omitempty"`
	Data    []byte                       `json:"data,omitempty"`
	Ratio   float64                      `json:"ratio,omitempty"`
	Ports   []corev1.ContainerPort       `json:"ports,omitempty" listType:"map" listMapKey:"containerPort,protocol"`
	Matches metav1.LabelSelector         `json:"matches,omitempty"`
}

// Wheel has the keys name and side.
type Wheel struct {
	Name  string            `json:"name"`
	Side  *int32            `json:"side,omitempty"`
	Size  int32             `json:"size,omitempty"`
	Label map[string]string `json:"label,omitempty"`
	Inner []Wheel           `json:"inner,omitempty" listType:"map" listMapKey:"name"`
}

type GearStatus struct {
	Ready      bool               `json:"ready,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty" listType:"map" listMapKey:"type" patchStrategy:"merge" patchMergeKey:"type"`
	Seen       map[string]int64   `json:"seen,omitempty"`
}

func defaultGear(g *Gear) {
	if g.Spec.Teeth == nil {
		g.Spec.Teeth = new(int32(12))
	}
	for i := range g.Spec.Wheels {
		if g.Spec.Wheels[i].Size == 0 {
			g.Spec.Wheels[i].Size = 3
		}
	}
}

// AnyValue is any JSON value, like that of apiextensions.
type AnyValue struct{ raw json.RawMessage }

func (AnyValue) OpenAPISchemaType() []string { return nil }

// MarshalJSON implements json.Marshaler.
func (v AnyValue) MarshalJSON() ([]byte, error) {
	if len(v.raw) == 0 {
		return []byte("null"), nil
	}
	return v.raw, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *AnyValue) UnmarshalJSON(text []byte) error {
	if v.raw = nil; string(text) != "null" {
		v.raw = append(json.RawMessage{}, text...)
	}
	return nil
}

// IsZero makes encoding/json omit the field.
func (v AnyValue) IsZero() bool { return len(v.raw) == 0 }

// DeepCopy returns a separate copy.
func (v AnyValue) DeepCopy() AnyValue { return AnyValue{append(json.RawMessage(nil), v.raw...)} }
