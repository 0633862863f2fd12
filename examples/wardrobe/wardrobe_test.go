package main

import (
	"testing"

	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"github.com/keelson-dev/keelson/server"
	"sigs.k8s.io/randfill"
)

func TestVersionsLoseNothing(t *testing.T) {
	scheme, err := server.NewScheme(shelfGroup())
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, scheme, roundtrip.Options{Fill: []any{
		// What the rules of v1 allow: a name or a color with a slash in it could not be written in v1alpha1.
		func(g *Garment, c randfill.Continue) {
			g.Name, g.Kind = []string{"parka", "x-1"}[c.Intn(2)], []string{"coat", "hat"}[c.Intn(2)]
			g.Color = []string{"", "red"}[c.Intn(2)]
		},
		func(s *ShelfSpecV1alpha1, c randfill.Continue) {
			c.Fill(&s.Season)
			c.Fill(&s.Slots)
			if c.Bool() {
				s.Garments = []string{"parka=coat", "x-1=hat/red"}
			}
		},
	}})
}
