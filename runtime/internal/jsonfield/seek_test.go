package jsonfield_test

import (
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

func TestSeekerFinds(t *testing.T) {
	type plain struct {
		A int
		B []plain
	}
	type tagged struct {
		Plain plain
		A     int `sought:"x"`
	}
	type holder struct {
		*plain
		M map[string][3]*[]tagged
	}
	type hidden struct{ tagged }
	type circle struct {
		Next   *circle
		Plain  plain
		Holder *holder
	}
	asked := map[string]int{}
	s := jsonfield.Seeker{Match: func(f reflect.StructField) bool {
		asked[f.Name]++
		_, ok := f.Tag.Lookup("sought")
		return ok
	}}
	for range 2 {
		for typ, want := range map[reflect.Type]bool{
			reflect.TypeFor[plain]():              false,
			reflect.TypeFor[*plain]():             false,
			reflect.TypeFor[map[string]any]():     false,
			reflect.TypeFor[int]():                false,
			reflect.TypeFor[tagged]():             true,
			reflect.TypeFor[[]tagged]():           true,
			reflect.TypeFor[holder]():             true,
			reflect.TypeFor[struct{ H hidden }](): true,
			reflect.TypeFor[*circle]():            true,
		} {
			if got := s.Finds(typ); got != want {
				t.Errorf("%v: %v", typ, got)
			}
		}
	}
	if asked["B"] != 1 { // of plain alone, which has none
		t.Errorf("B was looked at %d times", asked["B"])
	}
}
