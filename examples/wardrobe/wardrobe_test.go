package main

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry/strategytest"
	"sigs.k8s.io/randfill"
)

func TestVersionsLoseNothing(t *testing.T) {
	scheme, err := server.NewScheme(shelfGroup())
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, scheme, roundtrip.Options{Fill: []any{
		// The values follow the rules of v1: a name or a color with a slash could not be written in v1alpha1.
		func(g *Garment, c randfill.Continue) {
			g.Name, g.Kind = []string{"parka", "x-1"}[c.Intn(2)], []string{"coat", "hat"}[c.Intn(2)]
			g.Color = []string{"", "red"}[c.Intn(2)]
		},
		func(s *ShelfSpecV1alpha1, c randfill.Continue) {
			c.Fill(&s.Season)
			c.Fill(&s.Slots)
			s.Garments = [][]string{nil, {"parka=coat", "x-1=hat/red"}}[c.Intn(2)]
		},
	}})
}

func TestRules(t *testing.T) {
	shelf := func(slots int32, on ...Garment) *Shelf {
		return &Shelf{Spec: ShelfSpec{Season: "always", Slots: &slots, Garments: on}}
	}
	hat, coat := Garment{Name: "fez", Kind: "hat"}, Garment{Name: "parka", Kind: "coat"}
	strategytest.Run(t, server.Options{Groups: []server.Group{shelfGroup()}}, []strategytest.Case{
		{Name: "empty", Create: &Shelf{}, Want: shelf(10), Warnings: []string{"the shelf is empty"}},
		{Name: "too much", Create: shelf(1, hat, coat), Errors: []string{"spec.slots: Invalid value: 1: 2 garments lie on the shelf"}},
		{Name: "narrower", Old: shelf(2, hat, coat), Update: shelf(1, hat, coat), Errors: []string{"spec.slots: Invalid value: 1"}},
		{Name: "v1alpha1", Create: &ShelfV1alpha1{Spec: ShelfSpecV1alpha1{Garments: []string{"fez=hat"}}}, Want: shelf(10, hat)},
	})
}
