package main

import (
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
)

// ShelfSpecV1beta1 calls the slots space.
type ShelfSpecV1beta1 struct {
	// Season in which the garments of the shelf are worn.
	Season string `json:"season,omitempty" enum:"summer,winter,always" default:"always" print:"Season"`
	// Space is how many garments fit on the shelf.
	Space *int32 `json:"space,omitempty" minimum:"0" maximum:"100" default:"10" print:"Space"`
	// Garments lie on the shelf, each under a name of its own.
	Garments []Garment `json:"garments,omitempty" listType:"map" listMapKey:"name" maxItems:"100"`
}

// ShelfV1beta1 is a shelf as it was before v1.
type ShelfV1beta1 = runtime.Resource[ShelfSpecV1beta1, ShelfStatus]

func fromV1beta1(in *ShelfV1beta1, out *Shelf) error {
	out.Spec = ShelfSpec{Season: in.Spec.Season, Slots: in.Spec.Space, Garments: in.Spec.Garments}
	out.Status = in.Status
	return nil
}

func toV1beta1(in *Shelf, out *ShelfV1beta1) error {
	out.Spec = ShelfSpecV1beta1{Season: in.Spec.Season, Space: in.Spec.Slots, Garments: in.Spec.Garments}
	out.Status = in.Status
	return nil
}

// ShelfSpecV1alpha1 has garments as texts.
type ShelfSpecV1alpha1 struct {
	// Season in which the garments of the shelf are worn.
	Season string `json:"season,omitempty" enum:"summer,winter,always" default:"always"`
	// Slots is how many garments fit on the shelf.
	Slots *int32 `json:"slots,omitempty" minimum:"0" maximum:"100" default:"10"`
	// Garments lie on the shelf, each in the form name=kind or name=kind/color.
	Garments []string `json:"garments,omitempty" maxItems:"100"`
}

// ShelfV1alpha1 is a shelf as the first drawing had it.
type ShelfV1alpha1 = runtime.Resource[ShelfSpecV1alpha1, ShelfStatus]

func fromV1alpha1(in *ShelfV1alpha1, out *Shelf) error {
	out.Spec = ShelfSpec{Season: in.Spec.Season, Slots: in.Spec.Slots}
	for i, text := range in.Spec.Garments {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("spec.garments[%d]: %q: want name=kind or name=kind/color", i, text)
		}
		kind, color, _ := strings.Cut(rest, "/")
		out.Spec.Garments = append(out.Spec.Garments, Garment{Name: name, Kind: kind, Color: color})
	}
	out.Status = in.Status
	return nil
}

func toV1alpha1(in *Shelf, out *ShelfV1alpha1) error {
	out.Spec = ShelfSpecV1alpha1{Season: in.Spec.Season, Slots: in.Spec.Slots}
	for _, g := range in.Spec.Garments {
		text := g.Name + "=" + g.Kind
		if g.Color != "" {
			text += "/" + g.Color
		}
		out.Spec.Garments = append(out.Spec.Garments, text)
	}
	out.Status = in.Status
	return nil
}
