package runtime_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type ruledSpec struct {
	Size  *int32 `json:"size,omitempty" minimum:"1" default:"3"`
	Color string `json:"color,omitempty" default:"red"`
	Note  string `json:"note,omitempty"`
}

type ruled = runtime.Resource[ruledSpec, struct{}]

type wrongSpec struct {
	Size int32 `json:"size" minimum:"one"`
}

type wrong = runtime.Resource[wrongSpec, struct{}]

var ruledKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ruled"}

// TestConstraints shows that the struct tags of a kind become rules of its Kind, and defaults that are set before the program's
// own.
func TestConstraints(t *testing.T) {
	scheme := runtime.NewScheme()
	err := runtime.Register[*ruled](scheme, ruledKind, runtime.KindOptions[*ruled]{
		Default: func(obj *ruled) {
			if obj.Spec.Note == "" && obj.Spec.Size != nil {
				obj.Spec.Note = obj.Spec.Color
			}
			obj.Spec.Color = "blue"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := scheme.Lookup(ruledKind)
	if !kind.HasDefaults() {
		t.Error("the kind has no defaults")
	}
	obj := &ruled{}
	scheme.Default(obj)
	if s := obj.Spec; s.Size == nil || *s.Size != 3 || s.Note != "red" || s.Color != "blue" {
		t.Errorf("got %+v", s)
	}
	*obj.Spec.Size = 0
	if errs := kind.Constraints.Validate(obj); len(errs) != 1 || errs[0].Field != "spec.size" {
		t.Errorf("got %v", errs)
	}
}

// TestOnlyTagDefaults checks that a kind whose defaults are all in tags has defaults.
func TestOnlyTagDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := runtime.Register[*ruled](scheme, ruledKind, runtime.KindOptions[*ruled]{}); err != nil {
		t.Fatal(err)
	}
	kind := scheme.Lookup(ruledKind)
	obj := &ruled{}
	kind.SetDefaults(obj)
	if !kind.HasDefaults() || obj.Spec.Color != "red" {
		t.Errorf("got %+v", obj.Spec)
	}
}

func TestWrongTagIsRefused(t *testing.T) {
	err := runtime.Register[*wrong](runtime.NewScheme(), ruledKind.GroupVersion().WithKind("Wrong"), runtime.KindOptions[*wrong]{})
	want := `register example.com/v1, Kind=Wrong: constraints of type runtime_test.wrongSpec: field Size: tag minimum:"one": `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
