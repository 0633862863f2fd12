package runtime_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reports have the name of their reporter in one of two fields, and a count as a number.
type Report = runtime.Resource[struct {
	Source struct {
		Component string `json:"component,omitempty"`
	} `json:"source,omitzero"`
	Controller string `json:"controller,omitempty"`
	Count      int32  `json:"count,omitempty"`
}, struct{}]

type ReportV2 = runtime.Resource[struct {
	Controller string `json:"controller,omitempty"`
}, struct{}]

func TestSelectableFrom(t *testing.T) {
	hub := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Report"}
	v2 := hub.GroupKind().WithVersion("v2")
	from := map[string][]string{"source": {"spec.source.component", "spec.controller"}}
	make := func(o runtime.KindOptions[*Report], two runtime.KindOptions[*ReportV2]) (*runtime.Scheme, error) {
		s := runtime.NewScheme()
		if err := runtime.Register(s, hub, o); err != nil {
			return nil, err
		}
		must(t, runtime.Register(s, v2, two))
		return s, runtime.AddConversion(s, func(*ReportV2, *Report) error { return nil }, func(*Report, *ReportV2) error { return nil })
	}
	s, err := make(runtime.KindOptions[*Report]{SelectableFields: []string{"spec.count"}, SelectableFrom: from}, runtime.KindOptions[*ReportV2]{RenamedFields: map[string]string{"spec.controller": "source"}})
	must(t, err)
	if got, _, err := s.ConvertFieldLabel(hub, "source", "x"); got != "source" || err != nil {
		t.Errorf("of the hub: %q, %v", got, err)
	}
	if got, _, err := s.ConvertFieldLabel(v2, "spec.controller", "x"); got != "source" || err != nil {
		t.Errorf("renamed: %q, %v", got, err)
	}
	want := map[string]map[string]string{
		"example.com/v1": {"source": "spec.source.component|spec.controller"},
		"example.com/v2": {"source": "spec.controller", "spec.count": ""},
	}
	if got := s.FieldPaths(hub.GroupKind()); !reflect.DeepEqual(got, want) {
		t.Errorf("paths %v, want %v", got, want)
	}

	for name, c := range map[string]struct {
		hub  runtime.KindOptions[*Report]
		two  runtime.KindOptions[*ReportV2]
		want string
	}{
		"no path":          {runtime.KindOptions[*Report]{SelectableFrom: map[string][]string{"source": nil}}, runtime.KindOptions[*ReportV2]{}, `SelectableFrom "source": want the paths`},
		"no such field":    {runtime.KindOptions[*Report]{SelectableFrom: map[string][]string{"source": {"spec.x"}}}, runtime.KindOptions[*ReportV2]{}, `SelectableFrom "source": selectable field "spec.x"`},
		"a number":         {runtime.KindOptions[*Report]{SelectableFrom: map[string][]string{"source": {"spec.count"}}}, runtime.KindOptions[*ReportV2]{}, `"spec.count" is an integer; only strings can be empty`},
		"the name":         {runtime.KindOptions[*Report]{SelectableFrom: map[string][]string{"metadata.name": {"spec.controller"}}}, runtime.KindOptions[*ReportV2]{}, `SelectableFrom "metadata.name": want the paths`},
		"not of the hub":   {runtime.KindOptions[*Report]{}, runtime.KindOptions[*ReportV2]{SelectableFrom: map[string][]string{"source": {"spec.controller"}}}, "has SelectableFrom, which only the hub"},
		"listed as a path": {runtime.KindOptions[*Report]{SelectableFields: []string{"source"}}, runtime.KindOptions[*ReportV2]{}, `no JSON field "source"`},
	} {
		if _, err := make(c.hub, c.two); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
