package main

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ShelfSpec is what the owner of a shelf wants it to be.
type ShelfSpec struct {
	// Season in which the garments of the shelf are worn.
	Season string `json:"season,omitempty" enum:"summer,winter,always" default:"always" print:"Season"`
	// Slots is how many garments fit on the shelf.
	Slots *int32 `json:"slots,omitempty" minimum:"0" maximum:"100" default:"10" print:"Slots"`
	// Garments lie on the shelf, each under a name of its own. Who applies one of them owns that one.
	Garments []Garment `json:"garments,omitempty" listType:"map" listMapKey:"name" maxItems:"100"`
}

// Garment is a piece of clothing.
type Garment struct {
	// Name tells the garments of a shelf apart.
	Name string `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9-]+$"`
	// Kind of garment.
	Kind string `json:"kind" enum:"shirt,trousers,coat,hat"`
	// Color of the garment, such as "red".
	Color string `json:"color,omitempty" pattern:"^[a-z]*$"`
}

// ShelfStatus is what has been seen of a shelf.
type ShelfStatus struct {
	// Used is how many slots are taken.
	Used int32 `json:"used,omitempty" print:"Used"`
	// Selector finds the labels of the garments, in the text form of a label selector.
	Selector string `json:"selector,omitempty" print:"Selector,wide"`
	// Conditions say how the shelf is.
	Conditions []metav1.Condition `json:"conditions,omitempty" listType:"map" listMapKey:"type"`
}

// Shelf is a shelf of a wardrobe, with what lies on it.
type Shelf = runtime.Resource[ShelfSpec, ShelfStatus]

// rules returns the rules that a tag of a single field cannot express.
func rules() registry.Strategy[*Shelf] {
	return registry.Strategy[*Shelf]{
		Validate: func(_ *registry.Call, s *Shelf) field.ErrorList {
			if n := len(s.Spec.Garments); s.Spec.Slots != nil && n > int(*s.Spec.Slots) {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "slots"), *s.Spec.Slots, fmt.Sprintf("%d garments lie on the shelf", n))}
			}
			return nil
		},
		WarnOnCreate: func(_ *registry.Call, s *Shelf) []string {
			if len(s.Spec.Garments) == 0 {
				return []string{"the shelf is empty"}
			}
			return nil
		},
	}
}
