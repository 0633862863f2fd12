package jsonfield_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

type (
	Inner  struct{ A, Both int }
	Other  struct{ B, Both int }
	Deeper struct {
		Inner
		Deep int
	}
	hidden struct {
		Shown  int
		buried int
	}
	Tagged struct {
		Both int `json:"Both"`
	}
)

// TestOfIsWhatIsWritten compares Of with the output of encoding/json.
func TestOfIsWhatIsWritten(t *testing.T) {
	for _, v := range []any{
		struct{ A, b int }{},
		struct {
			A int `json:"x"`
			B int `json:"-"`
			C int `json:"-,"` //nolint:staticcheck // a field of that name
		}{},
		struct {
			Inner
			Other
		}{},
		struct {
			Inner
			Tagged
		}{},
		struct {
			Deeper
			Other
		}{},
		struct {
			*Inner
			A string
		}{Inner: &Inner{}},
		struct {
			hidden
			Inner `json:"named"`
		}{hidden: hidden{buried: 1}},
		struct{ Self *Inner }{},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]any
		if err := json.Unmarshal(text, &written); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range jsonfield.Of(reflect.TypeOf(v), nil) {
			got = append(got, f.Name)
			if at := reflect.TypeOf(v).FieldByIndex(f.At); at.Name != f.Go.Name {
				t.Errorf("%T: %s is not at %v", v, f.Name, f.At)
			}
		}
		slices.Sort(got)
		if want := slices.Sorted(maps.Keys(written)); !slices.Equal(got, want) {
			t.Errorf("%T: %q, and %q is written", v, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	fields := jsonfield.Of(reflect.TypeFor[struct {
		A *int     `json:"a,omitempty,string"`
		B []string `json:",omitzero,string"` //nolint:staticcheck // the option has no effect here, which is asked
	}](), nil)
	a, b := fields[0], fields[1]
	if !a.OmitEmpty || !a.AsString || !a.Tagged || b.AsString || !b.OmitZero || b.Tagged || b.Name != "B" {
		t.Errorf("%+v", fields)
	}
	var others []string
	jsonfield.Of(reflect.TypeFor[struct {
		Inner
		none int
		Off  int `json:"-"`
	}](), func(_ reflect.Type, f reflect.StructField, inlined bool) {
		if inlined {
			others = append(others, "inlined")
		}
		others = append(others, f.Name)
	})
	if !slices.Equal(others, []string{"inlined", "Inner", "none", "Off"}) {
		t.Errorf("%q", others)
	}
}
