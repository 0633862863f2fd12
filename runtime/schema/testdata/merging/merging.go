// Package merging has fields whose markers cannot be followed.
package merging

import "embed"

// Source is this package's source.
//
//go:embed *.go
var Source embed.FS

// Marked has two of them, and one that is right.
type Marked struct {
	// +listType=map
	// +listMapKey=nam
	Parts []Part `json:"parts,omitempty"`
	// +listMapKey=name
	Keyed []Part `json:"keyed,omitempty"`
	// +listType=map
	// +listMapKey=name
	Right []Part `json:"right,omitempty"`
}

// Part is told apart by its name.
type Part struct {
	Name string `json:"name"`
}
