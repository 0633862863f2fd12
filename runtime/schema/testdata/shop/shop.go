// Package shop is an API in Go types, with everything that a schema must get right.
package shop

import (
	"embed"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/keelson-dev/keelson/runtime"
)

// Source is this package's source.
//
//go:embed *.go
var Source embed.FS

// Widget is a thing that is made to order.
//
// It comes in one size only.
// +genclient
type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

// WidgetSpec is what is ordered.
type WidgetSpec struct {
	// Size in centimetres.
	// Must not be negative.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
	// Color is a CSS colour.
	// +optional
	Color string `json:"color"`
	Label string `json:"label,omitempty"` // Label is printed on the lid.
	// Ratio of length to width.
	Ratio float64 `json:"ratio,omitzero"`
	// Weight in kilograms.
	// +required
	Weight *float32 `json:"weight,omitempty"`
	// Count is a number in quotes.
	Count int64 `json:"count,string"`
	// Speed in turns per minute.
	// +default=33
	Speed int `json:"speed,omitempty"`
	// Gift wraps it.
	Gift bool `json:"gift"`

	// Parts are put together in order.
	// +listType=map
	// +listMapKey=name
	Parts []Part `json:"parts,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Tags are free words.
	// +listType=set
	Tags []string `json:"tags,omitempty"`
	// Limits by kind of material.
	// +mapType=atomic
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	// ByNumber is keyed by number.
	ByNumber map[int]Part `json:"byNumber,omitempty"`
	// Box is described here and nowhere else.
	Box struct {
		// Depth in centimetres.
		Depth int32 `json:"depth"`
	} `json:"box"`

	// Picture is a PNG file.
	Picture []byte `json:"picture,omitempty"`
	// Checksum is an array, not text.
	Checksum [4]byte `json:"checksum"`
	// Port to listen on.
	Port intstr.IntOrString `json:"port,omitempty"`
	// Before is the last day.
	Before *metav1.Time `json:"before,omitempty"`
	// Made is a plain time.
	Made time.Time `json:"made"`
	// Wait before delivery.
	Wait metav1.Duration `json:"wait,omitempty"`
	// Selector of customers.
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Extra is for plugins.
	Extra apiruntime.RawExtension `json:"extra,omitempty"`
	// Raw is any JSON.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Any is any JSON too.
	Any any `json:"any,omitempty"`
	// Mark writes itself.
	Mark Mark `json:"mark,omitempty"`
	// Code is a word.
	Code Code `json:"code,omitempty"`
	// Ref points to a secret.
	Ref corev1.LocalObjectReference `json:"ref,omitempty"`
	// Pages of the manual.
	Pages Page[Part] `json:"pages,omitempty"`
	// Twin is a widget that goes with it.
	Twin *Widget `json:"twin,omitempty"`
	// Shelves are lists of lists.
	Shelves Shelves `json:"shelves,omitempty"`

	Shipping `json:",inline"`
	*Billing
	Secret string `json:"-"`
	hidden string
}

// Shipping says how it travels.
type Shipping struct {
	// Carrier brings it.
	Carrier string `json:"carrier,omitempty"`
	// Color of the parcel, which does not show: the widget's own does.
	Color string `json:"color"`
}

// Billing says who pays.
type Billing struct {
	// Payer of the bill.
	Payer string `json:"payer"`
}

// Part is a part of a widget, and may have parts itself.
// +structType=atomic
type Part struct {
	// Name of the part.
	Name string `json:"name"`
	// Parts of the part.
	Parts []Part `json:"parts,omitempty"`
	// Next one.
	Next *Part `json:"next"`
}

// Page is one page of many.
type Page[T any] struct {
	// Items on the page.
	Items []T `json:"items"`
}

// Shelves contain shelves.
type Shelves []Shelves

// Mark is written by hand.
type Mark struct{ X, Y int }

// MarshalJSON writes the mark as a list.
func (m Mark) MarshalJSON() ([]byte, error) { return json.Marshal([]int{m.X, m.Y}) }

// Code is text on the wire.
type Code int

// MarshalText writes the code as a word.
func (c Code) MarshalText() ([]byte, error) { return []byte("x"), nil }

// WidgetStatus is how far it has got.
type WidgetStatus struct {
	// Ready for collection.
	Ready bool `json:"ready,omitempty"`
	// Conditions of the work.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Crate holds widgets.
type Crate struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata of the crate.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the crate.
	Spec CrateSpec `json:"spec"`
}

// CrateSpec is what is in the crate.
type CrateSpec struct {
	// Widgets in it.
	Widgets []WidgetSpec `json:"widgets,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (c *Crate) DeepCopyObject() runtime.Object { return runtime.DeepCopy(c) }

// CrateList is a pile of crates.
type CrateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the crates, top to bottom.
	Items []Crate `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *CrateList) DeepCopyObject() runtime.Object { return runtime.DeepCopy(c) }

// Use keeps the unexported field from being unused.
func (s WidgetSpec) Use() string { return s.hidden }
