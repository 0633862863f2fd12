// Package v1 has the name, and a type the name, of one that Kubernetes has.
package v1

import "embed"

// Source is this package's source.
//
//go:embed *.go
var Source embed.FS

// PodSpec is no PodSpec of Kubernetes.
type PodSpec struct {
	// Volumes are numbers.
	// +listType=set
	Volumes []int `json:"volumes,omitempty"`
}
