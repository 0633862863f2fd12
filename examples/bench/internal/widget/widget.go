// Package widget has the kind that the servers of the bench serve: the Go types of Widget of bench.example.com/v1, and the
// widgets for the measurements, which are the same in each run.
package widget

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the kind.
const (
	Group    = "bench.example.com"
	Version  = "v1"
	Kind     = "Widget"
	Resource = "widgets"
)

// WidgetSpec is what the owner of a widget asks for.
type WidgetSpec struct {
	// Size of the widget, in millimetres.
	Size int32 `json:"size,omitempty" minimum:"0" maximum:"1000000"`
	// Color of the widget, such as "red".
	Color string `json:"color,omitempty" maxLength:"32"`
	// Data is anything the owner wants to keep with the widget.
	Data string `json:"data,omitempty"`
	// Replicas is how many of this widget there should be.
	Replicas int32 `json:"replicas,omitempty"`
}

// WidgetStatus is what the controller of widgets reports.
type WidgetStatus struct {
	// Ready says that the widget can be used.
	Ready bool `json:"ready,omitempty"`
	// Replicas is how many of this widget there are.
	Replicas int32 `json:"replicas,omitempty"`
	// Selector finds the parts of this widget, in the text form of a label selector.
	Selector string `json:"selector,omitempty"`
}

// Widget is a thing with a size and a color. It is written the way of Kubernetes' own types, for the server that needs
// it so; the other one has runtime.Resource[WidgetSpec, WidgetStatus], whose JSON is the same.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// Source has the comments above, for kubectl explain.
//
//go:embed widget.go
var Source embed.FS
