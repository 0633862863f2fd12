package runtime_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Barges have three versions: in v1beta1 the color has another name and the size is a text; v1alpha1 has neither.
type (
	Barge = runtime.Resource[struct {
		Color  string `json:"color"`
		Size   int32  `json:"size"`
		Afloat bool   `json:"afloat"`
	}, struct{}]
	BargeV1Beta1 = runtime.Resource[struct {
		Colour string `json:"colour"`
		Size   string `json:"size"`
		Length int64  `json:"length"`
		Afloat *bool  `json:"afloat"`
	}, struct{}]
	BargeV1Alpha1 = runtime.Resource[struct{}, struct{}]
)

func barge(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sea.example.com", Version: version, Kind: "Barge"}
}

// barges registers the versions; the hub is v1.
func barges(hub, beta []string, renamed map[string]string) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, barge("v1beta1"), runtime.KindOptions[*BargeV1Beta1]{SelectableFields: beta, RenamedFields: renamed}),
		runtime.Register(s, barge("v1"), runtime.KindOptions[*Barge]{Hub: true, SelectableFields: hub}),
		runtime.Register(s, barge("v1alpha1"), runtime.KindOptions[*BargeV1Alpha1]{}),
		runtime.AddConversion(s, func(*BargeV1Beta1, *Barge) error { return nil }, func(*Barge, *BargeV1Beta1) error { return nil }),
	} {
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func TestRenamedFields(t *testing.T) {
	s, err := barges([]string{"spec.color", "spec.size", "spec.afloat"}, []string{"spec.afloat"}, map[string]string{"spec.colour": "spec.color", "spec.length": "spec.size"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, label, want string }{
		{"v1", "spec.color", "spec.color"},
		{"v1", "spec.colour", ""},
		{"v1beta1", "spec.colour", "spec.color"},
		{"v1beta1", "spec.length", "spec.size"},
		{"v1beta1", "spec.afloat", "spec.afloat"},
		{"v1beta1", "spec.color", ""},
		{"v1beta1", "spec.size", ""},
		{"v1beta1", "metadata.name", "metadata.name"},
		{"v1alpha1", "spec.color", ""},
	} {
		label, value, err := s.ConvertFieldLabel(barge(c.version), c.label, "red")
		if label != c.want || (err == nil) != (c.want != "") || err == nil && value != "red" {
			t.Errorf("%s in %s: %q, %q, %v", c.label, c.version, label, value, err)
		}
	}
	want := map[string]map[string]string{
		"sea.example.com/v1beta1":  {"spec.color": "spec.colour", "spec.size": "spec.length"},
		"sea.example.com/v1alpha1": {"spec.color": "", "spec.size": "", "spec.afloat": ""},
	}
	if got := s.FieldPaths(barge("v1").GroupKind()); !reflect.DeepEqual(got, want) {
		t.Errorf("paths %v, want %v", got, want)
	}
	// Selectors cannot compare fields with the same name but of different types.
	if s, err = barges([]string{"spec.size"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.FieldPaths(barge("v1").GroupKind())["sea.example.com/v1beta1"]; !reflect.DeepEqual(got, map[string]string{"spec.size": ""}) {
		t.Errorf("paths %v", got)
	}
	if s, err = barges(nil, nil, nil); err != nil || s.FieldPaths(barge("v1").GroupKind()) != nil {
		t.Errorf("without selectable fields: %v", err)
	}
	if got := s.FieldPaths(schema.GroupKind{Kind: "Unknown"}); got != nil {
		t.Errorf("of no kind: %v", got)
	}
}

func TestRenamedFieldsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		hub, beta []string
		renamed   map[string]string
		want      string
	}{
		"no such field":      {[]string{"spec.color"}, nil, map[string]string{"spec.hue": "spec.color"}, `has no JSON field "hue"`},
		"none of the hub":    {[]string{"spec.color"}, nil, map[string]string{"spec.colour": "spec.paint"}, `"spec.paint" is no selectable field of the hub`},
		"not selectable":     {nil, nil, map[string]string{"spec.colour": "spec.color"}, `"spec.color" is no selectable field of the hub`},
		"another type":       {[]string{"spec.color"}, nil, map[string]string{"spec.length": "spec.color"}, "a string in the hub"},
		"same name, another": {[]string{"spec.size"}, []string{"spec.size"}, nil, "a string in sea.example.com/v1beta1, Kind=Barge"},
		"an object":          {[]string{"spec.color"}, nil, map[string]string{"spec": "spec.color"}, "only strings, booleans and integers"},
		"the name":           {[]string{"spec.color"}, nil, map[string]string{"metadata.name": "spec.color"}, "always selectable"},
		"two for one":        {[]string{"spec.color"}, nil, map[string]string{"spec.colour": "spec.color", "spec.size": "spec.color"}, `"spec.colour" and "spec.size" are both the hub's "spec.color"`},
		"twice":              {[]string{"spec.color"}, []string{"spec.colour"}, map[string]string{"spec.colour": "spec.color"}, ""},
	} {
		_, err := barges(c.hub, c.beta, c.renamed)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	s := runtime.NewScheme()
	err1 := runtime.Register(s, barge("v1"), runtime.KindOptions[*Barge]{SelectableFields: []string{"spec.color"}, RenamedFields: map[string]string{"spec.afloat": "spec.b"}})
	err2 := runtime.Register(s, barge("v1beta1"), runtime.KindOptions[*BargeV1Beta1]{})
	err3 := runtime.AddConversion(s, func(*BargeV1Beta1, *Barge) error { return nil }, func(*Barge, *BargeV1Beta1) error { return nil })
	if err1 != nil || err2 != nil || err3 == nil || !strings.Contains(err3.Error(), "is the hub and has RenamedFields") {
		t.Errorf("a hub: %v, %v, %v", err1, err2, err3)
	}
}
